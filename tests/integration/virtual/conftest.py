from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import serial

from k230_lib.board.shell import SshShell
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

PROMPT = "msh />"


class Bench:
    """A board with its shell and console."""

    def __init__(self, board: LightBoard) -> None:
        self.board = board
        self.shell = SshShell(board.name, f"root@{board.settings.address}", board.ssh_options())

    def sh(self, script: str, timeout: float = 60.0) -> str:
        """Output of a script on the board, which must succeed."""
        result = self.shell.run(script, timeout=timeout)
        assert result.rc == 0, (result.rc, result.stdout, result.stderr)
        return result.text

    def console(self, *lines: str, end: str = PROMPT, url: str | None = None) -> str:
        """What the console prints while ``lines`` are typed, each up to the next ``end``."""
        with serial.serial_for_url(url or self.board.settings.console, timeout=0.1) as port:
            text = ""
            for line in lines:
                port.write(line.encode() + b"\r")
                text += self.until(port, end)
            return text

    @staticmethod
    def until(port: serial.Serial, end: str, timeout: float = 10.0) -> str:
        got = b""
        deadline = time.monotonic() + timeout
        while not got.endswith(end.encode()):
            got += port.read(4096)
            assert time.monotonic() < deadline, (end, got)
        return got.decode()

    def fresh_console(self) -> None:
        """End the boot demo."""
        self.console("q")


@pytest.fixture(scope="session", autouse=True)
def _root() -> None:
    if os.geteuid() != 0:
        pytest.skip("virtual boards need root")


@pytest.fixture(scope="module")
def number(request: pytest.FixtureRequest) -> int:
    """Each module has boards of its own: it says its number in NUMBER."""
    value: int = request.module.NUMBER
    return value


@pytest.fixture(scope="module")
def bench(number: int) -> Iterator[Bench]:
    with virtual_board(number, card_size="1GiB", baud=0) as board:
        made = Bench(board)
        made.fresh_console()
        yield made


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small native program that reads and writes /sharefs, waits or crashes."""
    source = tmp_path_factory.mktemp("program") / "probe.c"
    source.write_text(
        r"""
        #include <stdio.h>
        #include <string.h>
        #include <unistd.h>
        int main(int count, char **words) {
          const char *what = count > 1 ? words[1] : "";
          char where[200];
          printf("probe %s in %s\n", what, getcwd(where, sizeof where));
          FILE *out = fopen("/sharefs/probe.out", "w");
          if (!out) { perror("open"); return 1; }
          fputs("from the big core\n", out);
          fflush(out);
          if (!strcmp(what, "crash")) *(volatile int *)0 = 1;
          if (!strcmp(what, "hold")) for (;;) pause();
          fclose(out);
          return 3;
        }
        """
    )
    target = source.with_suffix("")
    subprocess.run(["gcc", "-O1", "-o", target, source], check=True)
    return target
