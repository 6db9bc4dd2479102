"""``profile.yml`` as a user calls it: the real MobileNetV2, two boards, two variants."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from k230_lib.virtual.testing import virtual_board

pytestmark = [pytest.mark.slow, pytest.mark.board]

REPOSITORY = Path(__file__).resolve().parents[3]
NUMBERS = (186, 187)
MODEL = "mobilenet_v2-for-profiles"
STATISTICS = {
    "min_ms": "min (ms)",
    "median_ms": "p50 (ms)",
    "p90_ms": "p90 (ms)",
    "mean_ms": "avg (ms)",
    "max_ms": "max (ms)",
}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An inventory of two running boards."""
    path = tmp_path_factory.mktemp("inventory") / "hosts.yml"
    with ExitStack() as stack:
        hosts = {}
        for number in NUMBERS:
            board = stack.enter_context(virtual_board(number, cache=REPOSITORY / ".k230" / "cache"))
            status = board.status()
            hosts[board.name] = {"ansible_host": status.address, "k230_console": status.console}
        common = {
            "ansible_user": "root",
            "ansible_ssh_common_args": (
                "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR"
            ),
            "k230_target": "host",
            "k230_virtual": True,
        }
        path.write_text(yaml.safe_dump({"k230": {"hosts": hosts, "vars": common}}))
        yield path


@pytest.fixture(scope="module")
def play(inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Calls the play; returns what it printed. All calls share one folder of runs."""
    runs = tmp_path_factory.mktemp("runs")

    def call(*words: str, rc: int = 0, **extra: Any) -> str:
        variables = {
            "model_name": "mobilenet_v2",
            "model_weights": "random:0",
            "model_folder_name": MODEL,
            "profiling_variants": ["portable", "k230"],
            "profiling_baseline": "portable",
            "profiling_executions": 3,
            "profiling_runs": str(runs),
            **extra,
        }
        tool = Path(sys.executable).with_name("ansible-playbook")
        done = subprocess.run(
            [str(tool), "-i", str(inventory), "-e", json.dumps(variables), "profile.yml", *words],
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == rc, done.stdout[-4000:] + done.stderr[-2000:]
        return done.stdout

    call.runs = runs  # type: ignore[attr-defined]
    return call


@pytest.fixture(scope="module")
def first(play: Any) -> str:
    """What the first call printed."""
    text: str = play()
    return text


@pytest.fixture(scope="module")
def run(first: str, play: Any) -> Path:
    """The folder of its traces and reports."""
    (folder,) = play.runs.iterdir()
    return folder


def test_the_play_ends_with_the_answer(first: str) -> None:
    assert re.search(r"k230 is \d+\.\d\dx as fast as portable", first)
    assert "next: Speed up 1x1 convolution" in first
    assert "Warning" not in first
    assert "cpuinfo" not in first


def test_every_figure_agrees_with_inspector_on_the_same_files(run: Path) -> None:
    """Cell by cell, for both variants on both boards."""
    from executorch.devtools import Inspector

    record = REPOSITORY / "artifacts" / "models" / MODEL / "model.etrecord"
    traces = sorted(run.glob("*/*/model.etdump"))
    assert len(traces) == 4
    for trace in traces:
        variant, board = trace.parts[-3:-1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inspector = Inspector(etdump_path=str(trace), etrecord=str(record))
            theirs = inspector.to_dataframe(include_units=True)
        # Kernels of ours have events of their own names; calls and framework events are others.
        kernels = theirs[theirs["event_name"].str.contains(r"native_call_|k230::")]
        ours = pd.read_parquet(run / "report" / "tables" / f"events-{variant}.{board}.parquet")
        ours = ours.sort_values("order", ignore_index=True)
        assert len(ours) == len(kernels) == 99
        for mine, other in STATISTICS.items():
            np.testing.assert_allclose(ours[mine], kernels[other], rtol=1e-12)
        for (_, row), (_, kernel) in zip(ours.iterrows(), kernels.iterrows(), strict=True):
            assert row["operator"] in kernel["op_types"]
            stacks = kernel["module_hierarchy"].values()
            assert row["module"] in [list(stack.values())[-1][0] for stack in stacks]
            source = row["source"].rpartition(":")[2]
            assert any(f", line {source}," in text for text in kernel["stack_traces"].values())


def test_the_slowest_operator_is_named_with_module_and_source_line(run: Path) -> None:
    for table in sorted((run / "report" / "tables").glob("events-*.parquet")):
        top = pd.read_parquet(table).iloc[0]
        assert top["operator"] == "aten.convolution.default"
        assert top["module"].startswith("features.")
        assert re.fullmatch(r"torchvision/models/mobilenetv2\.py:\d+", top["source"])


def test_captures_say_what_ran_and_times_agree_with_the_runner(run: Path) -> None:
    for path in run.glob("*/*/capture.json"):
        capture = json.loads(path.read_text())
        assert capture["origin"] == "measured_here"
        assert len(capture["wall_ms"]) == 3
        assert capture["runner_sha256"]
        assert "ETDump written" in path.with_name("runner.log").read_text()
    summary = pd.read_parquet(run / "report" / "tables" / "summary.parquet")
    np.testing.assert_allclose(summary["execute_ms"], summary["wall_ms"], rtol=0.05)


def test_the_comparison_joins_all_operators(run: Path) -> None:
    table = pd.read_parquet(run / "report" / "tables" / "comparison-events.parquet")
    assert len(table) == 99
    assert table["k230_speedup"].notna().all()
    page = (run / "report" / "report.html").read_text()
    assert "aten.<" in page
    assert MODEL.partition("-")[0] in page


def test_a_second_call_does_nothing_twice(first: str, play: Any) -> None:
    text = play()
    assert not re.search(r"vb\d+: traced", text)
    recap = text[text.index("PLAY RECAP") :]
    assert re.findall(r"changed=(\d+)", recap) == ["0", "0"]


def test_check_mode_says_that_nothing_would_be_done(first: str, play: Any) -> None:
    recap = play("--check").partition("PLAY RECAP")[2]
    assert re.findall(r"changed=(\d+)", recap) == ["0", "0"]


def test_a_limit_fails_the_play_with_the_reason(first: str, play: Any) -> None:
    text = play(rc=2, profiling_baseline="k230", profiling_fail_slower=5)
    assert "slower than allowed: portable" in text


def test_a_board_that_is_down_fails_alone_and_the_report_is_made(
    first: str, play: Any, run: Path, tmp_path: Path
) -> None:
    extra = tmp_path / "gone.yml"
    nowhere = {
        "ansible_host": "127.0.0.1",
        "ansible_port": 9,
        "k230_console": "socket://127.0.0.1:9",
    }
    extra.write_text(yaml.safe_dump({"k230": {"hosts": {"gone": nowhere}}}))
    page = run / "report" / "report.html"
    page.unlink()
    text = play("-i", str(extra), rc=4, k230_wait_timeout=5)
    assert page.exists()
    recap = text.partition("PLAY RECAP")[2]
    assert re.search(r"gone +: .*unreachable=1", recap)
    assert re.findall(r"vb\d+ +: .*unreachable=0 +failed=0", recap)
