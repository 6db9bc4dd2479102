"""Provisioning is cut at every step: the next run finishes, and no file is ever lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from k230_lib.board.filesystems import Wish
from k230_lib.board.journal import Folder
from k230_lib.board.provisioning import (
    Target,
    ensure_filesystem,
    ensure_mount,
    ensure_size,
    ensure_table,
    foresee,
)
from k230_lib.board.shell import BoardShell, CommandResult, SshShell, checked
from k230_lib.board.sizes import parse_size
from k230_lib.errors import BoardUnreachableError, StorageError
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

pytestmark = [pytest.mark.board, pytest.mark.fault, pytest.mark.timeout(1200)]
_NUMBER = 142
_SIZE = parse_size("100%")
# files beyond those of the image: a deep tree, and one that takes several transfers
_EXTRA = (
    "cd /sharefs; mkdir -p deep/er/est; echo data >deep/er/est/file.txt; : >empty;"
    "dd if=/dev/urandom of=large.bin bs=1048576 count=60 2>/dev/null; sync"
)


class Cut:
    """A shell whose connection breaks at one call.

    Args:
        at: number of the call, from 0, or words in its script; below 0 never.
        arrives: the script still runs on the board, only its answer is lost.
        then: what happens to the board at that moment.
    """

    def __init__(
        self,
        shell: BoardShell,
        at: int | str = -1,
        *,
        arrives: bool = False,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self._shell, self._at, self._arrives, self._then = shell, at, arrives, then
        self.board = shell.board
        self.calls = 0

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        number, self.calls = self.calls, self.calls + 1
        if number != self._at and not (isinstance(self._at, str) and self._at in script):
            return self._shell.run(script, stdin=stdin, timeout=timeout)
        if self._arrives:
            self._shell.run(script, stdin=stdin, timeout=timeout)
        self._then()
        raise BoardUnreachableError("the connection broke", board=self.board)


def _provision(shell: BoardShell, folder: Folder) -> bool:
    target, wish = Target(), Wish(replace=True)
    foresee(shell, target, _SIZE, wish, folder)
    jobs = [
        ensure_table(shell, target),
        ensure_size(shell, target, _SIZE),
        ensure_filesystem(shell, target, wish, folder, size=_SIZE),
        ensure_mount(shell, target),
    ]
    return any(job.changed for job in jobs)


def _ssh(board: LightBoard) -> SshShell:
    return SshShell(board.name, f"root@{board.settings.address}", board.ssh_options())


def _files(board: LightBoard) -> dict[str, str]:
    text = checked(_ssh(board), "cd /sharefs; find . -type f -print0 | xargs -0 sha256sum")
    return {line[66:]: line[:64] for line in text.splitlines()}


@pytest.fixture
def board() -> Iterator[LightBoard]:
    if os.geteuid() != 0:
        pytest.skip("virtual boards need root")
    with virtual_board(_NUMBER, name="vb", card_size="1GiB") as running:
        yield running


def _fresh(board: LightBoard) -> dict[str, str]:
    """Put a new card in, with files; what is on it."""
    board.stop()
    board.reflash()
    board.start()
    checked(_ssh(board), _EXTRA)
    return _files(board)


def _finish(board: LightBoard, folder: Folder, files: dict[str, str], where: str) -> None:
    """Run again without faults; everything must be there and nothing left over."""
    _provision(_ssh(board), folder)
    assert _files(board) == files, where
    left = checked(_ssh(board), "ls -A /sharefs; ls -A /root | grep k230 || true").split()
    assert sorted(left) == ["app", "deep", "empty", "large.bin", "lost+found"], where
    assert not folder.path.exists(), where
    assert _provision(_ssh(board), folder) is False, where


def _walk(
    board: LightBoard,
    tmp_path: Path,
    fault: Callable[[BoardShell, int, Folder], bool],
) -> None:
    """Cut the first run at call 0, 1, 2 ... until it comes through; each time run again."""
    at = 0
    while True:
        files = _fresh(board)
        folder = Folder(tmp_path / str(at), "vb")
        if not fault(_ssh(board), at, folder):
            break
        _finish(board, folder, files, f"cut at call {at}")
        at += 1
    assert at >= 15


@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
def test_connection_cut_at_every_call(board: LightBoard, tmp_path: Path, arrives: bool) -> None:
    def fault(shell: BoardShell, at: int, folder: Folder) -> bool:
        try:
            _provision(Cut(shell, at, arrives=arrives), folder)
        except BoardUnreachableError:
            return True
        return False

    _walk(board, tmp_path, fault)


def test_power_cut_after_every_call(board: LightBoard, tmp_path: Path) -> None:
    """The board restarts without unmounting; its rcS mounts whatever it finds."""

    def fault(shell: BoardShell, at: int, folder: Folder) -> bool:
        try:
            _provision(Cut(shell, at, arrives=True, then=board.reboot), folder)
        except BoardUnreachableError:
            return True
        return False

    _walk(board, tmp_path, fault)


_KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import test_storage_faults as faults
from pathlib import Path
address, at, root, *options = sys.argv[2:]
shell = faults.SshShell("vb", f"root@{address}", options)
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
cut = faults.Cut(shell, int(at), arrives=True, then=die)
faults._provision(cut, faults.Folder(Path(root), "vb"))
"""


def test_controller_killed_after_every_call(board: LightBoard, tmp_path: Path) -> None:
    def fault(shell: BoardShell, at: int, folder: Folder) -> bool:
        arguments = [
            *(str(Path(__file__).parent), board.settings.address, str(at)),
            *(str(folder.path.parent), *board.ssh_options()),
        ]
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, *arguments], capture_output=True, check=False
        )
        assert done.returncode in (0, -9), done.stderr.decode()
        return done.returncode == -9

    _walk(board, tmp_path, fault)


def test_several_runs_that_die_in_a_row(board: LightBoard, tmp_path: Path) -> None:
    """Each run comes a little further than the one before, and dies."""
    files = _fresh(board)
    folder = Folder(tmp_path, "vb")
    for at in range(2, 40):
        try:
            _provision(Cut(_ssh(board), at, arrives=at % 2 == 0), folder)
        except BoardUnreachableError:
            continue
        break
    _finish(board, folder, files, "after many")


@pytest.mark.parametrize("after_bytes", [300_000, 20_000_000, 50_000_000])
def test_network_cut_in_the_middle_of_a_transfer(
    board: LightBoard, tmp_path: Path, after_bytes: int
) -> None:
    files = _fresh(board)
    folder = Folder(tmp_path, "vb")
    board.faults.ssh_cut(after_bytes=after_bytes)
    with pytest.raises(BoardUnreachableError, match="vb: ssh failed"):
        _provision(_ssh(board), folder)
    board.faults.clear()
    _finish(board, folder, files, f"cut after {after_bytes} bytes")


def test_replacement_that_is_not_wished_any_more_is_given_up(
    board: LightBoard, tmp_path: Path
) -> None:
    files = _fresh(board)
    folder = Folder(tmp_path, "vb")
    with pytest.raises(BoardUnreachableError):
        _provision(Cut(_ssh(board), 'cat "$p"'), folder)
    assert " ro," in checked(_ssh(board), "grep ' /sharefs ' /proc/mounts")
    job = ensure_filesystem(_ssh(board), Target(), Wish(replace=False), folder)
    assert [step.name for step in job.steps] == ["give-up"] and "fat16" in job.message
    facts = ensure_mount(_ssh(board), Target(), check=True).facts
    assert facts.sharefs is not None and not facts.sharefs.read_only and not facts.marker
    assert _files(board) == files and not folder.path.exists()
    checked(_ssh(board), "echo more >/sharefs/more.txt")


def test_partition_blanked_between_two_runs_is_made_again(
    board: LightBoard, tmp_path: Path
) -> None:
    files = _fresh(board)
    folder = Folder(tmp_path, "vb")
    with pytest.raises(BoardUnreachableError):
        _provision(Cut(_ssh(board), "tar -xf", arrives=True), folder)
    blank = "umount /sharefs; dd if=/dev/zero of=/dev/mmcblk1p4 bs=65536 count=16 conv=fsync"
    checked(_ssh(board), blank)
    _finish(board, folder, files, "blanked")


def test_other_card_is_never_given_these_files(board: LightBoard, tmp_path: Path) -> None:
    """The board gets a freshly flashed card while files of the old one are on the controller."""
    files = _fresh(board)
    folder = Folder(tmp_path, "vb")
    with pytest.raises(BoardUnreachableError):
        _provision(Cut(_ssh(board), "mkfs.ext4 -q"), folder)
    other = _fresh(board)
    assert other != files
    with pytest.raises(StorageError, match=r"expected the note of the run that saved its files"):
        _provision(_ssh(board), folder)
    assert _files(board) == other
    assert len(list((folder.path / "blobs").iterdir())) >= 5


@pytest.mark.parametrize("at", ["mkfs.ext4 -q", "tar -xf"])
def test_file_written_between_two_runs_is_neither_lost_nor_overwritten(
    board: LightBoard, tmp_path: Path, at: str
) -> None:
    """A run dies before files are put back; somebody writes one of the same name."""
    files = _fresh(board)
    folder = Folder(tmp_path, "vb")
    with pytest.raises(BoardUnreachableError):
        _provision(Cut(_ssh(board), at, arrives=at.startswith("mkfs")), folder)
    checked(_ssh(board), "mkdir -p /sharefs/app; echo new >/sharefs/app/README.txt; sync")
    with pytest.raises(StorageError, match=r"app/README\.txt .*somebody wrote it meanwhile"):
        _provision(_ssh(board), folder)
    checked(_ssh(board), "mv /sharefs/app/README.txt /sharefs/app/NEW.txt; sync")
    _provision(_ssh(board), folder)
    after = _files(board)
    assert after.pop("./app/NEW.txt")
    assert after == files
