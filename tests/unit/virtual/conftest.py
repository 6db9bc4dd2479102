from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from k230_lib.virtual.msh import Msh, RtSettings
from k230_lib.virtual.ports import Exclusive, NetworkPort, PtyPort
from k230_lib.virtual.programs import PlainLauncher
from k230_lib.virtual.rt_files import RtFiles
from k230_lib.virtual.uart import Uart

_RING_SAFE = 32


class Console:
    """A running msh behind a TCP port, and what a person at it does."""

    def __init__(self, folder: Path, settings: RtSettings, baud: int) -> None:
        self.sharefs = folder / "sharefs"
        self.sharefs.mkdir()
        self.server_runs = True
        self.reboots = 0
        self.unread = b""
        self.uart = Uart(baud)
        self.place = Exclusive()
        self.port = NetworkPort(self.uart, 0, self.place)
        self.rfc2217 = NetworkPort(self.uart, 0, self.place, rfc2217=True)
        self.pty = PtyPort(self.uart, folder / "console")
        files = RtFiles(lambda: self.sharefs, lambda: self.server_runs)
        self.msh = Msh(self.uart, files, PlainLauncher(), self._reboot, settings)
        self.client = socket.create_connection(("127.0.0.1", self.port.port), timeout=5)
        while self.uart.listeners < 2:  # the pty and this client
            time.sleep(0.001)
        self.msh.start()

    def _reboot(self) -> None:
        self.reboots += 1

    def type(self, text: str, *, at_once: bool = False) -> None:
        """Type what the 64-byte ring holds, more in pieces as their echo comes, or all blindly."""
        data = text.encode()
        while len(data) > _RING_SAFE and not at_once:
            self.client.sendall(data[:_RING_SAFE])
            wanted = len(self.unread) + _RING_SAFE
            self.client.settimeout(2.0)
            while len(self.unread) < wanted:
                self.unread += self.client.recv(wanted - len(self.unread))
            data = data[_RING_SAFE:]
        self.client.sendall(data)

    def read_until(self, end: str, timeout: float = 5.0) -> str:
        """Everything printed up to and with ``end``."""
        got = b""
        deadline = time.monotonic() + timeout
        while not got.endswith(end.encode()):
            if self.unread:
                got, self.unread = got + self.unread[:1], self.unread[1:]
                continue
            self.client.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                got += self.client.recv(1)
            except TimeoutError:
                raise AssertionError(f"waited for {end!r}, got {got!r}") from None
        return got.decode()

    def silence(self, seconds: float = 0.3) -> str:
        """What is printed in a while."""
        got = b""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.client.settimeout(left)
            try:
                got += self.client.recv(4096)
            except TimeoutError:
                break
        return got.decode()

    def ask(self, line: str, prompt: str = "msh />") -> str:
        """Output of a command, without its echo and the prompt after it."""
        self.type(f"{line}\r")
        self.read_until(f"{line}\r\n")
        return self.read_until(prompt).removesuffix(prompt)

    def close(self) -> None:
        self.msh.reset()
        self.client.close()
        self.port.close()
        self.rfc2217.close()
        self.pty.close()


@pytest.fixture
def make_console(tmp_path: Path) -> Iterator[Callable[..., Console]]:
    made: list[Console] = []

    def make(*, baud: int = 0, boot_demo: bool = False, **settings: object) -> Console:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        console = Console(
            folder, RtSettings(boot_demo=boot_demo, boot_seconds=0.0, **settings), baud
        )
        made.append(console)
        return console

    yield make
    for console in made:
        console.close()


@pytest.fixture
def console(make_console: Callable[..., Console]) -> Console:
    """A console at its first prompt."""
    made = make_console()
    made.read_until("msh />")
    return made
