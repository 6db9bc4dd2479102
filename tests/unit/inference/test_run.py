"""Opening runs, packing chunks, and the figures that come out."""

from __future__ import annotations

import csv
import dataclasses
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from k230_lib.cli import app
from k230_lib.dataset.manifest import load, shard_paths
from k230_lib.dataset.shards import parse_list
from k230_lib.errors import DatasetError, InputError, ModelError, ResultsError
from k230_lib.inference.chunks import Chunk, pack
from k230_lib.inference.queue_outcomes import Failure
from k230_lib.inference.results import ResultRecord
from k230_lib.inference.run import Run, RunSettings, queued_samples, reopen, samples_left
from k230_lib.inference.runner import RunnerOptions, batch_command, bin_path, list_path
from k230_lib.model.contract import Preprocessing
from k230_lib.report.figures import compute, union_length
from k230_lib.report.summary import export, missing_text, summary_text


def whole_shard(run: Run, number: int = 0) -> Chunk:
    name = run.dataset.shards[number].name
    samples = tuple(s for s in queued_samples(run.dataset_folder) if s.shard == name)
    return Chunk(1, "main", samples, samples)


def test_the_same_command_gives_the_same_run(make_inputs: Callable) -> None:
    inputs = make_inputs()
    first, second = inputs.open(), inputs.open()
    assert first.id == second.id
    assert len(first.id) == 12
    assert first.queue().counts().total == 12


@pytest.mark.parametrize(
    "change",
    [
        {"runner_sha256": "cd" * 32},
        {"variant": "rvv"},
        {"options": RunnerOptions(repeats=3)},
    ],
)
def test_other_runner_or_options_are_another_run(make_inputs: Callable, change: dict) -> None:
    inputs = make_inputs()
    settings = RunSettings("portable", "ab" * 32)
    assert inputs.open(settings).id != inputs.open(dataclasses.replace(settings, **change)).id


def test_pace_and_chunk_size_do_not_name_a_run(make_inputs: Callable) -> None:
    inputs = make_inputs()
    one = RunSettings("portable", "ab" * 32, RunnerOptions(pace_ms=75), chunk=8)
    two = RunSettings("portable", "ab" * 32, RunnerOptions(pace_ms=0.0), chunk=64)
    assert inputs.open(one).id == inputs.open(two).id


def test_named_run_of_something_else_is_refused(make_inputs: Callable) -> None:
    inputs = make_inputs()
    inputs.open(run_id="mine")
    with pytest.raises(InputError, match="another runner"):
        inputs.open(RunSettings("portable", "cd" * 32), run_id="mine")
    with pytest.raises(InputError, match="cannot be used"):
        inputs.open(run_id="../else")


def test_corrected_labels_are_another_run(make_inputs: Callable) -> None:
    inputs = make_inputs()
    before, named = inputs.open(), inputs.open(run_id="mine")
    manifest = before.dataset_folder / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"label": 3', '"label": 4'))
    after = inputs.open()
    assert after.id != before.id
    chunk = after.queue().lease("b1", 12)
    assert chunk is not None
    assert [s.label for s in chunk.samples if s.id == 3] == [4]
    with pytest.raises(InputError, match="another dataset"):
        inputs.open(run_id=named.id)
    manifest.unlink()
    with pytest.raises(DatasetError, match="cannot be read"):
        inputs.open()


def test_dataset_of_another_model_is_refused(make_inputs: Callable) -> None:
    inputs = make_inputs(preprocessing=Preprocessing(8, 4, mean=(0.5,) * 3, std=(0.25,) * 3))
    with pytest.raises(DatasetError, match="does not fit model tiny: preprocessing"):
        inputs.open()


def test_changed_program_is_refused_and_the_etrecord_not_needed(make_inputs: Callable) -> None:
    inputs = make_inputs()
    (inputs.model / "model.etrecord").unlink()
    known = inputs.open()
    assert samples_left(inputs.runs, inputs.model, inputs.dataset, known.settings)[1] == 12
    program = inputs.model / "model.pte"
    program.write_bytes(b"x" + program.read_bytes()[1:])
    with pytest.raises(ModelError, match=r"model.pte: sha256 .* expected, found"):
        inputs.open()
    with pytest.raises(ModelError, match=r"model.pte: sha256 .* expected, found"):
        samples_left(inputs.runs, inputs.model, inputs.dataset, known.settings)
    program.unlink()
    with pytest.raises(ModelError, match=r"model.pte is missing"):
        reopen(known.folder)


def test_settings_out_of_range() -> None:
    with pytest.raises(InputError, match="chunk"):
        RunSettings("portable", "", chunk=0)
    with pytest.raises(InputError, match="cross_check"):
        RunSettings("portable", "", cross_check=1.5)


def test_whole_shard_is_packed_as_it_lies_in_the_dataset(make_inputs: Callable) -> None:
    run = make_inputs().open()
    packed = pack(whole_shard(run), run.shards, run.header)
    shard = load(run.dataset_folder).shards[0]
    assert packed.bin_sha256 == shard.bin_sha256
    assert packed.content == shard_paths(run.dataset_folder, shard)[0].read_bytes()
    assert [r.target for r in packed.requests] == [
        bin_path(shard.bin_sha256),
        list_path(packed.list_sha256),
    ]


def test_part_of_a_shard_is_packed_with_places_of_its_own(make_inputs: Callable) -> None:
    run = make_inputs().open()
    samples = whole_shard(run).samples
    chunk = Chunk(2, "main", samples[3:5], samples[2:6])
    packed = pack(chunk, run.shards, run.header)
    listed = parse_list(packed.list_text.decode())
    assert [s.index for s in listed.samples] == [3, 4]
    assert listed.mean == (0.5, 0.5, 0.5)
    for entry in listed.samples:
        piece = packed.content[entry.offset : entry.offset + listed.nbytes]
        assert zlib.crc32(piece) == entry.crc32
    assert len(packed.content) == 4 * listed.nbytes


def test_changed_shard_is_noticed_before_it_is_sent(make_inputs: Callable) -> None:
    run = make_inputs().open()
    shard = run.shards / "shard-00000.bin"
    shard.write_bytes(b"x" + shard.read_bytes()[1:])
    with pytest.raises(DatasetError, match=r"sample 0 .* differs from its checksum"):
        pack(whole_shard(run), run.shards, run.header)
    shard.unlink()
    with pytest.raises(DatasetError, match="cannot be read"):
        pack(whole_shard(run), run.shards, run.header)


def test_command_line_fits_msh() -> None:
    line = batch_command(
        "/sharefs/k230/bin/k230_runner-portable-0123456789ab",
        model="/sharefs/k230/models/0123456789abcdef.pte",
        inputs_list="/sharefs/k230/shards/0123456789abcdef.list",
        results="/sharefs/k230/results/0123456789ab-0123456789abcdef.res",
        run_id="0123456789ab",
        options=RunnerOptions(repeats=5, warmup=2, pace_ms=12.5),
    )
    assert len(line) < 400
    assert line.endswith("--resume --num_executions=5 --warmup=2 --pace_ms=12.5")


@pytest.fixture
def partly_done(make_inputs: Callable, record_of: Callable[..., ResultRecord], tmp_path: Path):
    """Ten samples right, one wrong, one given up; the host computed the first four."""
    inputs = make_inputs()
    logits = np.stack([record_of(n, n % 10).logits for n in range(4)])
    np.savez(tmp_path / "host.npz", indices=np.arange(4), logits=logits)
    run = inputs.open(host=tmp_path / "host.npz")
    queue = run.queue()
    for board in ("b1", "b2"):
        queue.board_begins(board)
        chunk = queue.lease(board, 8)
        assert chunk is not None
        queue.start(chunk)
        good = [s for s in chunk.samples if s.id != 11]
        records = [record_of(s.id, 9 if s.id == 5 else s.label) for s in good]
        queue.commit(chunk, board, records, [Failure(11, "crash")] if board == "b2" else [])
        queue.board_ends(board, "done", "")
    last = queue.lease("b1", 1)
    assert last is not None
    queue.commit(last, "b1", [], [Failure(11, "crash")])
    return run


def test_figures_are_those_of_the_records(partly_done: Run) -> None:
    figures = compute(partly_done)
    assert (figures.total, figures.done, figures.missing) == (12, 11, 0)
    assert figures.quarantined == (11,)
    assert (figures.top1_count, figures.top5_count) == (10, 11)
    assert figures.host is not None
    assert figures.host.count == 4
    assert figures.host.max_abs == 0.0
    assert (figures.host.top1_equal, figures.host.top5_equal) == (4, 4)
    assert [(b.board, b.images) for b in figures.boards] == [("b1", 8), ("b2", 3)]
    assert figures.boards[0].latency_median_ms == pytest.approx(2.0)
    assert figures.boards[0].top1 == pytest.approx(7 / 8)
    assert figures.images_per_s > 0


def test_files_of_a_run(partly_done: Run) -> None:
    export(partly_done)
    folder = partly_done.folder
    rows = list(csv.DictReader((folder / "predictions.csv").open()))
    assert len(rows) == 12
    assert (rows[5]["label"], rows[5]["top1"], rows[5]["top1_correct"]) == ("5", "9", "0")
    assert rows[5]["top5"].split()[1] == "8"
    assert (rows[11]["status"], rows[11]["top1"], rows[11]["latency_ms"]) == ("quarantined", "", "")
    document = json.loads((folder / "run.json").read_text())
    assert document["schema_version"] == 1
    assert document["figures"]["origin"] == "measured_here"
    assert document["figures"]["top1_count"] == 10
    summary = (folder / "summary.md").read_text()
    assert "11 of 12 images" in summary
    assert "same top-1 4/4" in summary
    assert "Given up after two failures: samples 11" in summary
    assert "1 of 12 images have no result, 1 of them given up: c1/11.png" in missing_text(
        partly_done, compute(partly_done)
    )
    assert not list(folder.glob(".*.tmp"))


def test_summary_tells_why_a_board_stopped(partly_done: Run) -> None:
    partly_done.queue().board_ends("b2", "failed", "b2: no answer. Next: look at its power.")
    summary = summary_text(partly_done, compute(partly_done))
    assert "\nb2 stopped: no answer. Next: look at its power.\n" in summary


def test_run_is_opened_by_its_folder(partly_done: Run) -> None:
    again = reopen(partly_done.folder)
    assert again.id == partly_done.id
    assert again.host is not None
    assert compute(again) == compute(partly_done)
    with pytest.raises(InputError, match="is no run"):
        reopen(partly_done.folder.parent)


def test_report_command_fails_for_missing_samples(partly_done: Run) -> None:
    failed = CliRunner().invoke(app, ["run", "report", str(partly_done.folder)])
    assert isinstance(failed.exception, ResultsError)
    assert "c1/11.png" in str(failed.exception)
    allowed = CliRunner().invoke(
        app, ["run", "report", "--json", "--allow-missing", str(partly_done.folder)]
    )
    answer = json.loads(allowed.stdout.splitlines()[-1])
    assert answer["figures"]["done"] == 11
    status = CliRunner().invoke(app, ["run", "status", str(partly_done.folder)])
    assert status.stdout.startswith("11 of 12 done, 0 at work, 0 open, 1 given up\nb1: done, 8")


def test_host_logits_of_another_model_are_refused(make_inputs: Callable, tmp_path: Path) -> None:
    inputs = make_inputs()
    np.save(tmp_path / "host.npy", np.zeros((12, 3), np.float32))
    with pytest.raises(ResultsError, match="has 3 classes, the model has 10"):
        inputs.open(host=tmp_path / "host.npy")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(ResultsError, match="no logits of the host"):
        inputs.open(host=tmp_path / "bad.npz")


def test_golden_sample_is_the_first_that_the_host_knows(
    make_inputs: Callable, tmp_path: Path
) -> None:
    inputs = make_inputs()
    assert inputs.open().golden() is None
    np.savez(tmp_path / "h.npz", indices=np.array([7, 3]), logits=np.eye(10, dtype="f4")[:2])
    golden = inputs.open(host=tmp_path / "h.npz").golden()
    assert golden is not None
    assert golden.sample.id == 3
    assert golden.logits[1] == 1.0


def test_time_of_overlapping_spans_counts_once() -> None:
    assert union_length([(0, 2), (1, 3), (5, 6), (5.5, 5.7)]) == pytest.approx(4.0)
    assert union_length([]) == 0.0
