"""Many inferences with one model load: list, results file, resume, frames."""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.inference.frames import FrameReader
from k230_lib.inference.results import (
    STATUS_CRC_DIFFERS,
    STATUS_UNREADABLE,
    model_fingerprint,
    read_results,
)

FLAGS = ("--inputs_list=s.list", "--results_file=r.res", "--run_id=run-1")


def write_list(work: Path, lines: list[str]) -> None:
    (work / "s.list").write_text("\n".join(lines) + "\n")


def test_results_equal_the_host_runtime(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    done = run(*FLAGS)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    results = read_results(work / "r.res")
    assert not results.damaged
    assert results.header.run_id == "run-1"
    assert results.header.values == 5
    assert results.header.model_crc == model_fingerprint(samples.model)
    assert results.header.list_crc == zlib.crc32((work / "s.list").read_bytes())
    assert [r.sample_id for r in results.records] == list(range(100, 112))
    assert [r.seq for r in results.records] == list(range(12))
    for record, data in zip(results.records, samples.inputs, strict=True):
        assert record.status == 0
        assert record.executions == 1
        assert record.latency_ns > 0
        assert record.input_crc == zlib.crc32(data.tobytes())
    found = np.array([record.logits for record in results.records])
    np.testing.assert_array_equal(found, samples.expected())


def test_frames_tell_begin_last_item_and_end(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    frames = FrameReader().feed(run(*FLAGS).stdout)
    assert [frame.kind for frame in frames] == ["begin", "item", "end"]
    assert frames[0].fields == {"total": "12", "resumed": "0"}
    assert frames[1].fields["seq"] == "11"
    assert frames[1].fields["id"] == "111"
    assert {name: frames[2].fields[name] for name in ("ok", "failed", "records")} == {
        "ok": "12",
        "failed": "0",
        "records": "12",
    }
    assert {frame.run for frame in frames} == {"run-1"}


def test_bytes_are_normalised_as_the_host_does(run: Any, samples: Any, work: Path) -> None:
    mean = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
    std = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
    floats = ((samples.bytes.astype(np.float32) / np.float32(255)) - mean) / std
    assert floats.dtype == np.float32
    write_list(work, samples.byte_list_lines())
    assert run(*FLAGS).returncode == 0
    for record, data in zip(read_results(work / "r.res").records, floats, strict=True):
        (work / "one.bin").write_bytes(data.tobytes())
        run("--inputs=one.bin", "--output_file=out", "--print_output=none")
        expected = np.fromfile(work / "out-0.bin", "<f4")
        np.testing.assert_array_equal(record.logits, expected)


def test_resume_after_every_kind_of_end(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    assert run(*FLAGS).returncode == 0
    whole = (work / "r.res").read_bytes()
    record = (len(whole) - 64) // 12
    for keep, done_before in ((0, 0), (63, 0), (64, 0), (64 + record, 1), (64 + 5 * record - 1, 4),
                              (len(whole) - 4, 11), (len(whole), 12)):  # fmt: skip
        (work / "r.res").write_bytes(whole[:keep])
        done = run(*FLAGS, "--resume")
        assert done.returncode == 0, keep
        begin = FrameReader().feed(done.stdout)[0]
        assert begin.integer("resumed") == done_before, keep
        results = read_results(work / "r.res")
        assert not results.damaged
        found = np.array([item.logits for item in results.records])
        np.testing.assert_array_equal(found, samples.expected())


def test_resume_cuts_at_a_damaged_record(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    run(*FLAGS)
    data = bytearray((work / "r.res").read_bytes())
    record = (len(data) - 64) // 12
    data[64 + 3 * record + 45] ^= 0x10
    (work / "r.res").write_bytes(data)
    done = run(*FLAGS, "--resume")
    assert FrameReader().feed(done.stdout)[0].integer("resumed") == 3
    results = read_results(work / "r.res")
    np.testing.assert_array_equal(
        np.array([item.logits for item in results.records]), samples.expected()
    )


def test_a_file_of_another_run_model_or_list_is_begun_anew(
    run: Any, samples: Any, work: Path
) -> None:
    write_list(work, samples.list_lines())
    run(*FLAGS)
    other_run = run(*FLAGS[:2], "--run_id=run-2", "--resume")
    assert FrameReader().feed(other_run.stdout)[0].integer("resumed") == 0
    assert read_results(work / "r.res").header.run_id == "run-2"
    write_list(work, samples.list_lines()[:-1])
    other_list = run(*FLAGS[:2], "--run_id=run-2", "--resume")
    assert FrameReader().feed(other_list.stdout)[0].integer("resumed") == 0
    (work / "m.pte").write_bytes(samples.model.read_bytes() + b"\0")
    other_model = run(*FLAGS[:2], "--run_id=run-2", "--resume", model=Path("m.pte"))
    assert FrameReader().feed(other_model.stdout)[0].integer("resumed") == 0


def test_without_resume_the_file_is_begun_anew(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    run(*FLAGS)
    run(*FLAGS)
    assert len(read_results(work / "r.res").records) == 12


def test_damaged_and_missing_inputs_cost_only_themselves(
    run: Any, samples: Any, work: Path
) -> None:
    data = bytearray((work / "inputs.bin").read_bytes())
    data[3 * 3072 + 5] ^= 1
    (work / "inputs.bin").write_bytes(data)
    lines = samples.list_lines()
    lines[1] = lines[1].replace("inputs.bin", "gone.bin")
    lines[12] = lines[12].replace(str(11 * 3072), str(11 * 3072 + 4))
    write_list(work, lines)
    done = run(*FLAGS)
    assert done.returncode == 3
    end = FrameReader().feed(done.stdout)[-1]
    assert (end.integer("ok"), end.integer("failed")) == (9, 3)
    status = [record.status for record in read_results(work / "r.res").records]
    assert status[0] == STATUS_UNREADABLE
    assert status[3] == STATUS_CRC_DIFFERS
    assert status[11] == STATUS_UNREADABLE
    assert sum(map(bool, status)) == 3


def test_resume_tries_failed_samples_again(run: Any, samples: Any, work: Path) -> None:
    good = (work / "inputs.bin").read_bytes()
    (work / "inputs.bin").write_bytes(b"\xff" + good[1:])
    write_list(work, samples.list_lines())
    assert run(*FLAGS).returncode == 3
    (work / "inputs.bin").write_bytes(good)
    done = run(*FLAGS, "--resume")
    assert done.returncode == 0
    assert FrameReader().feed(done.stdout)[0].integer("resumed") == 11
    results = read_results(work / "r.res")
    assert len(results.records) == 13
    np.testing.assert_array_equal(results.by_sample()[100].logits, samples.expected()[0])


def test_repeats_give_a_median_and_warm_up_is_not_counted(
    run: Any, samples: Any, work: Path
) -> None:
    write_list(work, samples.list_lines()[:3])
    run(*FLAGS, "--num_executions=5", "--warmup=3")
    assert [record.executions for record in read_results(work / "r.res").records] == [5, 5]


def test_pace_spreads_the_samples(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    start = time.monotonic()
    frames = FrameReader().feed(run(*FLAGS, "--pace_ms=60").stdout)
    assert time.monotonic() - start >= 12 * 0.06
    items = [frame for frame in frames if frame.kind == "item"]
    assert 2 <= len(items) <= 5  # one in 200 ms over 720 ms, and the last
    assert items[-1].integer("id") == 111


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [], "line 1: expected '#k230-inputs 1'"),
        (lambda lines: lines[1:], "line 1: expected '#k230-inputs 1'"),
        (lambda lines: lines[:1], "the list names no sample"),
        (lambda lines: [lines[0].replace(" 1 ", " 2 "), *lines[1:]], "line 1: expected"),
        (lambda lines: [lines[0].replace("float32", "int8"), *lines[1:]], "dtype must be float32"),
        (lambda lines: [lines[0].replace("=3072", "=x"), *lines[1:]], "nbytes is missing"),
        (lambda lines: [lines[0].replace("=3072", "=3076"), *lines[1:]], "samples have 3076 bytes"),
        (lambda lines: [*lines, "112 inputs.bin"], "line 14: expected 'id file offset crc32'"),
        (lambda lines: [*lines, lines[1]], "line 14: sample 100 appears twice"),
        (lambda lines: [*lines, "-1 inputs.bin 0 00000000"], "line 14: expected 'id"),
        (lambda lines: [*lines, "1 inputs.bin 0 0000000g"], "line 14: expected 'id"),
        (lambda lines: [lines[0].replace("float32", "uint8"), *lines[1:]], "needs mean and std"),
        (
            lambda lines: ["#k230-inputs 1 dtype=uint8 nbytes=768 mean=1,2 std=1,2", *lines[1:]],
            "mean and std have 2 channels",
        ),
    ],
)
def test_a_damaged_list_is_refused_and_results_are_kept(
    run: Any, samples: Any, work: Path, change: Any, reason: str
) -> None:
    (work / "r.res").write_bytes(b"results of an earlier run")
    write_list(work, change(samples.list_lines()))
    done = run(*FLAGS)
    assert done.returncode == 1
    (frame,) = FrameReader().feed(done.stdout)
    assert frame.fields["code"] == "list"
    assert reason in frame.fields["reason"]
    assert frame.run == "run-1"
    assert (work / "r.res").read_bytes() == b"results of an earlier run"


def test_a_missing_list_and_an_unwritable_results_file(run: Any, samples: Any, work: Path) -> None:
    (frame,) = FrameReader().feed(run(*FLAGS).stdout)
    assert frame.fields == {
        "code": "list",
        "reason": "cannot read s.list: No such file or directory",
    }
    write_list(work, samples.list_lines())
    done = run(FLAGS[0], "--results_file=no/folder/r.res", FLAGS[2])
    (frame,) = FrameReader().feed(done.stdout)
    assert frame.fields["code"] == "results"
    assert "no/folder/r.res" in frame.fields["reason"]


def test_a_full_card_ends_with_the_reason(run: Any, samples: Any, work: Path) -> None:
    write_list(work, samples.list_lines())
    done = run(FLAGS[0], "--results_file=/dev/full", FLAGS[2])
    assert done.returncode == 1
    (frame,) = FrameReader().feed(done.stdout)
    assert frame.fields["code"] == "results"
    assert "No space left" in frame.fields["reason"]
