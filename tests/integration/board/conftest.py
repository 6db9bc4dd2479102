"""The RT-Smart core of a board alone: its shell, its serial line and programs that misbehave."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from k230_lib.virtual.msh import Msh, RtSettings
from k230_lib.virtual.ports import Exclusive, NetworkPort, PtyPort
from k230_lib.virtual.rt_files import RtFiles
from k230_lib.virtual.uart import Uart

# What the simulated loader takes for a program of this machine.
ELF = b"\x7fELF" + bytes(14) + b"\x3e\0"

PROGRAMS = {
    "lines": "for i in $(seq 1 $1); do echo line $i; done",
    "raw": "printf 'no newline'",
    "fake": "printf 'msh />\\nmsh /sharefs>'; sleep 1; echo done",
    "slow": "trap 'kill $!; exit' INT; sleep $1 & wait; echo woke",
    "chatty": "while :; do echo '[W/mpp] frame drop'; sleep 0.1; done",
    "crash": "echo begun; kill -SEGV $$",
    "deaf": "trap '' INT; sleep 30 & wait; wait",
    "flood": "yes 'a fairly long line of output for the console to swallow' | head -c $1",
}


class ScriptLauncher:
    """Runs a shell script in place of a program, chosen by the program's name."""

    def launch(self, command: Sequence[str], *, cwd: str, output: int) -> subprocess.Popen[bytes]:
        at = next(i for i, word in enumerate(command) if "/program-" in word)
        script = PROGRAMS[Path(command[at]).name]
        return subprocess.Popen(
            ["sh", "-c", script, "program", *command[at + 1 :]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


class SimulatedBoard:
    """The RT-Smart core of a board, with its serial line."""

    def __init__(self, folder: Path, *, demo: bool = False, baud: int = 0) -> None:
        self.folder = folder
        for name in PROGRAMS:
            (folder / name).write_bytes(ELF)
        self.uart = Uart(baud=baud)
        self.demo = demo
        self.sharefs = True
        self.tcp = NetworkPort(self.uart, 0, Exclusive())
        self.rfc2217 = NetworkPort(self.uart, 0, Exclusive(), rfc2217=True)
        self.pty = PtyPort(self.uart, folder.parent / "console")
        self._boot()

    def _boot(self) -> None:
        files = RtFiles(lambda: self.folder, lambda: self.sharefs)
        settings = RtSettings(boot_demo=self.demo, boot_seconds=0.05, scratch=self.folder.parent)
        self.msh = Msh(self.uart, files, ScriptLauncher(), self.reboot, settings)
        self.msh.start()

    def reboot(self, banner: str = "") -> None:
        threading.Thread(target=self._reset, args=(banner,), daemon=True).start()

    def _reset(self, banner: str) -> None:
        self.msh.reset()
        if banner:
            self.uart.inject(banner.encode())
        self._boot()

    def close(self) -> None:
        self.msh.reset()
        for port in (self.tcp, self.rfc2217, self.pty):
            port.close()

    def url(self, kind: str = "tcp") -> str:
        if kind == "tcp":
            return f"socket://127.0.0.1:{self.tcp.port}"
        if kind == "rfc2217":
            return f"rfc2217://127.0.0.1:{self.rfc2217.port}"
        return str(self.pty.link)


@pytest.fixture
def make_board(tmp_path: Path) -> Iterator[Callable[..., SimulatedBoard]]:
    boards: list[SimulatedBoard] = []

    def make(**options: Any) -> SimulatedBoard:
        folder = tmp_path / f"board{len(boards)}" / "sharefs"
        folder.mkdir(parents=True)
        boards.append(SimulatedBoard(folder, **options))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


@pytest.fixture
def board(make_board: Callable[..., SimulatedBoard]) -> SimulatedBoard:
    return make_board()
