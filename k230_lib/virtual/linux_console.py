"""The serial console of the board's Linux: what answers when the wrong port is plugged in."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..errors import VirtualBoardError
from .uart import CTRL_C, CoreReset, Uart

_LOGIN = "\ncanaan login: "
_PROMPT = "[root@canaan ~ ]#"


class LinuxConsole:
    """Login prompt and shell on ``uart``; ``run`` does the commands.

    Each line is a shell of its own: enough to be recognised and to be typed at by mistake.
    """

    def __init__(self, uart: Uart, run: Callable[[str], str]) -> None:
        self._uart = uart
        self._run = run
        self._stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._main, name="linux-console", daemon=True).start()

    def reset(self) -> None:
        self._stopped.set()
        self._uart.reset()

    def _main(self) -> None:
        try:
            self._print(_LOGIN)
            while self._read_line() != "root":
                self._print(_LOGIN)
            self._print(_PROMPT)
            while True:
                line = self._read_line().strip()
                if line:
                    try:
                        self._print(self._run(f"{{ {line}\n}} 2>&1"))
                    except VirtualBoardError:
                        self._print(f"-sh: {line.split()[0]}: not found\n")
                self._print(_PROMPT)
        except CoreReset:
            return

    def _print(self, text: str) -> None:
        if not self._stopped.is_set():
            self._uart.write(text.replace("\n", "\r\n").encode("utf-8", "surrogateescape"))

    def _read_line(self) -> str:
        line = bytearray()
        while True:
            byte = self._uart.read_byte(lambda: not self._stopped.is_set())
            if byte in (0x0D, 0x0A):
                self._print("\n")
                return line.decode("utf-8", "surrogateescape")
            if byte in (0x08, 0x7F):
                if line:
                    line.pop()
                    self._print("\b \b")
            elif byte == CTRL_C:
                line.clear()
                self._print(f"^C\n{_PROMPT}")
            else:
                line.append(byte)
                self._print(chr(byte))
