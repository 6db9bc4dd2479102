"""Scheduling, overhead and memory at scale; prints what it measured."""

from __future__ import annotations

import itertools
import json
import os
import resource
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from k230_lib.inference.progress import BoardProgress

pytestmark = [pytest.mark.board, pytest.mark.fault, pytest.mark.timeout(1200)]

Make = Callable[..., Any]
PACE_MS = 75.0
SLOWER = 5.0
SECONDS = 60.0


def spans(run: Any) -> list[tuple[str, float, float, int]]:
    """(board, started, ended, samples) of every chunk, in the order of starting."""
    db = sqlite3.connect(run.database)
    try:
        return db.execute(
            "SELECT board, started, ended, computed FROM chunks WHERE kind = 'main' ORDER BY 2"
        ).fetchall()
    finally:
        db.close()


@pytest.mark.parametrize("boards", [1, 2, 4, 8])
def test_boards_share_the_work_by_their_speed(
    make_rack: Make, make_world: Make, check_complete: Make, boards: int
) -> None:
    """Every board but one takes 75 ms an image, the last one five times as long."""
    paces = [PACE_MS] * (boards - 1) + [PACE_MS * (SLOWER if boards > 1 else 1)]
    rate = sum(1000.0 / pace for pace in paces)
    rack, world = make_rack(boards), make_world(int(rate * SECONDS))
    begin = time.time()
    workers = [
        rack.start(board, rack.open(world, pace_ms=pace))
        for board, pace in zip(rack.boards, paces, strict=True)
    ]
    outcomes = [worker.outcome() for worker in workers]
    run = rack.open(world)
    check_complete(run, world)
    assert sum(outcome.computed for outcome in outcomes) == world.count
    chunks = spans(run)
    end = max(chunk[2] for chunk in chunks)
    wall, ideal = end - begin, world.count / rate
    last = {board: max(c[2] for c in chunks if c[0] == board) for board in {c[0] for c in chunks}}
    waited = max(end - moment for moment in last.values())
    print(
        f"\n{boards} boards: {world.count} images, {wall:.1f} s, ideal {ideal:.1f} s, ratio "
        f"{wall / ideal:.3f}; longest wait at the end {waited:.1f} s"
    )
    assert wall <= 1.15 * ideal
    assert waited <= 64 * PACE_MS / 1000


def test_overhead_per_image(make_rack: Make, make_world: Make) -> None:
    """Between the starts of two full chunks there is little but the computing itself."""
    rack, world = make_rack(1), make_world(1000)
    run = rack.open(world, pace_ms=40.0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, outcome, traffic = rack.start(rack.boards[0], run).answer()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    chunks = spans(run)
    overheads = [
        (following[1] - chunk[1]) / chunk[3] - 0.040
        for chunk, following in itertools.pairwise(chunks)
        if chunk[3] == 64
    ]
    overhead = 1000 * sum(overheads) / len(overheads)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    model = run.model_file.stat().st_size
    ratio = (traffic["bytes_sent"] - model) / (world.count * run.header.nbytes)
    print(
        f"\noverhead {overhead:.2f} ms per image over {len(overheads)} full chunks; controller "
        f"{1000 * cpu / world.count:.2f} ms CPU per image; {traffic['round_trips']} round trips "
        f"for {len(chunks)} chunks; bytes sent / tensor bytes {ratio:.4f}"
    )
    assert outcome.computed == world.count
    assert len(overheads) >= 8
    assert overhead <= 5.0
    assert traffic["round_trips"] <= 10 + 5 * len(chunks)


def test_bytes_sent_per_image_of_real_size(make_rack: Make, make_world: Make) -> None:
    """Lists, probes and packing cost at most two per cent of what a 64x64 image has."""
    rack, world = make_rack(1), make_world(1000)
    run = rack.open(world)
    _, _, traffic = rack.start(rack.boards[0], run, golden=False).answer()
    extra = traffic["bytes_sent"] - world.count * run.header.nbytes - run.model_file.stat().st_size
    print(f"\n{extra / world.count:.1f} bytes per image besides its tensor")
    assert extra / world.count <= 0.02 * 64 * 64 * 3


def test_memory_does_not_grow(
    make_rack: Make, make_world: Make, check_complete: Make, tmp_path: Path
) -> None:
    """3923 samples on two boards: what the process has at sample 500 is what it has at the end."""
    rack, world = make_rack(2), make_world(3923)
    run = rack.open(world)

    def watch(name: str) -> Callable[[BoardProgress], None]:
        seen: dict[str, int] = {}

        def report(progress: BoardProgress) -> None:
            pages = int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1])
            if progress.done >= 500:
                seen.setdefault("at 500", pages * 4)
            seen["at end"] = pages * 4
            if progress.phase == "done":
                (tmp_path / name).write_text(json.dumps(seen))

        return report

    begin = time.time()
    workers = [rack.start(board, run, report=watch(board.name)) for board in rack.boards]
    for worker in workers:
        worker.outcome()
    check_complete(run, world)
    for board in rack.boards:
        seen = json.loads((tmp_path / board.name).read_text())
        print(f"\n{board.name}: {seen} KiB, {time.time() - begin:.1f} s for both")
        assert seen["at end"] <= 1.10 * seen["at 500"]
