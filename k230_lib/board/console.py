"""A session with msh, the shell of the RT-Smart core, over a serial console.

msh echoes what is typed and prints a prompt; it gives no exit status, loses bytes typed faster
than it reads, and its kernel writes into the middle of our lines. So a line is typed in small
pieces and run only when its echo is right; a command has ended when an empty line brings a new
prompt; and whether it did its work is to be read from a file, never from this text.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ..errors import (
    BoardRebootedError,
    ConsoleError,
    InputError,
    ProgramCrashedError,
    ProgramHungError,
    WrongConsoleError,
)
from .console_text import (
    PROMPT,
    BoundedText,
    Speaker,
    TextStream,
    boot_started,
    check_line,
    echoed,
    excerpt,
    kernel_death,
    speaker,
)
from .console_watch import Ending, ProgramWatch
from .console_wire import ConsoleWire

_CHUNK = 32
_TYPING_ATTEMPTS = 20
_SILENT_ATTEMPTS = 3
_ERASE_ROUNDS = 20
_ENTER_ATTEMPTS = 3
_TICK = 0.05
_CTRL_C = b"\x03"

OnLine = Callable[[str], bool]
"""Called with each line of output; says whether the line shows that the program gets on."""


@dataclass(frozen=True)
class ConsoleTimings:
    """How long to wait for what, in seconds."""

    prompt: float = 3.0
    """for the prompt after Enter"""
    interrupt: float = 6.0
    """for the prompt after Ctrl-C"""
    boot: float = 60.0
    """for the prompt after a boot message; nothing is typed in this time"""
    quiet: float = 0.12
    """without a byte, to take a text as complete"""
    proof: float = 0.03
    """without a byte after a prompt, to have it proved by an empty line"""
    echo: float = 0.5
    """without a byte, to give up waiting for an echo"""
    crash_grace: float = 4.0
    """for the prompt after a fault message"""


class MshConsole:
    """msh on one board. Use :meth:`open`, as a context manager.

    Args:
        wire: the open console.
        timings: waiting times.
    """

    def __init__(self, wire: ConsoleWire, timings: ConsoleTimings | None = None) -> None:
        self._wire = wire
        self._times = timings or ConsoleTimings()
        self._stream = TextStream()
        self._heard_echo = False
        self.board = wire.board
        self.cwd = "/"

    @classmethod
    def open(
        cls,
        url: str,
        board: str,
        log_path: Path | None = None,
        *,
        baudrate: int = 115200,
        timings: ConsoleTimings | None = None,
    ) -> Self:
        """Open the console at ``url`` for this process alone and bring it to a prompt.

        Raises:
            ConsoleBusyError: somebody else holds the port.
            WrongConsoleError: Linux or U-Boot answers.
            ConsoleError: nothing answers, or the port does not exist.
        """
        wire = ConsoleWire(url, board, log_path=log_path, baudrate=baudrate)
        try:
            console = cls(wire, timings)
            console.wake()
        except BaseException:
            wire.close()
            raise
        return console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the port and give it back."""
        self._wire.close()

    def note(self, text: str) -> None:
        """Write a remark into the raw log."""
        self._wire.log.note(text)

    # ---- to a prompt ---------------------------------------------------------------------

    def wake(self) -> None:
        """Bring whatever is on the console to a fresh prompt.

        The demo that the stock image starts at boot wants ``q`` and Enter; a program left over
        by a dead run gets Ctrl-C; a booting board is left alone until its prompt appears.

        Raises:
            WrongConsoleError: Linux or U-Boot answers.
            ConsoleError: nothing answers.
        """
        heard = self._read_until_quiet(self._times.quiet, limit=1.5)
        if boot_started(heard) and not PROMPT.search(heard):
            heard += self._listen_for_prompt(self._times.boot)
        for keys, wait in (
            (b"q\r", self._times.prompt),
            (b"\r", self._times.prompt),
            (_CTRL_C, 1.0),
            (b"\r", self._times.interrupt),
        ):
            self._wire.write(keys)
            answer = self._listen_for_prompt(wait)
            heard += answer
            if PROMPT.search(answer) and self._answers_as_msh():
                return
        if not heard.strip():
            raise ConsoleError(
                f"nothing answers on console {self._wire.url}",
                board=self.board,
                hint="check cable, port and power; the kernel may be dead: restart the board.",
            )
        raise ConsoleError(
            f"no msh prompt on console {self._wire.url}; last heard: {excerpt(heard, 3)}",
            board=self.board,
            hint="restart the board.",
        )

    def _listen_for_prompt(self, wait: float) -> str:
        """Read until a prompt came and the line is quiet, or ``wait`` seconds are over.

        A boot message prolongs the wait, since a booting board must not be typed at.

        Raises:
            WrongConsoleError: somebody else than msh speaks.
        """
        heard = BoundedText()
        end = time.monotonic() + wait
        booting = False
        while time.monotonic() < end:
            heard.add(self._read_until_quiet(self._times.quiet, limit=1.0))
            text = heard.last(4096)
            if not booting and boot_started(text):
                booting = True
                end = time.monotonic() + self._times.boot
            who = speaker(text)
            if who is Speaker.MSH and not (booting and boot_started(text[_last_prompt(text) :])):
                break
            if who in (Speaker.LINUX, Speaker.UBOOT):
                name = "Linux" if who is Speaker.LINUX else "U-Boot"
                raise WrongConsoleError(
                    f"{name} answers on console {self._wire.url}, msh was expected: "
                    f"{excerpt(text, 2)}",
                    board=self.board,
                    hint="give the board's other serial port (on CanMV-K230 the second one).",
                )
        return heard.text

    def _answers_as_msh(self) -> bool:
        token = f"k230-{secrets.token_hex(4)}"
        try:
            return token in self.run(f"echo {token}", timeout=2 * self._times.prompt)
        except ProgramHungError:
            return False

    def is_alive(self) -> bool:
        """Does msh answer with a fresh prompt now?"""
        try:
            return self._answers_as_msh()
        except ConsoleError:
            return False

    def interrupt(self) -> bool:
        """Stop the running program by Ctrl-C; True when the prompt came back."""
        self.note("Ctrl-C")
        self._wire.write(_CTRL_C)
        if PROMPT.search(self._listen_for_prompt(self._times.interrupt / 2)):
            return True
        self._wire.write(b"\r")
        return PROMPT.search(self._listen_for_prompt(self._times.interrupt / 2)) is not None

    # ---- a command -----------------------------------------------------------------------

    def run(
        self,
        line: str,
        *,
        timeout: float | None = 60.0,
        idle_timeout: float | None = None,
        on_line: OnLine | None = None,
    ) -> str:
        """Run ``line`` at msh and return its output (bounded: the middle of a flood is dropped).

        Args:
            line: as typed; below 1024 printable ASCII characters and 101 words.
            timeout: seconds for the whole command.
            idle_timeout: seconds without a line that shows progress.
            on_line: told each line of output; its answer says whether the line is progress.

        Raises:
            InputError: msh could not take such a line.
            ProgramCrashedError: it ended with a fault; the message has the fault's text.
            ProgramHungError: no end, or no progress in time; it has been sent Ctrl-C.
            BoardRebootedError: the board restarted meanwhile.
            ConsoleError: the echo stays wrong, the kernel died or the connection broke.
        """
        problem = check_line(line)
        if problem:
            raise InputError(problem, board=self.board, hint="shorten the paths or options.")
        self._type(line)
        watch = ProgramWatch(on_line, quiet=self._times.proof)
        self._enter(watch)
        ending = self._watch(watch, timeout, idle_timeout)
        return self._conclude(line, watch, ending)

    def _type(self, line: str) -> None:
        """Type ``line`` without Enter, so that its echo is right; a damaged one is erased."""
        silent = 0
        for attempt in range(_TYPING_ATTEMPTS):
            self._read_until_quiet(0.0, limit=0.5)
            self._heard_echo = False
            if self._typed(line):
                if attempt:
                    self.note(f"line typed at attempt {attempt + 1}")
                return
            silent = 0 if self._heard_echo else silent + 1
            if silent >= _SILENT_ATTEMPTS:
                break
            self._erase(len(line))
        raise ConsoleError(
            f"console {self._wire.url} does not echo what is typed",
            board=self.board,
            hint="check cable and baud rate; is another program typing?",
        )

    def _typed(self, line: str) -> bool:
        seen = ""
        for start in range(0, len(line), _CHUNK):
            part = line[: start + _CHUNK]
            self._wire.write(line[start : start + _CHUNK].encode("ascii"))
            end = time.monotonic() + self._times.echo
            while not echoed(part, seen):
                data = self._wire.read(_TICK)
                if data:
                    self._heard_echo = True
                    seen += self._stream.feed(data)
                    # An echo that has begun goes on without a pause, or something was lost.
                    end = time.monotonic() + self._times.echo / 3
                if time.monotonic() > end or PROMPT.search(seen):
                    return False
        # A doubled last character would come a moment later.
        seen += self._read_until_quiet(0.02, limit=0.3)
        return echoed(line, seen)

    def _erase(self, length: int) -> None:
        """Backspace until msh has nothing more to erase (it answers only when it erases)."""
        for _ in range(length // _CHUNK):
            self._wire.write(b"\b" * _CHUNK)
            self._read_until_quiet(0.04, limit=0.5)
        for _ in range(_ERASE_ROUNDS):
            self._wire.write(b"\b" * _CHUNK)
            if "\b" not in self._read_until_quiet(max(0.2, self._times.quiet), limit=1.5):
                return

    def _enter(self, watch: ProgramWatch) -> None:
        """Press Enter; again when its echo does not come, for the byte may have been lost."""
        for _ in range(_ENTER_ATTEMPTS):
            self._wire.write(b"\r")
            end = time.monotonic() + 2 * self._times.echo
            while time.monotonic() < end:
                data = self._wire.read(_TICK)
                watch.feed(self._stream.feed(data), time.monotonic())
                if watch.begun:
                    return

    def _watch(
        self, watch: ProgramWatch, timeout: float | None, idle_timeout: float | None
    ) -> Ending:
        start = time.monotonic()
        while True:
            data = self._wire.read(_TICK)
            now = time.monotonic()
            if data:
                watch.feed(self._stream.feed(data), now)
            if watch.wants_probe(now):
                self._wire.write(b"\r")
                watch.probed(now)
            ending = watch.ending(now, crash_grace=self._times.crash_grace)
            if ending is not None:
                return ending
            if timeout is not None and now - start > timeout:
                return Ending.TOO_LONG
            if idle_timeout is not None and now - watch.last_progress > idle_timeout:
                return Ending.NO_PROGRESS

    def _conclude(self, line: str, watch: ProgramWatch, ending: Ending) -> str:
        name = line.split(maxsplit=1)[0] if line.split() else line
        output = watch.output
        self.note(f"{name}: {ending.name.lower().replace('_', ' ')}")
        if ending is Ending.FINISHED:
            self.cwd = watch.cwd
            # What the confirming Enter still brings would stand before the next echo.
            self._read_until_quiet(0.0, limit=0.2)
            return output
        if ending is Ending.CRASHED:
            back = "" if watch.prompt_seen else self._after_interrupt()
            raise ProgramCrashedError(
                f"{name} crashed: {excerpt(watch.crash)}{back}",
                board=self.board,
                hint="the console log has the registers.",
            )
        if ending is Ending.REBOOTED:
            raise BoardRebootedError(
                f"the board restarted while {name} was running",
                board=self.board,
                hint="check the power supply; run again to go on.",
            )
        if ending is Ending.KERNEL_DEAD:
            raise ConsoleError(
                f"the RT-Smart kernel stopped: {kernel_death(watch.crash) or 'no text'}",
                board=self.board,
                hint="restart the board (reboot from Linux).",
            )
        why = "made no progress" if ending is Ending.NO_PROGRESS else "did not end in time"
        raise ProgramHungError(
            f"{name} {why}{self._after_interrupt()}; last output: {excerpt(output, 3) or 'none'}",
            board=self.board,
            hint="raise the time limit, or look at the console log.",
        )

    def _after_interrupt(self) -> str:
        return (
            " (stopped by Ctrl-C)"
            if self.interrupt()
            else " (Ctrl-C had no effect, the shell is blocked)"
        )

    # ---- reading -------------------------------------------------------------------------

    def _read_until_quiet(self, quiet: float, *, limit: float) -> str:
        """Read until nothing came for ``quiet`` seconds, at most ``limit`` seconds."""
        text = BoundedText()
        end = time.monotonic() + limit
        while data := self._wire.read(quiet):
            text.add(self._stream.feed(data))
            if time.monotonic() > end:
                break
        return text.text


def _last_prompt(text: str) -> int:
    return max((match.start() for match in PROMPT.finditer(text)), default=0)
