"""One inference: the flags of ExecuTorch's own runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.inference.frames import Frame, FrameReader


def only_frame(text: str) -> Frame:
    frames = FrameReader().feed(text)
    assert len(frames) == 1
    return frames[0]


@pytest.mark.parametrize(
    "flags",
    [
        ("--inputs=one.bin", "--output_file=out"),
        ("--inputs", "one.bin", "--output_file", "out"),
        ("-inputs=one.bin", "-output_file", "out"),
    ],
)
def test_output_equals_the_host_runtime(
    run: Any, samples: Any, work: Path, flags: tuple[str, ...]
) -> None:
    (work / "one.bin").write_bytes(samples.inputs[4].tobytes())
    done = run(*flags, "--print_output=none")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    found = np.fromfile(work / "out-0.bin", "<f4")
    np.testing.assert_array_equal(found, samples.expected()[4])


def test_printed_values_are_those_of_the_file(run: Any, work: Path) -> None:
    done = run("--print_output=all", "--output_file=out")
    values = np.fromfile(work / "out-0.bin", "<f4")
    lines = [f"Output[0][{i}]: (float) {value:f}" for i, value in enumerate(values)]
    assert done.stdout.splitlines() == lines
    summary = run("--print_output", "summary").stdout
    assert summary.startswith("OutputX 0: tensor(sizes=[1, 5], [\n  ")
    assert f"{values[0]:g}," in summary


def test_every_repeat_is_timed_and_warm_up_is_not(run: Any) -> None:
    done = run("--num_executions=3", "--warmup=2", "--print_output=none")
    assert [f"Iteration {i} of 3: " in done.stderr for i in (1, 2, 3)] == [True] * 3
    assert done.stderr.count("Iteration") == 3
    assert "executed successfully 3 time(s)" in done.stderr


def test_the_trace_is_read_by_the_inspector(run: Any, work: Path) -> None:
    assert run("--etdump_path=t.etdump", "--num_executions=4", "--warmup=1").returncode == 0
    from executorch.devtools import Inspector

    table = Inspector(etdump_path=str(work / "t.etdump")).to_dataframe()
    calls = table[table.event_name.str.startswith("native_call_convolution")]
    assert len(calls) == 2
    assert [len(raw) for raw in calls.raw] == [4, 4]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--frobnicate",), ("usage", "unknown flag --frobnicate")),
        (("model.pte",), ("usage", "unexpected argument 'model.pte'")),
        (("--inputs",), ("usage", "--inputs needs a value")),
        (("--num_executions=0",), ("usage", "expects a whole number from 1, found '0'")),
        (("--num_executions=-1",), ("usage", "found '-1'")),
        (("--print_output=some",), ("usage", "expects none, summary or all, found 'some'")),
        (
            ("--inputs=short.bin",),
            ("usage", "short.bin has 3071 bytes, the model's input needs 3072"),
        ),
        (
            ("--inputs=long.bin",),
            ("usage", "long.bin has 3073 bytes, the model's input needs 3072"),
        ),
        (("--inputs=gone.bin",), ("usage", "cannot read gone.bin: No such file")),
        (("--inputs=one.bin,one.bin",), ("usage", "the model has 1 inputs, --inputs 2")),
        (("--method_name=backward",), ("model", "no method backward")),
        (("--resume",), ("usage", "need --inputs_list")),
        (("--inputs_list=a.list",), ("usage", "--inputs_list needs --results_file and --run_id")),
        (("--output_file=no/folder/x",), ("results", "cannot write no/folder/x-0.bin")),
    ],
)
def test_a_mistake_is_one_frame_with_its_reason(
    run: Any, samples: Any, work: Path, flags: tuple[str, ...], told: tuple[str, str]
) -> None:
    code, reason = told
    data = samples.inputs[0].tobytes()
    for name, size in (("one.bin", 3072), ("short.bin", 3071), ("long.bin", 3073)):
        (work / name).write_bytes((data + b"\0")[:size])
    done = run("--print_output=none", *flags)
    assert done.returncode == (2 if code == "usage" else 1)
    frame = only_frame(done.stdout)
    assert (frame.kind, frame.fields["code"]) == ("fail", code)
    assert reason in frame.fields["reason"]


def test_a_model_that_is_missing_or_no_model(run: Any, work: Path) -> None:
    frame = only_frame(run(model=work / "gone.pte").stdout)
    assert frame.fields["code"] == "model"
    assert "No such file" in frame.fields["reason"] or "..." in frame.fields["reason"]
    (work / "text.pte").write_text("no program " * 100)
    frame = only_frame(run(model=Path("text.pte")).stdout)
    assert "text.pte is no ExecuTorch program" in frame.fields["reason"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_model_cut_short_never_runs(run: Any, samples: Any, work: Path, share: float) -> None:
    data = samples.model.read_bytes()
    (work / "cut.pte").write_bytes(data[: int(len(data) * share)])
    done = run(model=Path("cut.pte"))
    assert done.returncode == 1
    assert only_frame(done.stdout).fields["code"] in ("model", "memory")


def test_missing_operators_are_named(run: Any, samples: Any) -> None:
    done = run(model=samples.unknown_model)
    assert done.returncode == 1
    frame = only_frame(done.stdout)
    assert frame.fields == {"code": "operators", "reason": "missing demo::twice.out"}


def test_the_registry_and_the_manifest_can_be_asked_for(run: Any, built: Any) -> None:
    import json

    lines = run("--list_operators").stdout.splitlines()
    assert "aten::convolution.out\tfallback" in lines
    assert json.loads(run("--manifest").stdout)["variant"] == "portable"
    assert "--inputs_list" in run("--help").stdout
