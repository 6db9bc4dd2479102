"""Our tables against ExecuTorch's own Inspector on the same files, cell by cell."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.errors import InputError
from k230_lib.profiling.capture import Capture
from k230_lib.profiling.etrecord import read_etrecord
from k230_lib.profiling.match import check_program
from k230_lib.profiling.profile import ModelFiles, Profile, load_profile
from k230_lib.profiling.pte import read_pte

pytestmark = pytest.mark.slow

STATISTICS = {
    "min_ms": "min (ms)",
    "median_ms": "p50 (ms)",
    "p90_ms": "p90 (ms)",
    "mean_ms": "avg (ms)",
    "max_ms": "max (ms)",
}


def inspected(etdump: Path, etrecord: Path | None) -> Any:
    """Inspector's table of the kernels, in execution order."""
    from executorch.devtools import Inspector

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inspector = Inspector(etdump_path=str(etdump), etrecord=str(etrecord) if etrecord else None)
        table = inspector.to_dataframe(include_units=True)
    kernels = table[table["event_name"].str.startswith("native_call_")]
    return table, kernels.reset_index(drop=True)


def in_order(profile: Profile) -> Any:
    return profile.events.sort_values("order", ignore_index=True)


@pytest.mark.parametrize("executions", [1, 5, 50])
def test_every_time_agrees(real_model: Any, executions: int) -> None:
    etdump = real_model.etdump(executions)
    profile = load_profile(etdump, Capture("x", ""), ModelFiles(real_model.etrecord))
    whole, theirs = inspected(etdump, real_model.etrecord)
    ours = in_order(profile)
    assert len(ours) == len(theirs) > 10
    for mine, other in STATISTICS.items():
        np.testing.assert_allclose(ours[mine], theirs[other], rtol=1e-12)
    raw = np.array(theirs["raw"].to_list()).T
    np.testing.assert_allclose(profile.op_ms, raw, rtol=1e-12)
    execute = whole[whole["event_name"] == "Method::execute"].iloc[0]
    assert profile.totals.execute_ms == pytest.approx(execute["p50 (ms)"], rel=1e-12)
    setup = whole[whole["event_block_name"] == "Default"].set_index("event_name")["avg (ms)"]
    assert dict(profile.samples.setup_ms) == pytest.approx(setup.to_dict())


def test_every_description_agrees(real_model: Any) -> None:
    etdump = real_model.etdump(5)
    ours = in_order(load_profile(etdump, Capture("x", ""), ModelFiles(real_model.etrecord)))
    _, theirs = inspected(etdump, real_model.etrecord)
    record = read_etrecord(real_model.etrecord)
    for (_, mine), (_, other) in zip(ours.iterrows(), theirs.iterrows(), strict=True):
        assert mine["kernel"] == other["event_name"].removeprefix("native_call_")
        assert mine["operator"] in other["op_types"]
        nodes = record.nodes[mine["instruction"]]
        assert [node.operator for node in nodes] == other["op_types"]
        node = next(node for node in nodes if node.name == mine["node"])
        stacks = {name.removesuffix("_"): stack for name, stack in other["stack_traces"].items()}
        assert node.stack_trace == stacks[node.name]
        modules = {name.removesuffix("_"): m for name, m in other["module_hierarchy"].items()}
        assert list(node.module_stack) == list(modules[node.name].values())
        assert mine["module"] == list(modules[node.name].values())[-1][0]


def test_without_an_etrecord_times_and_names_agree(real_model: Any) -> None:
    etdump = real_model.etdump(5)
    ours = in_order(load_profile(etdump, Capture("x", "")))
    _, theirs = inspected(etdump, None)
    names = theirs["event_name"].str.removeprefix("native_call_")
    assert ours["operator"].to_list() == names.to_list()
    np.testing.assert_allclose(ours["median_ms"], theirs["p50 (ms)"], rtol=1e-12)


def test_the_slowest_operator_is_the_convolution_at_its_source_line(real_model: Any) -> None:
    profile = load_profile(
        real_model.etdump(50),
        Capture("x", ""),
        ModelFiles(real_model.etrecord, real_model.pte),
    )
    first = profile.operators.iloc[0]
    assert first["operator"] == "aten.convolution.default"
    slowest = profile.events.iloc[0]
    assert slowest["module"].startswith("features.")
    assert "profiling/make_real_model.py:" in slowest["source"]
    assert slowest["code"] in (
        "return self.classifier(self.features(x).mean((2, 3)))",
        "return x + self.conv(x)",
    )
    assert slowest["macs"] > 0


def test_real_files_of_both_layouts_fit_their_own_program_only(real_model: Any) -> None:
    folder = real_model.folder
    for name in ("model", "wider"):
        check_program(read_pte(folder / f"{name}.pte"), read_etrecord(folder / f"{name}.etrecord"))
    with pytest.raises(InputError, match=r"gives 1x8x15x15, 1x16x15x15 there"):
        check_program(read_pte(real_model.pte), read_etrecord(folder / "wider.etrecord"))


def test_a_real_trace_cut_anywhere_is_refused(real_model: Any, tmp_path: Path) -> None:
    whole = real_model.etdump(5).read_bytes()
    path = tmp_path / "cut.etdump"
    for length in range(0, len(whole), 997):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_profile(path, Capture("x", ""))
