"""Faults of a virtual board, switched on and off from tests and the CLI.

Everything here is a request to the board's root process; nothing stays when that process ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

from ..errors import InputError
from . import control
from .uart import ConsoleFaults


class Faults:
    """Faults of the running board ``number``.

    Every method raises :class:`VirtualBoardError` when the board does not run or cannot do it.
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def _ask(self, command: str, **arguments: Any) -> Any:
        return control.ask(self._number, command, arguments)

    # -- the serial console --------------------------------------------------------------------

    def console(self, **values: float | bool) -> None:
        """Set faults of the serial line, e.g. ``console(drop_out=0.01, delay=0.2)``.

        See :class:`~k230_lib.virtual.uart.ConsoleFaults` for the names. What is not named keeps
        its value.

        Raises:
            InputError: a name that is no fault.
        """
        unknown = sorted(set(values) - set(ConsoleFaults.names()))
        if unknown:
            raise InputError(
                f"no console fault {', '.join(unknown)}",
                hint=f"use some of {', '.join(ConsoleFaults.names())}.",
            )
        self._ask("console", **values)

    def inject(self, text: str) -> None:
        """Put ``text`` on the console as the kernel's own messages come: at any place."""
        self._ask("inject", text=text)

    def wrong_console(self, on: bool = True) -> None:
        """Connect the console port to the board's Linux instead of msh, or back.

        Programs of the RT-Smart core end, msh starts anew.
        """
        self._ask("wrong_console", on=on)

    # -- SSH -----------------------------------------------------------------------------------

    def ssh_cut(self, after_bytes: int = 0) -> None:
        """Break all SSH sessions once ``after_bytes`` more have gone to the board."""
        self._ask("ssh_cut", after_bytes=after_bytes)

    def ssh_stall(self, seconds: float, after_bytes: int = 0) -> None:
        """Let no packet through for a while, as a pulled cable, once ``after_bytes`` have gone."""
        self._ask("ssh_stall", seconds=seconds, after_bytes=after_bytes)

    def ssh_slow(self, bytes_per_second: int) -> None:
        """Limit the network in both directions; 0 lifts the limit."""
        self._ask("ssh_slow", bytes_per_second=bytes_per_second)

    def ssh_refuse(self, seconds: float) -> None:
        """Let the SSH server refuse connections for a while (sessions go on)."""
        self._ask("ssh_refuse", seconds=seconds)

    # -- board and card ------------------------------------------------------------------------

    def reboot(self) -> None:
        """Reset the SoC now, without warning; returns when it is down, not when it is up."""
        self._ask("reset")

    def fill_card(self, leave_bytes: int = 0) -> None:
        """Fill /sharefs up to ``leave_bytes``, by a file ``filler.bin`` there."""
        self._ask("fill_card", leave_bytes=leave_bytes)

    def read_only(self, on: bool = True) -> None:
        """Remount /sharefs read-only, as the kernel does on damage, or writable again."""
        self._ask("read_only", on=on)

    def stop_sharefs(self) -> None:
        """Kill the sharefs server: RT-Smart then waits for ever on any access to /sharefs."""
        self._ask("stop_sharefs")

    def kill_program(self, number: int = 11) -> None:
        """Send signal ``number`` (default SIGSEGV) to the programs of the RT-Smart core."""
        self._ask("kill_program", number=number)

    def kill(self) -> None:
        """End the board's root process by SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self._ask("status")["pid"]), signal.SIGKILL)

    def clear(self) -> None:
        """Take all console and network faults away."""
        self._ask("clear")
