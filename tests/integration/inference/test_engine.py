"""Boards work on a run together: exactly once, equal to the host, resumed, refused clearly."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from k230_lib.board.console import MshConsole
from k230_lib.board.shell import SshShell
from k230_lib.errors import (
    BoardCommandError,
    BoardSpaceError,
    ConsoleBusyError,
    ResultsError,
    RunnerError,
    StorageError,
    WrongConsoleError,
)
from k230_lib.report.figures import compute

pytestmark = [pytest.mark.board, pytest.mark.slow]

Make = Callable[..., Any]


def query(run: Any, sql: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(run.database)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_two_boards_compute_all_once_and_like_the_host(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(2), make_world(200)
    run = rack.open(world, cross_check=0.1)
    workers = [rack.start(board, run) for board in rack.boards]
    outcomes = [worker.outcome() for worker in workers]
    check_complete(run, world)
    assert sum(outcome.computed for outcome in outcomes) == world.count
    assert all(outcome.computed > 0 for outcome in outcomes)
    assert all(outcome.golden_difference == 0.0 for outcome in outcomes)
    figures = compute(run)
    assert figures.complete
    assert figures.top1_count == int(np.sum(world.logits.argmax(axis=1) == world.labels))
    assert figures.host is not None
    assert figures.host.top5_equal == world.count
    assert figures.cross_checked == 20
    assert figures.cross_disagreeing == ()
    # A second start finds nothing to do and does not even open the console.
    again = [rack.start(board, run) for board in rack.boards]
    for worker in again:
        kind, outcome, traffic = worker.answer()
        assert kind == "done"
        assert (outcome.computed, outcome.checked) == (0, 0)
        assert traffic["round_trips"] == 0


def test_board_is_left_clean(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(40)
    rack.start(rack.boards[0], rack.open(world)).outcome()
    left = rack.shell(rack.boards[0]).run("cd /sharefs/k230 && ls shards results").text.split()
    assert left == ["results:", "shards:"]


def test_bytes_and_round_trips_per_image(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(512)
    worker = rack.start(rack.boards[0], rack.open(world), golden=False)
    _, outcome, traffic = worker.answer()
    assert outcome.computed == 512
    chunks = outcome.computed / 64 + 4
    assert traffic["round_trips"] <= 10 + 5 * chunks


def test_second_run_on_a_board_is_refused_with_the_holder(
    make_rack: Make, make_world: Make
) -> None:
    rack, world = make_rack(1), make_world(40)
    run = rack.open(world, pace_ms=50)
    first = rack.start(rack.boards[0], run)
    time.sleep(1.5)
    second = rack.start(rack.boards[0], run)
    with pytest.raises(ConsoleBusyError, match=rf"in use by process {first.process.pid} "):
        second.outcome()
    other = rack.start(rack.boards[0], rack.open(world, repeats=2))
    with pytest.raises(ConsoleBusyError, match=rf"in use by process {first.process.pid} \("):
        other.outcome()
    assert first.outcome().computed == 40


def test_stale_results_of_an_earlier_run_are_not_believed(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(1), make_world(30)
    run = rack.open(world, pace_ms=100)
    board = rack.boards[0]
    worker = rack.start(board, run, golden=False)
    shell = rack.shell(board)
    # Something with a record in it, of the same samples.
    found = shell.run(
        "cd /sharefs/k230; for i in $(seq 200); do f=$(ls results/*.res 2>/dev/null | head -n 1); "
        '[ -n "$f" ] && [ $(wc -c <$f) -gt 200 ] && cp $f stale && exit; sleep 0.1; done; exit 1'
    )
    assert found.rc == 0
    worker.kill()
    other = rack.open(world, repeats=2)

    def plant(script: str, plain: SshShell) -> None:
        # The script that sends a list has its name; its results are to lie there before it runs.
        for name in re.findall(r"shards/(\w+)\.list", script):
            plain.run(f"cd /sharefs/k230 && cp stale results/{other.id}-{name}.res && : >planted")

    rack.start(board, other, tamper=plant).outcome()
    assert shell.run("rm /sharefs/k230/planted /sharefs/k230/stale").rc == 0
    check_complete(other, world)


def test_full_card_stops_that_board_only(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(2), make_world(80)
    run = rack.open(world)
    full, good = rack.boards
    full.faults.fill_card(leave_bytes=0)
    with pytest.raises(BoardSpaceError, match=rf"^{full.name}: .*Next: delete files"):
        rack.start(full, run).outcome()
    rack.start(good, run).outcome()
    check_complete(run, world)
    (row,) = query(run, f"SELECT state, message FROM boards WHERE board = '{full.name}'")
    assert row[0] == "failed"
    assert full.name in row[1]


def test_little_space_is_enough(make_rack: Make, make_world: Make, check_complete: Make) -> None:
    rack, world = make_rack(1), make_world(200)
    rack.boards[0].faults.fill_card(leave_bytes=(8 << 20) + (1 << 20) + 130_000)
    rack.start(rack.boards[0], rack.open(world)).outcome()
    check_complete(rack.open(world), world)


def test_read_only_card(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(20)
    board = rack.boards[0]
    board.faults.read_only()
    try:
        with pytest.raises(StorageError, match=r"mounted read-only\. Next: check the file system"):
            rack.start(board, rack.open(world)).outcome()
    finally:
        board.faults.read_only(False)


def test_missing_sharefs_daemon_is_told_and_does_not_hang(
    make_rack: Make, make_world: Make
) -> None:
    rack, world = make_rack(1), make_world(20)
    board = rack.boards[0]
    board.faults.stop_sharefs()
    try:
        with pytest.raises(BoardCommandError, match="the sharefs daemon does not run"):
            rack.start(board, rack.open(world)).outcome()
    finally:
        board.reboot()


def test_linux_on_the_console_port(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(20)
    board = rack.boards[0]
    board.faults.wrong_console()
    try:
        with pytest.raises(WrongConsoleError, match="Linux answers"):
            rack.start(board, rack.open(world)).outcome()
    finally:
        board.faults.wrong_console(False)


def test_missing_runner(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(20)
    with pytest.raises(RunnerError, match="msh cannot run /sharefs/k230/bin/none"):
        rack.start(rack.boards[0], rack.open(world), runner="/sharefs/k230/bin/none").outcome()


def test_board_that_computes_something_else_is_stopped(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(20)
    wrong = world.logits + np.float32(0.01)
    np.savez(world.host, indices=np.arange(world.count), logits=wrong)
    run = rack.open(world)
    with pytest.raises(ResultsError, match=r"golden sample c\d/0.png differs .* by 0.01"):
        rack.start(rack.boards[0], run).outcome()
    assert run.queue().counts().done == 0


def test_console_is_free_after_a_run(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(10)
    board = rack.boards[0]
    rack.start(board, rack.open(world)).outcome()
    with MshConsole.open(board.settings.console, board.name) as console:
        assert console.run("echo free") == "free"


def test_upstream_runner_one_process_per_image(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    """``k230_runner`` knows the flags of ``executor_runner`` and writes the same log and files."""
    rack, world = make_rack(2), make_world(24)
    run = rack.open(world, cross_check=0.2)
    workers = [rack.start(board, run, upstream=True) for board in rack.boards]
    outcomes = [worker.outcome() for worker in workers]
    check_complete(run, world)
    assert sum(outcome.checked for outcome in outcomes) == 5
    assert all(row[0] > 0 for row in query(run, "SELECT latency_ns FROM results"))
    left = rack.shell(rack.boards[0]).run("cd /sharefs/k230 && ls shards results").text.split()
    assert left == ["results:", "shards:"]


def test_upstream_runner_that_cannot_run_stops_the_board(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(8)
    with pytest.raises(RunnerError, match="msh cannot run /sharefs/k230/bin/none"):
        rack.start(
            rack.boards[0], rack.open(world), upstream=True, runner="/sharefs/k230/bin/none"
        ).outcome()
