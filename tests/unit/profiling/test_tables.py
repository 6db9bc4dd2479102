"""The tables say what a hand count of the made-up model says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from k230_lib.errors import InputError
from k230_lib.profiling.capture import Capture
from k230_lib.profiling.profile import ModelFiles, Profile, load_profile
from k230_lib.profiling.testing import TIMES_NS, write_etdump


def test_the_slowest_operator_is_named_with_its_module_and_source_line(portable: Profile) -> None:
    first = portable.events.iloc[0]
    assert first["operator"] == "aten.convolution.default"
    assert first["module"] == "features.0.0"
    assert first["source"] == "torchvision/models/mobilenetv2.py:166"
    assert first["code"] == "return self.step166(x)"
    assert first["detail"] == "3x3 3->8 @16x16"


def test_times_are_not_counted_twice(portable: Profile) -> None:
    """A trace holds each operator as kernel and as call, and all of them as Method::execute."""
    assert portable.totals.operators_ms == pytest.approx(sum(TIMES_NS) / 1e6)
    assert portable.totals.execute_ms == pytest.approx((sum(TIMES_NS) + 15_000) / 1e6)
    assert len(portable.events) == len(TIMES_NS)
    assert portable.events["dispatch_ms"].to_list() == pytest.approx([0.002] * len(TIMES_NS))


def test_statistics_are_over_executions(portable: Profile) -> None:
    first = portable.events.iloc[0]
    ms = [0.9, 0.9, 3.6]
    assert first["min_ms"] == pytest.approx(0.9)
    assert first["median_ms"] == pytest.approx(0.9)
    assert first["p90_ms"] == pytest.approx(np.percentile(ms, 90))
    assert first["mean_ms"] == pytest.approx(1.8)
    assert first["max_ms"] == pytest.approx(3.6)


def test_shares_add_up_to_the_whole(portable: Profile) -> None:
    for table in (portable.events, portable.operators, portable.kinds, portable.modules):
        assert table["share"].sum() == pytest.approx(1)
        assert table["cumulative_share"].iloc[-1] == pytest.approx(1)
        assert table["share"].is_monotonic_decreasing


def test_operator_types_gather_their_operators(portable: Profile) -> None:
    first = portable.operators.iloc[0]
    assert (first["operator"], first["operators"]) == ("aten.convolution.default", 3)
    assert first["median_ms"] == pytest.approx(1.9)
    assert first["share"] == pytest.approx(0.95)
    kinds = portable.kinds.set_index("kind")
    assert kinds.loc["pointwise", "median_ms"] == pytest.approx(0.7)
    assert kinds.loc["depthwise", "median_ms"] == pytest.approx(0.3)


def test_modules_gather_their_layers(portable: Profile) -> None:
    modules = portable.modules.set_index("module")["median_ms"]
    assert modules["features.0"] == pytest.approx(0.94)
    assert modules["features.1"] == pytest.approx(1.0)
    assert modules["classifier.1"] == pytest.approx(0.03)
    assert modules["(model)"] == pytest.approx(0.03)


def test_multiply_accumulates_are_counted_from_the_shapes(portable: Profile) -> None:
    macs = portable.events.set_index("order")["macs"]
    assert macs[0] == 16 * 16 * 8 * 3 * 3 * 3
    assert macs[2] == 16 * 16 * 8 * 3 * 3  # depthwise: one input channel for each output
    assert macs[3] == 16 * 16 * 16 * 8
    assert macs[6] == 16 * 10
    rate = portable.events.set_index("order")["gmac_per_s"]
    assert rate[3] == pytest.approx(16 * 16 * 16 * 8 / 0.7e6)
    assert np.isnan(rate[1])


def test_without_an_etrecord_kernels_are_named_and_the_rest_is_said_to_be_missing(
    tmp_path: Path,
) -> None:
    profile = load_profile(write_etdump(tmp_path / "a.etdump"), Capture("portable", "b"))
    assert profile.events.iloc[0]["operator"] == "convolution.out"
    assert profile.events.iloc[0]["module"] == ""
    assert any("no ETRecord" in note for note in profile.notes)
    assert profile.totals.operators_ms == pytest.approx(2.0)


def test_a_kernel_of_our_own_keeps_its_operator(tmp_path: Path, files: ModelFiles) -> None:
    dump = write_etdump(tmp_path / "a.etdump", kernels={3: "k230::conv1x1_rvv"})
    row = load_profile(dump, Capture("rvv", "b"), files).events.set_index("order").loc[3]
    assert row["operator"] == "aten.convolution.default"
    assert row["kernel"] == "k230::conv1x1_rvv"


def test_a_kernel_without_an_event_is_timed_by_its_call(tmp_path: Path, files: ModelFiles) -> None:
    dump = write_etdump(tmp_path / "a.etdump", calls_only=[3], overhead=500)
    row = load_profile(dump, Capture("x", "b"), files).events.set_index("order").loc[3]
    assert row["median_ms"] == pytest.approx((700_000 + 1_000) / 1e6)


@pytest.mark.parametrize(("hz", "expected"), [(1e9, 2.0), (27e6, 2e6 / 27e3), (1e6, 2000.0)])
def test_the_clock_of_the_trace_is_configurable(hz: float, expected: float, tmp_path: Path) -> None:
    dump = write_etdump(tmp_path / "a.etdump")
    profile = load_profile(dump, Capture("x", "b", tick_hz=hz))
    assert profile.totals.operators_ms == pytest.approx(expected)


def test_a_clock_that_does_not_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 ticks per second"):
        load_profile(write_etdump(tmp_path / "a.etdump"), Capture("x", "b", tick_hz=0))


def notes_with(tmp_path: Path, wall_ms: tuple[float, ...], **settings: float) -> str:
    capture = Capture("x", "b", wall_ms=wall_ms, tick_hz=settings.get("tick_hz", 1e9))
    overhead = int(settings.get("overhead", 1_000))
    dump = write_etdump(tmp_path / "a.etdump", overhead=overhead)
    return " ".join(load_profile(dump, capture).notes)


def test_a_wall_time_that_agrees_is_not_remarked_on(tmp_path: Path) -> None:
    assert "wall time" not in notes_with(tmp_path, (2.05,))


def test_a_wall_time_that_differs_by_over_5_percent_is_reported(tmp_path: Path) -> None:
    text = notes_with(tmp_path, (2.2,))
    assert "operators sum to 2.000 ms" in text
    assert "9.1% not explained by operators" in text


def test_a_wrong_clock_is_suspected_and_its_rate_computed(tmp_path: Path) -> None:
    """Ticks of 27 MHz taken for nanoseconds: the trace seems 37 times too fast."""
    text = notes_with(tmp_path, (2.015e9 / 27e9 * 1e3,))
    assert "about 2.7e+07 ticks per second, not 1e+09" in text


def test_overhead_of_the_framework_is_not_blamed_on_the_clock(tmp_path: Path) -> None:
    text = notes_with(tmp_path, (2.0 + 15 * 0.020,), overhead=20_000)
    assert "the rest is the framework's" in text
    assert "ticks per second" not in text


def test_traced_warm_up_can_be_left_out(tmp_path: Path) -> None:
    dump = write_etdump(tmp_path / "a", times=[[9 * ns for ns in TIMES_NS], TIMES_NS, TIMES_NS])
    profile = load_profile(dump, Capture("x", "b", skip=1))
    assert profile.totals.executions == 2
    assert profile.events["max_ms"].max() == pytest.approx(0.9)
    with pytest.raises(InputError, match="3 whole executions"):
        load_profile(dump, Capture("x", "b", skip=3))


def test_a_trace_without_whole_executions_is_refused(tmp_path: Path) -> None:
    dump = write_etdump(tmp_path / "a", framework=False)
    with pytest.raises(InputError, match="0 whole executions"):
        load_profile(dump, Capture("x", "b"))
