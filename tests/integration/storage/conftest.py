"""Virtual boards for the storage tests, each with a fresh card."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from k230_lib.board.filesystems import Wish
from k230_lib.board.journal import Folder
from k230_lib.board.provisioning import (
    Outcome,
    Target,
    ensure_filesystem,
    ensure_mount,
    ensure_size,
    ensure_table,
    foresee,
)
from k230_lib.board.shell import CommandResult, SshShell, checked
from k230_lib.board.sizes import parse_size
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

_NUMBER = 141
MIB = 1 << 20


@dataclass
class Bench:
    """A running board and the jobs on it, as the role runs them."""

    board: LightBoard
    folder: Folder
    target: Target
    wish: Wish
    round_trips: int = 0

    @property
    def name(self) -> str:
        return self.board.name

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        """A round trip, counted."""
        self.round_trips += 1
        return self._ssh.run(script, stdin=stdin, timeout=timeout)

    @property
    def _ssh(self) -> SshShell:
        host = f"root@{self.board.settings.address}"
        return SshShell(self.board.name, host, self.board.ssh_options())

    def sh(self, script: str) -> str:
        """Run something on the board, as a person would."""
        return checked(self._ssh, script)

    def foresee(self, size: str = "100%") -> Outcome:
        return foresee(self._shell, self.target, parse_size(size), self.wish, self.folder)

    def table(self, *, check: bool = False) -> Outcome:
        return ensure_table(self._shell, self.target, check=check)

    def resize(self, size: str = "100%", *, check: bool = False) -> Outcome:
        return ensure_size(self._shell, self.target, parse_size(size), check=check)

    def filesystem(self, *, check: bool = False, size: str = "100%") -> Outcome:
        return ensure_filesystem(
            self._shell,
            self.target,
            self.wish,
            self.folder,
            check=check,
            size=parse_size(size),
        )

    def mount(self, *, check: bool = False) -> Outcome:
        return ensure_mount(self._shell, self.target, check=check)

    def provision(self, size: str = "100%") -> list[Outcome]:
        """All of it, in the role's order."""
        self.foresee(size)
        return [self.table(), self.resize(size), self.filesystem(), self.mount()]

    @property
    def _shell(self) -> _Shell:
        return _Shell(self)

    def files(self) -> dict[str, str]:
        """SHA-256 of every file on /sharefs, by path."""
        text = self.sh("cd /sharefs; find . -type f -print0 | xargs -0 -r sha256sum")
        return {line[66:]: line[:64] for line in text.splitlines()}

    def boot_area(self) -> str:
        """Hash of all bytes before partition 4, except those of the partition table."""
        digest = hashlib.sha256()
        with self.board.card_image.open("rb") as card:
            os.posix_fadvise(card.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            card.seek(34 * 512)
            # partition 3 is the running root file system, which changes
            digest.update(card.read(128 * MIB - 34 * 512))
        return digest.hexdigest()

    def table_bytes(self) -> str:
        """Hash of everything that a partition table is made of, as the board has it now."""
        return self.sh(
            "n=$(cat /sys/block/mmcblk?/size); d=/dev/$(ls /sys/block | grep mmcblk);"
            "{ dd if=$d bs=512 count=34; dd if=$d bs=512 skip=$((n-33)) count=33; } 2>/dev/null |"
            "sha256sum"
        )


@dataclass
class _Shell:
    """The bench as a BoardShell."""

    bench: Bench

    @property
    def board(self) -> str:
        return self.bench.name

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        return self.bench.run(script, stdin=stdin, timeout=timeout)


@pytest.fixture
def bench_with(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Starts a board with settings; everything is gone after the test."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("virtual boards need root")
    with contextlib.ExitStack() as stack:

        def start(**settings: object) -> Bench:
            settings.setdefault("card_size", "1GiB")
            board = stack.enter_context(virtual_board(_NUMBER, name="vb", **settings))
            folder = Folder(tmp_path / "storage", "vb")
            return Bench(board, folder, Target(), Wish(replace=True))

        yield start


@pytest.fixture
def bench(bench_with: Callable[..., Bench]) -> Bench:
    """A stock board: FAT16 with files on a card larger than its table."""
    return bench_with()


@pytest.fixture
def bench_shell(bench: Bench) -> _Shell:
    """A stock board as a BoardShell; ``.bench`` is its bench."""
    return _Shell(bench)
