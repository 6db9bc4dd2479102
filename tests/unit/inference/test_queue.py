"""The queue of a run, with a real database and real processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from k230_lib.errors import InputError
from k230_lib.inference.chunks import Chunk, QueuedSample
from k230_lib.inference.queue import RunQueue
from k230_lib.inference.queue_outcomes import Failure
from k230_lib.inference.results import ResultRecord

IDENTITY = {"model": "m", "dataset": "d"}


def sample(number: int, shard_size: int = 64) -> QueuedSample:
    return QueuedSample(
        id=number,
        shard=f"shard-{number // shard_size:05d}",
        offset=number % shard_size * 100,
        nbytes=100,
        crc32=number * 7,
        label=number % 10,
        path=f"c{number % 10}/{number}.png",
    )


def record(number: int, shift: float = 0.0) -> ResultRecord:
    logits = np.arange(10, dtype=np.float32) + number + np.float32(shift)
    return ResultRecord(0, number, 0, 1000 * number, number * 7, 1, logits)


def records(chunk: Chunk, shift: float = 0.0) -> list[ResultRecord]:
    return [record(s.id, shift) for s in chunk.samples]


def ids(chunk: Chunk | None) -> list[int]:
    assert chunk is not None
    return [s.id for s in chunk.samples]


def make(folder: Path, count: int = 10, check: float = 0.0, shard_size: int = 64) -> RunQueue:
    queue = RunQueue(folder / "run.sqlite")
    queue.fill(IDENTITY, (sample(n, shard_size) for n in range(count)), check)
    return queue


def test_every_sample_is_handed_out_once(tmp_path: Path) -> None:
    queue = make(tmp_path, 10)
    first, second = queue.lease("b1", 4), queue.lease("b2", 100)
    assert ids(first) == [0, 1, 2, 3]
    assert ids(second) == [4, 5, 6, 7, 8, 9]
    assert queue.lease("b3", 1) is None
    counts = queue.counts()
    assert (counts.total, counts.leased, counts.open, counts.done) == (10, 10, 0, 0)
    assert first is not None
    assert queue.commit(first, "b1", records(first)) == 4
    assert queue.counts().done == 4
    assert queue.counts().left == 6


def test_a_chunk_lies_within_one_shard_and_the_space_given(tmp_path: Path) -> None:
    queue = make(tmp_path, 20, shard_size=8)
    assert ids(queue.lease("b1", 100)) == list(range(8))
    assert ids(queue.lease("b1", 100, max_bytes=350)) == [8, 9, 10]
    assert ids(queue.lease("b1", 100, max_bytes=0)) == [11]


def test_given_back_chunk_goes_first_to_the_board_that_had_it(tmp_path: Path) -> None:
    queue = make(tmp_path, 12)
    mine, other = queue.lease("b1", 4), queue.lease("b2", 4)
    assert mine is not None and other is not None
    queue.release(mine)
    queue.release(other)
    assert [ids(c) for c in queue.wanted_packs("b2")] == [[4, 5, 6, 7]]
    assert ids(queue.lease("b2", 4)) == [4, 5, 6, 7]
    assert ids(queue.lease("b2", 4)) == [0, 1, 2, 3]


def test_rest_of_a_chunk_keeps_its_packed_file(tmp_path: Path) -> None:
    queue = make(tmp_path, 6)
    chunk = queue.lease("b1", 6)
    assert chunk is not None
    queue.commit(chunk, "b1", [record(0), record(1)])
    again = queue.lease("b1", 6)
    assert again is not None
    assert ids(again) == [2, 3, 4, 5]
    assert [s.id for s in again.pack] == [0, 1, 2, 3, 4, 5]
    queue.release(again)
    elsewhere = queue.lease("b2", 6)
    assert elsewhere is not None
    assert [s.id for s in elsewhere.pack] == [2, 3, 4, 5]


def test_failing_sample_is_tried_on_another_board_once_then_given_up(tmp_path: Path) -> None:
    queue = make(tmp_path, 3)
    queue.board_begins("b1")
    queue.board_begins("b2")
    chunk = queue.lease("b1", 3)
    assert chunk is not None
    queue.commit(chunk, "b1", [record(0), record(2)], [Failure(1, "crashed", "Load Page Fault")])
    assert queue.counts().open == 1
    assert not queue.open_for("b1")
    assert queue.open_for("b2")
    assert queue.lease("b1", 3) is None
    other = queue.lease("b2", 3)
    assert other is not None
    assert ids(other) == [1]
    queue.commit(other, "b2", [], [Failure(1, "crashed again")])
    counts = queue.counts()
    assert (counts.done, counts.quarantined, counts.left) == (2, 1, 0)


def test_single_board_retries_its_own_failures(tmp_path: Path) -> None:
    queue = make(tmp_path, 1)
    queue.board_begins("b1")
    chunk = queue.lease("b1", 1)
    assert chunk is not None
    queue.commit(chunk, "b1", [], [Failure(0, "crashed")])
    assert queue.open_for("b1")
    again = queue.lease("b1", 1)
    assert again is not None
    assert queue.commit(again, "b1", [record(0)]) == 1
    assert queue.counts().left == 0


def test_first_result_counts_and_the_second_is_compared(tmp_path: Path) -> None:
    queue = make(tmp_path, 2)
    chunk = queue.lease("b1", 2)
    assert chunk is not None
    queue.release(chunk)
    second = queue.lease("b2", 2)
    assert second is not None
    assert queue.commit(second, "b2", records(second)) == 2
    assert queue.commit(chunk, "b1", [record(0), record(1, shift=0.5)]) == 0
    rows = queue._db.execute("SELECT sample, board, agrees FROM checks ORDER BY 1").fetchall()
    assert [tuple(row) for row in rows] == [(0, "b1", 1), (1, "b1", 0)]


def test_cross_checks_go_to_another_board(tmp_path: Path) -> None:
    queue = make(tmp_path, 40, check=0.1)
    queue.board_begins("b1")
    queue.board_begins("b2")
    chunk = queue.lease("b1", 40)
    assert chunk is not None
    queue.commit(chunk, "b1", records(chunk))
    assert not queue.checks_wanted("b1")
    assert queue.lease("b1", 40) is None
    assert queue.checks_wanted("b2")
    check = queue.lease("b2", 40)
    assert check is not None
    assert check.kind == "check"
    assert len(check.samples) == 4
    assert not queue.checks_wanted("b2")
    assert queue.commit(check, "b2", records(check)) == 0
    assert queue.counts().done == 40
    assert queue.lease("b2", 40) is None


def test_another_run_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(InputError, match="is a run of another model"):
        RunQueue(tmp_path / "run.sqlite").fill({**IDENTITY, "model": "x"}, [], 0.0)
    RunQueue(tmp_path / "run.sqlite").fill(IDENTITY, [sample(99)], 0.0)
    assert make(tmp_path).counts().total == 10


LEASING = """
import sys, time
from k230_lib.inference.queue import RunQueue
from pathlib import Path
queue = RunQueue(Path(sys.argv[1]))
queue.board_begins("dead")
print([s.id for s in queue.lease("dead", 4).samples], flush=True)
time.sleep(60)
"""


def test_leases_of_a_killed_process_return_at_once(tmp_path: Path) -> None:
    queue = make(tmp_path, 4)
    with subprocess.Popen(
        [sys.executable, "-c", LEASING, queue.path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[0, 1, 2, 3]\n"
        assert queue.lease("b2", 4) is None
        assert "dead" in queue.rates()
        os.kill(process.pid, signal.SIGKILL)
    assert "dead" not in queue.rates()
    assert ids(queue.lease("b2", 4)) == [0, 1, 2, 3]


def test_leases_of_a_silent_machine_return_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make(tmp_path, 2)
    queue.board_begins("far")
    assert queue.lease("far", 2) is not None
    queue._db.execute("UPDATE chunks SET host = 'elsewhere'")
    assert queue.lease("b2", 2) is None
    soon, later = time.time() + 100, time.time() + 200
    monkeypatch.setattr(time, "time", lambda: soon)
    assert queue.lease("b2", 2) is None
    monkeypatch.setattr(time, "time", lambda: later)
    assert ids(queue.lease("b2", 2)) == [0, 1]


def _work(path: Path, board: str) -> None:
    queue = RunQueue(path)
    queue.board_begins(board)
    while (chunk := queue.lease(board, 5)) is not None:
        queue.commit(chunk, board, records(chunk))
    queue.board_ends(board, "done", "")


def test_many_processes_share_the_work_without_loss(tmp_path: Path) -> None:
    queue = make(tmp_path, 400)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_work, args=(queue.path, f"b{n}")) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    rows = queue._db.execute("SELECT COUNT(*), COUNT(DISTINCT board) FROM results").fetchone()
    assert rows[0] == 400
    assert rows[1] > 1
    computed = queue._db.execute("SELECT SUM(computed) FROM chunks").fetchone()[0]
    assert computed == 400
