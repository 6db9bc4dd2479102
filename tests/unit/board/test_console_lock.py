"""The right to a console: one holder at a time, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import pytest

from k230_lib.board.console_wire import ConsoleLock
from k230_lib.errors import ConsoleBusyError

URL = "socket://127.0.0.1:65001"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "k230-console-locks"


def test_the_second_is_told_who_holds_it(own_folder: Path) -> None:
    lock = ConsoleLock(URL, "board1")
    with pytest.raises(ConsoleBusyError, match=r"process \d+ .* for board board1 since"):
        ConsoleLock(URL.replace("127.0.0.1", "localhost"), "board2")
    lock.release()
    ConsoleLock(URL, "board2").release()
    assert not list(own_folder.iterdir())


def _fight(folder: Path, rounds: int) -> None:
    """Take and give back the lock many times; a mark of another holder is an error."""
    mark, taken = folder / "mark", 0
    while taken < rounds:
        try:
            lock = ConsoleLock(URL, "board1")
        except ConsoleBusyError:
            continue
        mark.open("x").close()
        mark.unlink()
        lock.release()
        taken += 1


def test_it_never_has_two_holders(tmp_path: Path, own_folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    fighters = [context.Process(target=_fight, args=(tmp_path, 100)) for _ in range(4)]
    for fighter in fighters:
        fighter.start()
    for fighter in fighters:
        fighter.join(60)
    assert [fighter.exitcode for fighter in fighters] == [0, 0, 0, 0]
    assert not list(own_folder.iterdir())
