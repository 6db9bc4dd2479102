from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from k230_lib.errors import ResultsError
from k230_lib.inference.results import (
    STATUS_CRC_DIFFERS,
    ResultRecord,
    ResultsHeader,
    check_identity,
    format_header,
    format_record,
    model_fingerprint,
    parse_results,
    read_results,
)

HEADER = ResultsHeader(values=3, run_id="4f2a90b1c3d4", model_crc=0x11223344, list_crc=0x55667788)


def record(seq: int, sample: int, status: int = 0) -> ResultRecord:
    logits = np.array([sample, -1.5, 0.25] if status == 0 else [], dtype=np.float32)
    return ResultRecord(seq, sample, status, 12_345_678, 0xCAFEBABE, 1, logits)


def file_of(*records: ResultRecord) -> bytes:
    return format_header(HEADER) + b"".join(format_record(item) for item in records)


def test_the_layout_is_that_of_the_format_document() -> None:
    data = file_of(record(0, 7))
    assert data[:8] == b"K230RES1"
    assert struct.unpack_from("<II", data, 8) == (64, 3)
    assert data[16:48] == b"4f2a90b1c3d4".ljust(32, b"\0")
    assert struct.unpack_from("<IIII", data, 48) == (
        0x11223344, 0x55667788, 0, zlib.crc32(data[:60]),
    )  # fmt: skip
    body = data[64:]
    assert body[:4] == b"K2RC"
    assert len(body) == 40 + 4 * 3 + 4
    assert struct.unpack_from("<IQiIQII", body, 4) == (0, 7, 0, 3, 12_345_678, 0xCAFEBABE, 1)
    assert struct.unpack_from("<3f", body, 40) == (7.0, -1.5, 0.25)
    assert struct.unpack_from("<I", body, 52) == (zlib.crc32(body[:52]),)


def test_records_come_back() -> None:
    results = parse_results(file_of(record(0, 7), record(1, 9, STATUS_CRC_DIFFERS), record(2, 8)))
    assert results.header == HEADER
    assert [item.sample_id for item in results.records] == [7, 9, 8]
    assert results.records[0].logits.tolist() == [7.0, -1.5, 0.25]
    assert results.records[1].logits.size == 0
    assert results.unfinished({7, 8, 9, 10}) == {9, 10}
    assert not results.damaged


def test_a_failed_sample_that_was_tried_again_counts_with_its_last_record() -> None:
    results = parse_results(file_of(record(0, 7, STATUS_CRC_DIFFERS), record(1, 7)))
    assert results.by_sample()[7].status == 0
    assert results.unfinished({7}) == set()


def test_a_file_cut_anywhere_keeps_the_records_before() -> None:
    data = file_of(record(0, 7), record(1, 8))
    size = len(format_record(record(0, 7)))
    for end in range(64, len(data)):
        results = parse_results(data[:end])
        whole = (end - 64) // size
        assert len(results.records) == whole
        assert results.good_bytes == 64 + whole * size
        assert results.damaged == (end > results.good_bytes)


def test_a_changed_byte_ends_the_good_part() -> None:
    data = file_of(record(0, 7), record(1, 8), record(2, 9))
    size = len(format_record(record(0, 7)))
    for position in range(64 + size, 64 + 2 * size):
        changed = bytearray(data)
        changed[position] ^= 0x40
        results = parse_results(bytes(changed))
        assert [item.sample_id for item in results.records] == [7], position
        assert results.damaged


def test_records_out_of_sequence_are_not_believed() -> None:
    assert len(parse_results(file_of(record(0, 7), record(2, 8))).records) == 1


def test_a_header_with_a_changed_byte_is_refused() -> None:
    data = format_header(HEADER)
    for position in range(64):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(ResultsError, match=r"no results file|damaged header"):
            parse_results(bytes(changed))


def test_a_missing_or_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="No such file"):
        read_results(tmp_path / "r")
    (tmp_path / "r").write_bytes(b"")
    with pytest.raises(ResultsError, match=r"no results file \(0 bytes\)"):
        read_results(tmp_path / "r")


def test_results_of_another_run_model_or_list_are_refused() -> None:
    good = {"run_id": HEADER.run_id, "model_crc": HEADER.model_crc, "list_crc": HEADER.list_crc}
    check_identity(HEADER, **good, name="r")
    for key, what in (("run_id", "run"), ("model_crc", "model"), ("list_crc", "list")):
        other = {**good, key: "other" if key == "run_id" else 1}
        with pytest.raises(ResultsError, match=f"another {what}"):
            check_identity(HEADER, **other, name="r")


def test_the_fingerprint_sees_head_and_size(tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(bytes(5000))
    first = model_fingerprint(path)
    assert first == zlib.crc32(bytes(4096) + struct.pack("<Q", 5000))
    path.write_bytes(bytes(5001))
    assert model_fingerprint(path) != first
    path.write_bytes(b"\1" + bytes(4999))
    assert model_fingerprint(path) != first
