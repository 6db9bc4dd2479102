"""The jobs against recorded answers: what happens when the board does not do what it was told."""

from __future__ import annotations

import re
from collections.abc import Callable
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
from k230_lib.board.shell import CommandResult
from k230_lib.board.sizes import parse_size
from k230_lib.errors import BoardCommandError, StorageError

Transcript = Callable[[str], str]
_ALL = parse_size("100%")


class Recorded:
    """A board that answers with recorded texts, one after the other."""

    board = "b1"

    def __init__(self, *answers: str | CommandResult) -> None:
        self._answers = list(answers)
        self.scripts: list[str] = []

    def run(self, script: str, **options: object) -> CommandResult:
        self.scripts.append(script)
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return CommandResult(0, answer.encode(), b"")
        return answer


def _kernel_size(text: str, sectors: int) -> str:
    return re.sub(r"(mmcblk1p4 \S+ 524288) \d+", rf"\g<1> {sectors}", text)


@pytest.fixture
def stock(transcript: Transcript) -> str:
    return transcript("sdk19-stock")


@pytest.fixture
def done(transcript: Transcript) -> str:
    return transcript("sdk19-provisioned")


@pytest.fixture
def grown(stock: str, done: str) -> str:
    """The stock files on a partition that was grown."""
    sample = re.search(r"@@sample\n.*?(?=@@end)", stock, re.DOTALL)
    assert sample
    return re.sub(r"@@sample\n.*?(?=@@end)", lambda _: sample[0], done, flags=re.DOTALL)


@pytest.fixture
def short(grown: str) -> str:
    """A whole table on the larger card, with the partition as it was."""
    # taken from the provisioned card: its kernel has not heard of the new size
    return _kernel_size(grown, 524288)


def test_check_mode_asks_once_and_writes_nothing(stock: str, tmp_path: Path) -> None:
    target, folder = Target(), Folder(tmp_path, "b1")
    wish = Wish(replace=True)
    for job in (
        lambda shell: ensure_table(shell, target, check=True),
        lambda shell: ensure_size(shell, target, _ALL, check=True),
        lambda shell: ensure_filesystem(shell, target, wish, folder, check=True, size=_ALL),
        lambda shell: ensure_mount(shell, target, check=True),
        lambda shell: foresee(shell, target, _ALL, wish, folder),
    ):
        shell = Recorded(stock)
        job(shell)
        assert len(shell.scripts) == 1
    assert not list(tmp_path.iterdir())


def test_kernel_that_cannot_be_told_the_new_size_needs_a_reboot(short: str) -> None:
    outcome = ensure_size(Recorded(short, "", short), Target(), _ALL)
    assert outcome.reboot_required
    assert "reboot the board, then run again" in outcome.message


def test_kernel_that_heard_of_it_late_is_fine(short: str, grown: str) -> None:
    shell = Recorded(short, "", grown)
    outcome = ensure_size(shell, Target(), _ALL)
    assert outcome.changed and not outcome.reboot_required
    assert "resizepart 4 2097118s" in shell.scripts[1]


def test_repair_that_did_not_take_is_an_error(stock: str) -> None:
    with pytest.raises(BoardCommandError, match=r"after the repair: the backup table belongs"):
        ensure_table(Recorded(stock, "", stock), Target())


@pytest.mark.parametrize(
    ("code", "words"), [(75, "another storage command"), (76, "was restarted or its partition")]
)
def test_guards_of_the_scripts_speak_plainly(stock: str, code: int, words: str) -> None:
    with pytest.raises(StorageError, match=f"b1: step gpt: .*{words}"):
        ensure_table(Recorded(stock, CommandResult(code, b"", b"")), Target())


def test_failed_command_is_told_with_its_last_line(stock: str) -> None:
    failed = CommandResult(1, b"dd: writing '/dev/mmcblk1': Input/output error\n", b"")
    with pytest.raises(BoardCommandError, match=r"step gpt ended with status 1: dd: writing"):
        ensure_table(Recorded(stock, failed), Target())


def test_who_came_between_look_and_step_is_named(stock: str, transcript: Transcript) -> None:
    busy = CommandResult(1, b"umount: can't unmount /sharefs: Device or resource busy\n", b"")
    whole = transcript("sdk19-provisioned")
    shell = Recorded(_read_only(whole), busy, transcript("sdk19-held"))
    with pytest.raises(StorageError, match=r"in use by .*sleep 5 \(pid 256\)"):
        ensure_mount(shell, Target())


def test_mount_that_did_not_take_is_an_error(done: str) -> None:
    shell = Recorded(_read_only(done), "", _read_only(done))
    with pytest.raises(BoardCommandError, match="/sharefs is read-only"):
        ensure_mount(shell, Target())


def test_saved_files_of_another_controller_stop_everything(stock: str, tmp_path: Path) -> None:
    marked = stock.replace("@@marker\n", "@@marker\n0123456789ab lab:/srv/storage/b1\n")
    folder, wish = Folder(tmp_path, "b1"), Wish(replace=True)
    for job in (
        lambda: foresee(Recorded(marked), Target(), _ALL, wish, folder),
        lambda: ensure_filesystem(Recorded(marked), Target(), wish, folder),
    ):
        with pytest.raises(StorageError, match=r"saved to lab:/srv/storage/b1"):
            job()


def _read_only(text: str) -> str:
    return text.replace("ext4 /dev/mmcblk1p4 rw", "ext4 /dev/mmcblk1p4 ro")
