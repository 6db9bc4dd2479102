"""What is typed at msh for a trace, and when a trace is made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from k230_lib.errors import InputError
from k230_lib.model.contract import (
    FileRef,
    InputSpec,
    ModelClass,
    ModelContract,
    OutputSpec,
    Preprocessing,
    Source,
    save,
)
from k230_lib.profiling.capture import Capture, capture_of, read_capture, write_capture
from k230_lib.profiling.sources import sha256_of
from k230_lib.profiling.testing import write_etdump
from k230_lib.profiling.tracing import TraceRequest, command_line, kept_capture, plan_trace

CONTRACT = ModelContract(
    name="tiny",
    source=Source("random", "random:0", "0" * 64),
    input=InputSpec((1, 3, 8, 8), Preprocessing(8, 8)),
    output=OutputSpec((1, 1)),
    classes=(ModelClass(0, "zero"),),
    operators=("aten::add.out",),
    planned_buffers=(64,),
    pte=FileRef("model.pte", "ab" * 32, 1),
    etrecord=FileRef("model.etrecord", "cd" * 32, 1),
    versions={"executorch": "1.5.1"},
)


@pytest.fixture
def request_(tmp_path: Path) -> TraceRequest:
    save(CONTRACT, tmp_path)
    return TraceRequest(tmp_path, "/sharefs/k230/bin/runner", "e" * 64, "rvv", executions=5)


def test_our_runner_warms_up_by_itself(request_: TraceRequest) -> None:
    assert command_line(request_, CONTRACT, "/sharefs/t.etdump", "/sharefs/x.bin") == (
        "/sharefs/k230/bin/runner --model_path=/sharefs/k230/models/abababababababab.pte "
        "--etdump_path=/sharefs/t.etdump --num_executions=5 --print_output=none "
        "--inputs=/sharefs/x.bin --warmup=1"
    )


def test_executor_runner_traces_its_warm_up_which_is_left_out_later(
    request_: TraceRequest, tmp_path: Path
) -> None:
    upstream = replace(request_, upstream=True, warmup=2)
    line = command_line(upstream, CONTRACT, "/sharefs/t.etdump", "")
    assert "--num_executions=7" in line
    assert "--warmup" not in line
    assert "--inputs" not in line
    _, capture = plan_trace("board1", upstream, tmp_path / "runs")
    assert (capture.executions, capture.warmup, capture.skip) == (5, 0, 2)


def test_traces_lie_by_export_variant_and_board(request_: TraceRequest, tmp_path: Path) -> None:
    folder, capture = plan_trace("board1", request_, tmp_path / "runs")
    assert folder == tmp_path / "runs" / "profile-tiny-abababab" / "rvv" / "board1"
    assert (capture.model, capture.pte_sha256) == ("tiny", "ab" * 32)


def test_counts_without_sense_are_refused(request_: TraceRequest, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="board1: 0 executions"):
        plan_trace("board1", replace(request_, executions=0), tmp_path)


@pytest.fixture
def made(request_: TraceRequest, tmp_path: Path) -> tuple[Path, Capture]:
    """A folder with a finished trace, and the capture that the same request plans."""
    folder, wanted = plan_trace("board1", request_, tmp_path / "runs")
    folder.mkdir(parents=True)
    dump = write_etdump(folder / "model.etdump")
    finished = replace(
        wanted,
        etdump_sha256=sha256_of(dump),
        wall_ms=(1.0, 2.0),
        load_ms=3.0,
        started="2026-01-01T00:00:00+00:00",
        command="/sharefs/k230/bin/runner",
    )
    write_capture(folder, finished)
    return folder, wanted


def test_the_same_trace_is_not_made_twice(made: tuple[Path, Capture]) -> None:
    folder, wanted = made
    kept = kept_capture(folder, wanted)
    assert kept is not None
    assert kept == read_capture(folder / "capture.json")


@pytest.mark.parametrize(
    "change", [{"runner_sha256": "f" * 64}, {"executions": 6}, {"tick_hz": 27e6}]
)
def test_another_request_is_traced_again(
    made: tuple[Path, Capture], change: dict[str, object]
) -> None:
    folder, wanted = made
    assert kept_capture(folder, replace(wanted, **change)) is None  # type: ignore[arg-type]


def test_a_damaged_trace_is_made_again(made: tuple[Path, Capture]) -> None:
    folder, wanted = made
    with (folder / "model.etdump").open("ab") as stream:
        stream.write(b"x")
    assert kept_capture(folder, wanted) is None


def test_a_lost_or_broken_capture_file_means_tracing_again(made: tuple[Path, Capture]) -> None:
    folder, wanted = made
    (folder / "capture.json").write_text("{")
    assert kept_capture(folder, wanted) is None
    (folder / "capture.json").unlink()
    assert kept_capture(folder, wanted) is None


def test_a_single_trace_brings_its_capture_file_along(made: tuple[Path, Capture]) -> None:
    folder, _ = made
    dump = folder / "model.etdump"
    capture = capture_of(dump, "mine", tick_hz=None, skip=None)
    assert (capture.variant, capture.board, capture.load_ms) == ("mine", "board1", 3.0)
    assert capture_of(dump, "mine", tick_hz=27e6, skip=2).tick_hz == 27e6
    other = folder / "other.etdump"
    other.write_bytes(b"another trace")
    assert capture_of(other, "mine", tick_hz=None, skip=None) == Capture("mine", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[]", "schema_version None"),
        ('{"schema_version": 2}', "schema_version 2, expected 1"),
        ('{"schema_version": 1, "board": "b"}', "not a capture file"),
        ('{"schema_version": 1, "variant": "v", "board": "b", "origin": "guess"}', "origin"),
    ],
)
def test_a_capture_file_that_is_none_gets_one_clear_error(
    content: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "capture.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        read_capture(path)
