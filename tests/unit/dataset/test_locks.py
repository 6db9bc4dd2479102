from __future__ import annotations

import threading
from pathlib import Path

from k230_lib.dataset.locks import only_one, remove_leftovers, temporary


def test_a_second_one_waits_and_says_so(tmp_path: Path) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def say(line: str) -> None:
        order.append(line)
        waiting.set()

    def second() -> None:
        with only_one(tmp_path / "set", say):
            order.append("second")

    thread = threading.Thread(target=second)
    with only_one(tmp_path / "set", say):
        thread.start()
        assert waiting.wait(10)
        order.append("first done")
    thread.join(10)
    assert order == [
        f"waiting for another process that makes {tmp_path / 'set'}",
        "first done",
        "second",
    ]


def test_only_what_dead_processes_left_is_removed(tmp_path: Path) -> None:
    ours = temporary(tmp_path / "a.bin")
    # above every possible pid
    dead = tmp_path / "b.bin.99999999.tmp"
    other = tmp_path / "notes.tmp"
    for path in (ours, dead, other):
        path.touch()
    remove_leftovers(tmp_path)
    assert (ours.exists(), dead.exists(), other.exists()) == (True, False, True)
