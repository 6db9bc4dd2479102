"""The serial line between the controller and the RT-Smart core, with the losses of the real one.

The receive ring holds 64 bytes and there is no flow control. While the shell sits at its prompt it
drains the ring a little slower than 115200 baud fills it (each byte is echoed by polling), so short
bursts always arrive and long ones lose bytes; while a program runs nobody drains the ring.
Losses follow from a model in line time, not from the scheduling of this process, and are therefore
the same on a busy host; a byte whose echo is out has left the ring in any case.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

RING_BYTES = 64
BITS_PER_BYTE = 10
# An echoed byte takes one byte time on the wire plus the shell's own work per byte.
ECHO_COST = 1.15
CTRL_C = 0x03
LINE_ENDS = (0x0D, 0x0A)
_MAX_DEBT_SECONDS = 0.002
_CHUNK = 64

Sink = Callable[[bytes], None]


class CoreReset(Exception):  # noqa: N818  (a signal to unwind, not an error)
    """The core was reset while its software waited for input."""


@dataclass
class ConsoleFaults:
    """What is wrong with the line just now. Probabilities are per byte.

    Attributes:
        drop_in: typed bytes that get lost.
        drop_out: printed bytes that get lost.
        garble_in: typed bytes with one bit flipped.
        garble_out: printed bytes with one bit flipped.
        duplicate_out: printed bytes that arrive twice.
        delay: seconds by which every printed chunk is late.
        mute: nothing printed arrives.
    """

    drop_in: float = 0.0
    drop_out: float = 0.0
    garble_in: float = 0.0
    garble_out: float = 0.0
    duplicate_out: float = 0.0
    delay: float = 0.0
    mute: bool = False

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))


class Uart:
    """One serial line: clients on one side, the core's software on the other.

    Args:
        baud: line speed; 0 means no pacing and no loss at the prompt.
        seed: makes random faults repeatable.
    """

    def __init__(self, baud: int = 115200, seed: int = 0) -> None:
        self.faults = ConsoleFaults()
        self.lost = 0
        self._byte_seconds = BITS_PER_BYTE / baud if baud else 0.0
        self._random = random.Random(seed)
        self._ready = threading.Condition()
        self._queue: deque[int] = deque()
        self._drained = False
        self._interrupt: Callable[[], None] | None = None
        self._level = 0.0
        self._arrival = 0.0
        self._sinks: list[Sink] = []
        self._send_lock = threading.Lock()
        self._line_free_at = 0.0

    # -- the client's side -------------------------------------------------------------------

    def attach(self, sink: Sink) -> None:
        """Let ``sink`` have everything the core prints from now on."""
        with self._send_lock:
            self._sinks.append(sink)

    def detach(self, sink: Sink) -> None:
        """Stop sending to ``sink``; unknown sinks are ignored."""
        with self._send_lock:
            if sink in self._sinks:
                self._sinks.remove(sink)

    @property
    def listeners(self) -> int:
        """How many sinks there are."""
        return len(self._sinks)

    def receive(self, data: bytes) -> None:
        """Take bytes from the wire; those that find the ring full are lost."""
        interrupts = 0
        with self._ready:
            for byte in self._damage_input(data):
                if byte == CTRL_C and self._interrupt is not None:
                    interrupts += 1
                elif self._has_room():
                    self._queue.append(byte)
                else:
                    self.lost += 1
            interrupt = self._interrupt
            self._ready.notify_all()
        if interrupts and interrupt is not None:
            interrupt()

    def _damage_input(self, data: bytes) -> Iterator[int]:
        faults = self.faults
        for byte in data:
            if faults.drop_in and self._random.random() < faults.drop_in:
                continue
            if faults.garble_in and self._random.random() < faults.garble_in:
                yield byte ^ (1 << self._random.randrange(7))
            else:
                yield byte

    def _has_room(self) -> bool:
        if not self._drained or any(end in self._queue for end in LINE_ENDS):
            # What follows a complete line waits in the ring until that line's command is done.
            return len(self._queue) < RING_BYTES
        if not self._byte_seconds:
            return True
        arrival = max(time.monotonic(), self._arrival + self._byte_seconds)
        served = (arrival - self._arrival) / (self._byte_seconds * ECHO_COST)
        self._arrival = arrival
        self._level = min(max(0.0, self._level - served), len(self._queue))
        if self._level + 1 > RING_BYTES:
            return False
        self._level += 1
        return True

    # -- the core's side ---------------------------------------------------------------------

    def read_byte(self, alive: Callable[[], bool]) -> int:
        """Next typed byte; waits for it.

        Raises:
            CoreReset: ``alive()`` became false.
        """
        with self._ready:
            self._drained = True
            while True:
                if not alive():
                    raise CoreReset
                if self._queue:
                    return self._queue.popleft()
                self._ready.wait(0.2)

    def busy(self, interrupt: Callable[[], None] | None = None) -> None:
        """Nobody reads from now on; Ctrl-C calls ``interrupt`` where one is given."""
        with self._ready:
            self._drained = False
            self._interrupt = interrupt

    def reset(self) -> None:
        """Forget what was typed, and let a waiting reader look at its ``alive`` again."""
        with self._ready:
            self._queue.clear()
            self._drained = False
            self._interrupt = None
            self._level = 0.0
            self._ready.notify_all()

    def write(self, data: bytes) -> None:
        """Print ``data`` at line speed; returns when it is (nearly) out."""
        for start in range(0, len(data), _CHUNK):
            chunk = data[start : start + _CHUNK]
            self._pace(len(chunk))
            self._send(chunk)

    def echo(self, data: bytes) -> None:
        """Print what answers one typed byte, as slowly as the shell does."""
        self._pace(ECHO_COST * len(data))
        self._send(data)

    def _pace(self, count: float) -> None:
        if not self._byte_seconds:
            return
        with self._send_lock:
            now = time.monotonic()
            self._line_free_at = max(now, self._line_free_at) + count * self._byte_seconds
            debt = self._line_free_at - now
        if debt > _MAX_DEBT_SECONDS:
            time.sleep(debt)

    def _send(self, chunk: bytes) -> None:
        faults = self.faults
        if faults.delay:
            time.sleep(faults.delay)
        if faults.mute:
            return
        damaged = bytes(self._damage_output(chunk))
        with self._send_lock:
            for sink in self._sinks:
                sink(damaged)

    def _damage_output(self, chunk: bytes) -> Iterator[int]:
        faults = self.faults
        if not (faults.drop_out or faults.garble_out or faults.duplicate_out):
            yield from chunk
            return
        for byte in chunk:
            if self._random.random() < faults.drop_out:
                continue
            flipped = self._random.random() < faults.garble_out
            sent = byte ^ (1 << self._random.randrange(7)) if flipped else byte
            yield sent
            if self._random.random() < faults.duplicate_out:
                yield sent

    def inject(self, data: bytes) -> None:
        """Put noise on the line that no program printed; faults do not apply to it."""
        with self._send_lock:
            for sink in self._sinks:
                sink(data)
