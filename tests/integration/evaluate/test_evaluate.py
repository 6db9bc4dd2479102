"""The whole run, as a user sees it: evaluate.yml on two virtual boards."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from k230_lib.evaluation.accuracy import rank
from k230_lib.inference.queue import RunQueue

pytestmark = [pytest.mark.board, pytest.mark.slow]

Evaluate = Callable[..., subprocess.CompletedProcess[str]]
REPOSITORY = Path(__file__).resolve().parents[3]
HELD_OUT = 397


def only_run(runs: Path) -> Path:
    (run,) = runs.iterdir()
    return run


def figures_of(run: Path) -> dict[str, object]:
    figures: dict[str, object] = json.loads((run / "run.json").read_text())["figures"]
    return figures


def predictions_of(run: Path) -> list[dict[str, str]]:
    with (run / "predictions.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def recap(output: str) -> dict[str, dict[str, int]]:
    """The counters of Ansible's last lines, by board."""
    return {
        name: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counters)}
        for name, counters in re.findall(r"^(\S+)\s+: (ok=.*)$", output, re.MULTILINE)
    }


def host_logits(model: str, dataset: str) -> dict[int, np.ndarray]:
    with np.load(REPOSITORY / "artifacts" / "host" / f"{model}-{dataset}.npz") as data:
        return dict(zip(data["indices"].tolist(), data["logits"], strict=True))


def test_demo_is_accurate_equals_the_host_and_is_not_done_twice(
    evaluate: Evaluate, runs: Path
) -> None:
    first = evaluate()
    assert first.returncode == 0, first.stdout + first.stderr
    run = only_run(runs)
    figures = figures_of(run)
    assert figures["done"] == figures["total"] == HELD_OUT
    assert figures["top1"] >= 0.95
    assert figures["origin"] == "measured_here"
    assert "Top-1" in first.stdout and "images/s" in first.stdout

    rows = predictions_of(run)
    host = host_logits("digits", "digits")
    assert [int(row["index"]) for row in rows] == list(range(HELD_OUT))
    for row in rows:
        best = rank(host[int(row["index"])][None, :])[0]
        assert row["top5"] == " ".join(map(str, best)), row["path"]
        assert int(row["top1_correct"]) == int(best[0] == int(row["label"])), row["path"]
    assert {row["board"] for row in rows} == {"vb101", "vb102"}
    for board in ("vb101", "vb102"):
        assert "k230_runner" in (run / "console" / f"{board}.log").read_text(errors="replace")

    before = (run / "predictions.csv").read_bytes()
    second = evaluate()
    assert second.returncode == 0, second.stdout + second.stderr
    assert all(counters["changed"] == 0 for counters in recap(second.stdout).values())
    assert (run / "predictions.csv").read_bytes() == before


def test_check_mode_tells_what_is_left_and_writes_nothing(evaluate: Evaluate, runs: Path) -> None:
    checked = evaluate("--check", dataset_limit=30, dataset_name="digits-check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert not runs.exists()
    assert not (REPOSITORY / "artifacts" / "datasets" / "digits-check").exists()
    assert recap(checked.stdout)["vb101"]["changed"] >= 1


def test_limit_lets_one_board_do_it_all(evaluate: Evaluate, runs: Path) -> None:
    done = evaluate("--limit", "vb102", dataset_limit=30, dataset_name="digits-30")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = predictions_of(only_run(runs))
    assert len(rows) == 30
    assert {row["board"] for row in rows} == {"vb102"}


def test_a_board_that_is_down_fails_alone(evaluate: Evaluate, rack, runs: Path) -> None:
    board = rack.boards["vb101"]
    board.stop()
    try:
        done = evaluate(dataset_limit=30, dataset_name="digits-30", k230_wait_timeout=3)
        assert done.returncode != 0
        state = recap(done.stdout)
        assert state["vb101"]["unreachable"] == 1
        assert state["vb102"]["failed"] == state["vb102"]["unreachable"] == 0
        message = next(line for line in done.stdout.splitlines() if "vb101: not ready" in line)
        assert "Next:" in done.stdout[done.stdout.index(message) :]
        assert {row["board"] for row in predictions_of(only_run(runs))} == {"vb102"}
    finally:
        board.start()


def test_a_killed_controller_is_continued_without_computing_anew(
    evaluate: Evaluate, rack, runs: Path
) -> None:
    slow = {"dataset_limit": 60, "dataset_name": "digits-60", "inference_chunk": 8}
    assert evaluate("--check", **slow).returncode == 0
    command = rack.command(
        "ansible-playbook", "evaluate.yml", inference_runs=str(runs), inference_pace_ms=150, **slow
    )
    process = subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        kept = _wait_for_results(runs, at_least=8)
    finally:
        import os

        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert 8 <= len(kept) < 60
    again = evaluate(inference_pace_ms=150, **slow)
    assert again.returncode == 0, again.stdout + again.stderr
    rows = {int(row["index"]): row["latency_ms"] for row in predictions_of(only_run(runs))}
    assert len(rows) == 60
    assert {index: rows[index] for index in kept} == kept


def _wait_for_results(runs: Path, *, at_least: int) -> dict[int, str]:
    """Latencies by sample, once so many are committed."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for database in runs.glob("*/run.sqlite"):
            counts = RunQueue(database).counts()
            if counts.done >= at_least:
                from k230_lib.inference.run import reopen
                from k230_lib.report.figures import predictions

                return {
                    p.index: f"{p.latency_ns / 1e6:.3f}"
                    for p in predictions(reopen(database.parent))
                    if p.latency_ns is not None
                }
        time.sleep(0.1)
    raise AssertionError("no result within two minutes")
