"""Cut, stalled, slow and refused SSH, made on the board's cable and in its SSH server.

The kernel's token bucket is used because it exists on every kernel with traffic control; nothing
sits in the data path of a healthy board.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import VirtualBoardError
from .board import BoardSettings
from .linux_side import LinuxSide
from .tools import path_of

_POLL_SECONDS = 0.002
# packets larger than the bucket are dropped, so nothing passes
_BLACK_HOLE = "rate 8bit burst 10 limit 10"


class NetworkFaults:
    """Faults of the network of one life of a board."""

    def __init__(self, settings: BoardSettings, linux: LinuxSide) -> None:
        self._link = settings.host_link
        self._linux = linux
        self._rate = 0
        self._stalled = threading.Event()
        self._cleared = 0
        self._acting = threading.Lock()
        self._shape()

    def cut(self, after_bytes: int) -> None:
        """Kill all sessions of the SSH server once ``after_bytes`` more have gone to the board."""
        self._after(after_bytes, self._kill_sessions)

    def stall(self, seconds: float, after_bytes: int) -> None:
        """Drop every packet for ``seconds``, once ``after_bytes`` more have gone to the board."""
        self._after(after_bytes, lambda: self._drop_all(seconds))

    def slow(self, bytes_per_second: int) -> None:
        """Limit both directions; 0 lifts the limit."""
        self._rate = bytes_per_second
        self._shape()

    def refuse(self, seconds: float) -> None:
        """Close the listening port for ``seconds``; sessions go on."""
        self._linux.run("kill $(cat /run/sshd.pid)")
        self._later(seconds, lambda: self._linux.run("/usr/sbin/sshd"))

    def clear(self) -> None:
        """Let the network be healthy again (a refusing server stays so for its time).

        What waits for its bytes to pass does not happen any more.
        """
        with self._acting:
            self._cleared += 1
        self._rate = 0
        self._stalled.clear()
        self._shape()

    def _kill_sessions(self) -> None:
        self._linux.run(
            "main=$(cat /run/sshd.pid); for p in $(pidof sshd); do"
            " [ $p = $main ] || kill -9 $p; done; true"
        )

    def _drop_all(self, seconds: float) -> None:
        self._stalled.set()
        self._shape()

        def heal() -> None:
            self._stalled.clear()
            self._shape()

        self._later(seconds, heal)

    def _shape(self) -> None:
        if self._stalled.is_set():
            words = f"replace {{}} root tbf {_BLACK_HOLE}"
        elif self._rate:
            burst = max(self._rate // 50, 4000)
            words = f"replace {{}} root tbf rate {self._rate}bps burst {burst} latency 200ms"
        else:
            words = "del {} root"
        here = [str(path_of("tc")), "qdisc", *words.format(f"dev {self._link}").split()]
        target = f"--net=/proc/{self._linux.init}/ns/net"
        there = [str(path_of("nsenter")), target, str(path_of("tc")), "qdisc"]
        there += words.format("dev eth0").split()
        for command in (here, there):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0 and "del" not in command:
                raise VirtualBoardError(
                    f"tc failed: {done.stderr.strip()}",
                    hint="check that the kernel has the tbf scheduler.",
                )

    def _after(self, after_bytes: int, action: Callable[[], None]) -> None:
        if after_bytes <= 0:
            action()
            return
        counter = Path(f"/sys/class/net/{self._link}/statistics/tx_bytes")
        limit = int(counter.read_text()) + after_bytes
        cleared = self._cleared

        def watch() -> None:
            try:
                while int(counter.read_text()) < limit:
                    time.sleep(_POLL_SECONDS)
                    if self._cleared != cleared:
                        return
                with self._acting:
                    if self._cleared == cleared:
                        action()
            except (OSError, VirtualBoardError):
                return  # the board went down first

        threading.Thread(target=watch, daemon=True).start()

    def _later(self, seconds: float, action: Callable[[], object]) -> None:
        def run() -> None:
            try:
                action()
            except (OSError, VirtualBoardError):
                return  # the board went down first

        timer = threading.Timer(seconds, run)
        timer.daemon = True
        timer.start()
