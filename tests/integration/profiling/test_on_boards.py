"""Tracing on virtual boards: two boards, what they send home, and what goes wrong clearly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from k230_lib.board.files import put_file
from k230_lib.board.shell import BoardShell, SshShell, checked
from k230_lib.errors import InputError, ProgramCrashedError, RunnerError
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
from k230_lib.profiling.compare import compare
from k230_lib.profiling.profile import load_folder, model_files, pooled
from k230_lib.profiling.tracing import TraceOutcome, TraceRequest, trace
from k230_lib.runner.build import BuildRequest, build_runner
from k230_lib.virtual.faults import Faults
from k230_lib.virtual.testing import virtual_board

pytestmark = [pytest.mark.slow, pytest.mark.board]

REPOSITORY = Path(__file__).resolve().parents[3]
RUNNER = "/sharefs/k230/bin/k230_runner"
NUMBERS = (184, 185)


@dataclass(frozen=True)
class Board:
    """A running virtual board with the runner on it."""

    name: str
    shell: BoardShell
    console: str
    faults: Faults


@pytest.fixture(scope="module")
def runner() -> Path:
    """The portable runner for this machine, kept between test runs."""
    request = BuildRequest(
        variant="portable",
        target="host",
        source=REPOSITORY / "kernels",
        output=REPOSITORY / ".k230" / "test-runners",
    )
    return build_runner(request, print).path


@pytest.fixture(scope="module")
def boards(runner: Path) -> Iterator[list[Board]]:
    with ExitStack() as stack:
        found = []
        for number in NUMBERS:
            cache = REPOSITORY / ".k230" / "cache"
            board = stack.enter_context(virtual_board(number, cache=cache))
            status = board.status()
            shell = SshShell(board.name, f"root@{status.address}", board.ssh_options())
            put_file(shell, runner, RUNNER, mode=0o755)
            found.append(Board(board.name, shell, status.console, board.faults))
        yield found


def contract_of(folder: Path, name: str, etrecord: FileRef) -> ModelContract:
    return ModelContract(
        name=name,
        source=Source("random", "random:0", "0" * 64),
        input=InputSpec((1, 3, 32, 32), Preprocessing(32, 32)),
        output=OutputSpec((1, 10)),
        classes=tuple(ModelClass(index, str(index)) for index in range(10)),
        operators=(),
        planned_buffers=(),
        pte=FileRef.of(folder / "model.pte"),
        etrecord=etrecord,
        versions={},
    )


@pytest.fixture(scope="module")
def model(real_model: Any) -> Path:
    """The folder of the real model, with its contract."""
    folder: Path = real_model.folder
    save(contract_of(folder, "small", FileRef.of(real_model.etrecord)), folder)
    return folder


def request_for(model: Path, runner: Path, variant: str) -> TraceRequest:
    digest = hashlib.sha256(runner.read_bytes()).hexdigest()
    return TraceRequest(model, RUNNER, digest, variant, executions=4, timeout=60)


def traced(board: Board, request: TraceRequest, runs: Path) -> TraceOutcome:
    return trace(board.shell, board.console, request, runs)


def test_two_boards_and_two_variants_end_in_one_comparison(
    boards: list[Board], model: Path, runner: Path, tmp_path: Path
) -> None:
    for variant in ("portable", "again"):
        request = request_for(model, runner, variant)
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(lambda board: traced(board, request, tmp_path), boards))  # noqa: B023
        assert all(outcome.changed for outcome in outcomes)
        assert all(len(outcome.capture.wall_ms) == 4 for outcome in outcomes)
    profiles = load_folder(outcomes[0].folder.parent.parent, model_files(model))
    assert len(profiles) == 4
    for profile in profiles:
        assert profile.totals.executions == 4
        assert profile.totals.execute_ms == pytest.approx(profile.totals.wall_ms, rel=0.2)
        assert not any("hash" in note for note in profile.notes)
        assert profile.operators.iloc[0]["operator"] == "aten.convolution.default"
        assert profile.events.iloc[0]["module"].startswith("features.")
        assert "make_real_model.py:" in profile.events.iloc[0]["source"]
    comparison = compare(pooled(profiles), baseline="portable")
    assert comparison.events["again_speedup"].notna().all()


def test_a_trace_is_made_once_and_nothing_stays_on_the_board(
    boards: list[Board], model: Path, runner: Path, tmp_path: Path
) -> None:
    request = request_for(model, runner, "portable")
    first = traced(boards[0], request, tmp_path)
    again = traced(boards[0], request, tmp_path)
    assert (first.changed, again.changed) == (True, False)
    assert again.capture == first.capture
    assert checked(boards[0].shell, "ls /sharefs/k230/traces").strip() == ""
    assert "ETDump written to file" in (first.folder / "runner.log").read_text()


def test_a_given_input_is_used_and_its_size_is_checked(
    boards: list[Board], model: Path, runner: Path, tmp_path: Path
) -> None:
    sample = tmp_path / "sample.bin"
    sample.write_bytes(bytes(3 * 32 * 32 * 4))
    request = replace(request_for(model, runner, "portable"), input=sample)
    assert "--inputs=/sharefs/k230/traces/" in traced(boards[0], request, tmp_path).capture.command
    sample.write_bytes(bytes(12))
    with pytest.raises(InputError, match="12 bytes, the model's input has 12288"):
        traced(boards[0], request, tmp_path / "other")


def test_a_missing_runner_is_said_to_be_missing(
    boards: list[Board], model: Path, runner: Path, tmp_path: Path
) -> None:
    request = replace(request_for(model, runner, "portable"), runner="/sharefs/k230/bin/none")
    with pytest.raises(RunnerError, match=f"{boards[0].name}: msh cannot run /sharefs/k230/bin"):
        traced(boards[0], request, tmp_path)


def test_a_model_that_the_runner_refuses_is_reported_in_its_words(
    boards: list[Board], model: Path, runner: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "model.pte").write_bytes(b"no model at all" * 99)
    save(contract_of(damaged, "damaged", FileRef("model.etrecord", "0" * 64, 0)), damaged)
    with pytest.raises(RunnerError, match=r"the runner refuses \(model\)"):
        traced(boards[0], request_for(damaged, runner, "portable"), tmp_path)
    assert not list(tmp_path.rglob("capture.json"))


@pytest.fixture
def board(boards: list[Board]) -> Iterator[Board]:
    """A board that is mended after the test."""
    yield boards[1]
    boards[1].faults.clear()
    checked(boards[1].shell, "rm -f /sharefs/filler.bin")


def test_a_noisy_console_costs_the_wall_times_at_most(
    board: Board, model: Path, runner: Path, tmp_path: Path
) -> None:
    """The trace itself comes as a file; no figure is read from a damaged line."""
    request = replace(request_for(model, runner, "portable"), executions=40)
    board.faults.console(drop_out=0.002, garble_out=0.002)
    capture = traced(board, request, tmp_path).capture
    assert len(capture.wall_ms) in (0, 40)
    (profile,) = load_folder(tmp_path, model_files(model))
    assert profile.totals.executions == 40
    if not capture.wall_ms:
        assert any("wall time is not known" in note for note in profile.notes)


def test_a_runner_that_dies_leaves_no_capture_and_the_next_trace_works(
    board: Board, model: Path, runner: Path, tmp_path: Path
) -> None:
    request = request_for(model, runner, "portable")
    long = replace(request, executions=4000)
    killed = []

    def kill(done: int, total: int, ms: float) -> None:
        if not killed:
            killed.append(done)
            board.faults.kill_program()

    with pytest.raises(ProgramCrashedError, match=board.name):
        trace(board.shell, board.console, long, tmp_path, progress=kill)
    assert not list(tmp_path.rglob("capture.json"))
    assert traced(board, request, tmp_path).changed


def test_a_full_card_is_named_as_the_reason(
    board: Board, model: Path, runner: Path, tmp_path: Path
) -> None:
    request = request_for(model, runner, "portable")
    traced(board, request, tmp_path)  # the model is on the board now
    board.faults.fill_card()
    with pytest.raises(RunnerError, match=r"cannot write /sharefs/k230/traces/.*free space"):
        trace(board.shell, board.console, request, tmp_path, force=True)
