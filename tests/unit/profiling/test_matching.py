"""An ETRecord or program of another model is refused, with the reason."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from k230_lib.errors import InputError
from k230_lib.profiling.capture import Capture, write_capture
from k230_lib.profiling.profile import (
    ModelFiles,
    load_folder,
    load_profile,
    model_files,
    pooled,
)
from k230_lib.profiling.testing import MODEL, TIMES_NS, write_etdump, write_etrecord, write_pte


def test_an_etrecord_of_a_shorter_model_is_refused(tmp_path: Path) -> None:
    record = write_etrecord(tmp_path / "other", model=MODEL[:3])
    with pytest.raises(InputError, match="another model: instruction 3 is not in the ETRecord"):
        load_profile(write_etdump(tmp_path / "a"), Capture("x", "b"), ModelFiles(record))


def test_an_etrecord_of_a_longer_model_is_refused(tmp_path: Path) -> None:
    record = write_etrecord(tmp_path / "other", model=[*MODEL, MODEL[1]])
    with pytest.raises(InputError, match="1 of its 8 operators were not executed"):
        load_profile(write_etdump(tmp_path / "a"), Capture("x", "b"), ModelFiles(record))


def test_an_etrecord_with_other_operators_is_refused(tmp_path: Path) -> None:
    record = write_etrecord(tmp_path / "other", model=[*MODEL[1:], MODEL[0]])
    with pytest.raises(InputError) as raised:
        load_profile(write_etdump(tmp_path / "a"), Capture("x", "b"), ModelFiles(record))
    assert "instruction 0 is convolution in the trace, aten.hardtanh.default there" in str(
        raised.value
    )
    assert "and 3 more" in str(raised.value)


def test_kernels_of_our_own_do_not_hide_another_model(tmp_path: Path) -> None:
    """A kernel with an own name says nothing; the others still do."""
    record = write_etrecord(tmp_path / "other", model=[*MODEL[1:], MODEL[0]])
    dump = write_etdump(tmp_path / "a", kernels={0: "k230::conv3x3", 2: "k230::dw"})
    with pytest.raises(InputError, match="instruction 1 is hardtanh"):
        load_profile(dump, Capture("x", "b"), ModelFiles(record))


def test_the_same_architecture_at_another_size_is_refused_with_the_program(
    tmp_path: Path,
) -> None:
    """A trace holds no sizes; the program does."""
    wider = [replace(MODEL[0], shape=(1, 12, 16, 16)), *MODEL[1:]]
    files = ModelFiles(write_etrecord(tmp_path / "r", model=wider), write_pte(tmp_path / "p"))
    with pytest.raises(InputError, match="instruction 0 gives 1x8x16x16, 1x12x16x16 there"):
        load_profile(write_etdump(tmp_path / "a"), Capture("x", "b"), files)


def model_folder(folder: Path) -> Path:
    folder.mkdir()
    parts = {
        "pte": write_pte(folder / "model.pte"),
        "etrecord": write_etrecord(folder / "model.etrecord"),
    }
    contract = {
        name: {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in parts.items()
    }
    (folder / "model.json").write_text(json.dumps(contract))
    return folder


def test_a_trace_of_another_export_is_refused_by_its_hash(tmp_path: Path) -> None:
    files = model_files(model_folder(tmp_path / "m"))
    capture = Capture("x", "b", pte_sha256="0" * 64)
    with pytest.raises(InputError, match=r"trace is of a \.pte with sha256 000000000000"):
        load_profile(write_etdump(tmp_path / "a"), capture, files)


def test_a_trace_of_this_export_is_taken_without_remarks_on_identity(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    sha256 = hashlib.sha256((folder / "model.pte").read_bytes()).hexdigest()
    capture = Capture("x", "b", pte_sha256=sha256, wall_ms=(2.015,))
    assert load_profile(write_etdump(tmp_path / "a"), capture, model_files(folder)).notes == ()


def test_a_replaced_file_in_the_model_folder_is_refused(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    write_etrecord(folder / "model.etrecord", older_layout=True)
    with pytest.raises(InputError, match=r"not the file that model\.json describes"):
        load_profile(write_etdump(tmp_path / "a"), Capture("x", "b"), model_files(folder))


def test_a_folder_that_is_no_model_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no model\.json in it"):
        model_files(tmp_path)
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(InputError, match="not understood"):
        model_files(tmp_path)


def test_a_trace_changed_after_it_was_fetched_is_refused(tmp_path: Path) -> None:
    dump = write_etdump(tmp_path / "a")
    with pytest.raises(InputError, match="was changed or replaced"):
        load_profile(dump, Capture("x", "b", etdump_sha256="1" * 64))


def write_run(folder: Path, capture: Capture, scale: int = 1) -> None:
    folder.mkdir(parents=True)
    write_etdump(folder / "model.etdump", times=[[scale * ns for ns in TIMES_NS]] * 2)
    write_capture(folder, capture)


def test_a_folder_of_captures_is_read_by_variant_and_board(tmp_path: Path) -> None:
    write_run(tmp_path / "1", Capture("rvv", "board2"))
    write_run(tmp_path / "2", Capture("rvv", "board1"))
    write_run(tmp_path / "3", Capture("portable", "board1"))
    profiles = load_folder(tmp_path, ModelFiles())
    assert [profile.capture.label for profile in profiles] == [
        "portable on board1",
        "rvv on board1",
        "rvv on board2",
    ]


def test_boards_of_a_variant_are_pooled_execution_by_execution(tmp_path: Path) -> None:
    write_run(tmp_path / "1", Capture("rvv", "board1"))
    write_run(tmp_path / "2", Capture("rvv", "board2"), scale=3)
    (together,) = pooled(load_folder(tmp_path, ModelFiles()))
    assert together.totals.executions == 4
    assert together.capture.board == "board1, board2"
    assert together.events.iloc[0]["median_ms"] == pytest.approx((0.9 + 2.7) / 2)


def test_a_folder_without_captures_or_with_one_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no capture\.json"):
        load_folder(tmp_path, ModelFiles())
    for name in "12":
        write_run(tmp_path / name, Capture("rvv", "board1"))
    with pytest.raises(InputError, match="two captures of 'rvv on board1'"):
        load_folder(tmp_path, ModelFiles())


def test_boards_with_different_builds_of_a_variant_are_pointed_out(tmp_path: Path) -> None:
    write_run(tmp_path / "1", Capture("rvv", "board1", runner_sha256="a" * 64))
    write_run(tmp_path / "2", Capture("rvv", "board2", runner_sha256="b" * 64))
    (together,) = pooled(load_folder(tmp_path, ModelFiles()))
    assert any("2 different builds of rvv" in note for note in together.notes)


def test_a_report_may_be_of_some_variants_only(tmp_path: Path) -> None:
    write_run(tmp_path / "1", Capture("rvv", "board1"))
    write_run(tmp_path / "2", Capture("portable", "board1"))
    (profile,) = load_folder(tmp_path, ModelFiles(), variants=["rvv"])
    assert profile.capture.variant == "rvv"
    with pytest.raises(InputError, match="no traces of variant 'scalar', found: portable, rvv"):
        load_folder(tmp_path, ModelFiles(), variants=["scalar"])


def test_boards_that_ran_other_operators_are_not_pooled(tmp_path: Path) -> None:
    write_run(tmp_path / "1", Capture("rvv", "board1"))
    write_run(tmp_path / "2", Capture("rvv", "board2"))
    write_etdump(tmp_path / "2" / "model.etdump", model=MODEL[:4], times=[TIMES_NS[:4]])
    with pytest.raises(InputError, match="rvv on board2: other operators than rvv on board1"):
        pooled(load_folder(tmp_path, ModelFiles()))
