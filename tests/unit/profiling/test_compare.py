"""Comparison of variants: speed-ups, what is left, what fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from k230_lib.errors import InputError
from k230_lib.profiling.advice import amdahl, next_steps
from k230_lib.profiling.capture import Capture, wall_times
from k230_lib.profiling.compare import Thresholds, compare, failures
from k230_lib.profiling.families import family, type_name
from k230_lib.profiling.profile import ModelFiles, Profile, load_profile
from k230_lib.profiling.testing import MODEL, TIMES_NS, write_etdump, write_etrecord
from k230_lib.profiling.trace import trace_document
from k230_lib.report.profile_page import page


def test_speed_ups_are_per_operator_and_in_total(portable: Profile, faster: Profile) -> None:
    comparison = compare([faster, portable], baseline="portable")
    events = comparison.events
    assert events["order"].to_list() == list(range(len(MODEL)))
    assert events["rvv_speedup"].to_list() == pytest.approx([10, 1, 5, 7, 1, 1, 1])
    (gain,) = comparison.gains
    assert gain.speedup == pytest.approx(2.015 / 0.365)
    assert (gain.accelerated, gain.slowed) == (3, 0)


def test_the_amdahl_remainder_is_what_was_not_accelerated(
    portable: Profile, faster: Profile
) -> None:
    (gain,) = compare([portable, faster]).gains
    # 0.1 ms of other operators and 0.015 ms between operators, of 2.015 ms.
    assert gain.remainder == pytest.approx(0.115 / 2.015)
    assert gain.ceiling == pytest.approx(2.015 / 0.115)


def test_operator_types_are_compared_by_kind_too(portable: Profile, faster: Profile) -> None:
    kinds = compare([portable, faster]).kinds.set_index("kind")
    assert kinds.loc["pointwise", "rvv_speedup"] == pytest.approx(7)
    assert kinds.loc["depthwise", "rvv_speedup"] == pytest.approx(5)


def test_kernels_with_own_names_are_joined_without_an_etrecord(tmp_path: Path) -> None:
    base = load_profile(write_etdump(tmp_path / "a"), Capture("portable", "b"))
    own = {0: "k230::conv", 2: "k230::conv", 3: "k230::conv"}
    times = [[ns // 2 for ns in TIMES_NS]]
    other = load_profile(
        write_etdump(tmp_path / "b", times=times, kernels=own), Capture("rvv", "b")
    )
    operators = compare([base, other]).operators.set_index("operator")
    assert operators.loc["convolution.out", "rvv_speedup"] == pytest.approx(2)
    assert "k230::conv" not in operators.index


def test_another_export_of_the_model_is_joined_by_module(tmp_path: Path, portable: Profile) -> None:
    """Without the activation all instructions have other numbers."""
    fused = [MODEL[0], *MODEL[2:]]
    dump = write_etdump(tmp_path / "f", model=fused, times=[[TIMES_NS[0], *TIMES_NS[2:]]])
    record = write_etrecord(tmp_path / "r", model=fused)
    other = load_profile(dump, Capture("fused", "b"), ModelFiles(record))
    comparison = compare([portable, other])
    events = comparison.events.set_index(["operator", "module"])
    assert events.loc[("aten.addmm.default", "classifier.1"), "fused_speedup"] == pytest.approx(1)
    assert np.isnan(events.loc[("aten.hardtanh.default", "features.0.2"), "fused_ms"])
    assert comparison.gains[0].accelerated == 1


def test_a_fused_convolution_is_compared_with_the_one_it_replaces(
    tmp_path: Path, portable: Profile
) -> None:
    """The clamp behind it is gone, which counts as accelerated."""
    fused = [replace(MODEL[0], target="k230.conv2d_clamp.default"), *MODEL[2:]]
    times = [TIMES_NS[0] // 3, *TIMES_NS[2:]]
    dump = write_etdump(
        tmp_path / "f", model=fused, times=[times], kernels={0: "k230::conv2d_clamp.out"}
    )
    record = write_etrecord(tmp_path / "r", model=fused)
    other = load_profile(dump, Capture("fused", "b"), ModelFiles(record))
    assert other.events.iloc[1]["kind"] == "dense"
    comparison = compare([portable, other])
    events = comparison.events.set_index("module")
    assert events.loc["features.0.0", "fused_speedup"] == pytest.approx(3)
    assert comparison.gains[0].accelerated == 2
    # The second operator of this export is the third of the other.
    assert comparison.event_speedups("fused")[1] == pytest.approx(1)
    assert events.loc["features.0.2", ["portable_order", "fused_order"]].to_list() == [1, -1]
    assert comparison.type_speedup("fused", "k230.conv2d_clamp.default") == pytest.approx(1.9 / 1.3)
    assert comparison.type_speedup("fused", "aten.mean.dim") == pytest.approx(1)
    assert comparison.type_speedup("fused", "aten.relu.default") is None
    assert comparison.type_speedup("portable", "aten.mean.dim") is None
    assert "fused" in page([portable, other], [portable, other], comparison, [])


def test_the_ceiling_is_not_lowered_by_noise(tmp_path: Path) -> None:
    """Operators disturbed in different executions: the median of sums is no sum of medians."""
    noisy = [
        [ns * (4 if (number + run) % 3 == 0 else 1) for number, ns in enumerate(TIMES_NS)]
        for run in range(3)
    ]
    base = load_profile(write_etdump(tmp_path / "a", times=noisy, overhead=0), Capture("a", ""))
    fast = [[ns // 20 for ns in TIMES_NS]] * 3
    other = load_profile(write_etdump(tmp_path / "b", times=fast, overhead=0), Capture("b", ""))
    (gain,) = compare([base, other]).gains
    assert gain.accelerated == len(TIMES_NS)
    assert gain.remainder == 0
    assert gain.ceiling == float("inf")


def test_limits_fail_only_what_is_slower_than_allowed(portable: Profile, faster: Profile) -> None:
    comparison = compare([portable, faster], baseline="rvv")
    assert failures(comparison, Thresholds()) == []
    assert failures(comparison, Thresholds(total_slower=1000)) == []
    (line,) = failures(comparison, Thresholds(total_slower=5))
    assert line.startswith("portable: 2.015 ms per inference, 452.1 % slower than rvv (0.365 ms)")
    (line,) = failures(comparison, Thresholds(operator_slower=5))
    assert "aten.convolution.default" in line
    assert failures(compare([portable, faster]), Thresholds(5, 5)) == []


def test_a_difference_within_the_spread_is_called_noise(tmp_path: Path) -> None:
    noisy = [[ns * factor // 10 for ns in TIMES_NS] for factor in (8, 9, 10, 11, 12)]
    slower = [[ns * 102 // 100 for ns in one] for one in noisy]
    base = load_profile(write_etdump(tmp_path / "a", times=noisy), Capture("a", ""))
    other = load_profile(write_etdump(tmp_path / "b", times=slower), Capture("b", ""))
    assert compare([base, other]).gains[0].within_noise


def test_impossible_comparisons_are_refused(portable: Profile, faster: Profile) -> None:
    with pytest.raises(InputError, match="two or more different variants"):
        compare([portable])
    with pytest.raises(InputError, match="no variant 'scalar'"):
        compare([portable, faster], baseline="scalar")


def test_advice_names_the_bottleneck_and_its_worth(portable: Profile, faster: Profile) -> None:
    first = next_steps(portable)[0]
    assert "dense convolution" in first
    assert "45% of the operators' time" in first
    assert f"{amdahl(0.45, 2):.2f}x" in first
    text = " ".join(next_steps(faster, compare([portable, faster])))
    assert "stays below 17.5x" in text
    assert "Transpose the classifier's weight at export" in text


def test_advice_points_at_what_got_slower(tmp_path: Path, portable: Profile) -> None:
    times = [TIMES_NS[0] // 9, *TIMES_NS[1:3], TIMES_NS[3] * 2, *TIMES_NS[4:]]
    other = load_profile(write_etdump(tmp_path / "s", times=[times]), Capture("rvv", "b"))
    text = " ".join(next_steps(other, compare([portable, other])))
    assert "1 operator loses 0.70 ms" in text


def test_traces_have_a_process_per_board_and_a_thread_per_variant(
    portable: Profile, faster: Profile
) -> None:
    document = json.loads(json.dumps(trace_document([portable, faster])))
    events = document["traceEvents"]
    processes = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    threads = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert (processes, threads) == (["board1"], ["portable", "rvv"])
    shown = [e for e in events if e["ph"] == "X" and e["tid"] == 1]
    assert len(shown) == 3 * (1 + len(MODEL))
    whole, first = shown[0], shown[1]
    assert whole["name"] == "inference 1"
    assert (whole["ts"], whole["dur"]) == (0, 2015)
    assert (first["ts"], first["dur"]) == (1, 900)
    assert first["args"]["module"] == "features.0.0"


def test_operator_types_have_short_names_and_families() -> None:
    assert type_name("aten.convolution.default", "pointwise") == "1x1 convolution"
    assert type_name("aten._native_batch_norm_legit_no_training.default") == "batch_norm"
    assert type_name("k230.conv2d_clamp.default") == "conv2d_clamp"
    assert type_name("convolution.out") == "convolution"
    assert type_name("k230::conv") == "k230::conv"
    assert family("aten.convolution.default", "depthwise") == "depthwise"
    assert family("aten.addmm.default") == "matmul"
    assert family("aten.hardtanh.default") == "activation"


def test_wall_times_are_found_in_what_executor_runner_prints() -> None:
    head = "I 00:00:34.384195 executorch:executor_runner.cpp:524] "
    log = f"{head}Iteration 1 of 2: 12.500000 ms\n{head}Iteration 2 of 2: 11.250000 ms\n"
    together = f"{head}Model executed successfully 2 time(s) in 23.750000 ms.\n"
    assert wall_times(log + together) == (12.5, 11.25)
    assert wall_times(together) == (11.875,)
    assert wall_times("nothing of the kind") == ()


def test_wall_times_that_a_console_damaged_are_not_believed() -> None:
    lines = [
        "Iteration 1 of 2: 12.500000 ms",
        "Iteration 2 of 2: 11.250000 ms",
        "Model executed successfully 2 time(s) in 23.750000 ms.",
    ]
    assert wall_times("\n".join(lines)) == (12.5, 11.25)
    for number in range(3):
        lost = [line for index, line in enumerate(lines) if index != number]
        assert wall_times("\n".join(lost)) == ()
    assert wall_times("\n".join(lines).replace("12.5", "16.5")) == ()
    assert wall_times("\n".join(lines).replace("12.5", "1..5")) == ()
