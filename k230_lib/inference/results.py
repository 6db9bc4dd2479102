"""Reader of the results file of ``k230_runner`` (docs/formats.md): pure, from bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import ResultsError

STATUS_OK: Final = 0
STATUS_CRC_DIFFERS: Final = 0x10001
STATUS_UNREADABLE: Final = 0x10002

_MAGIC: Final = b"K230RES1"
_HEADER: Final = struct.Struct("<8sII32sIIII")
_RECORD_MAGIC: Final = 0x4352324B
_RECORD: Final = struct.Struct("<IIQiIQII")
_CRC: Final = struct.Struct("<I")
_FINGERPRINT_BYTES: Final = 4096


@dataclass(frozen=True)
class ResultsHeader:
    """What ties the file to a run.

    Attributes:
        values: float32 values in each good record, all outputs in order.
        run_id: the run's name.
        model_crc: :func:`model_fingerprint` of the ``.pte``.
        list_crc: CRC-32 of the list file.
    """

    values: int
    run_id: str
    model_crc: int
    list_crc: int


@dataclass(frozen=True)
class ResultRecord:
    """The outcome for one sample.

    Attributes:
        seq: number within the file, from 0.
        sample_id: ``index`` of the dataset's manifest.
        status: 0, an ExecuTorch error code, or one of the ``STATUS_`` values.
        latency_ns: median of the repeats, nanoseconds; 0 when status is not 0.
        input_crc: CRC-32 of the input bytes as the board read them.
        executions: inferences timed.
        logits: float32, shape ``(values,)``; empty when status is not 0.
    """

    seq: int
    sample_id: int
    status: int
    latency_ns: int
    input_crc: int
    executions: int
    logits: npt.NDArray[np.float32] = field(compare=False)


@dataclass(frozen=True)
class Results:
    """All good records of a file.

    Attributes:
        good_bytes: where the good part ends; a runner that resumes cuts there.
        damaged: whether bytes follow the good part.
    """

    header: ResultsHeader
    records: tuple[ResultRecord, ...]
    good_bytes: int
    damaged: bool

    def by_sample(self) -> Mapping[int, ResultRecord]:
        """The last record of each sample: a resumed run tries failed samples again."""
        return {record.sample_id: record for record in self.records}

    def unfinished(self, sample_ids: set[int]) -> set[int]:
        """Which of ``sample_ids`` have no record with status 0."""
        return sample_ids - {r.sample_id for r in self.records if r.status == STATUS_OK}


def parse_results(data: bytes, name: str = "results file") -> Results:
    """Records up to the first damaged one.

    Args:
        data: the file's bytes.
        name: what to call the file in messages.

    Raises:
        ResultsError: the header is not one of a results file, or is damaged.
    """
    header = _parse_header(data, name)
    records: list[ResultRecord] = []
    position = _HEADER.size
    while True:
        record, size = _parse_record(data, position, len(records), header.values)
        if record is None:
            break
        records.append(record)
        position += size
    return Results(header, tuple(records), position, damaged=position < len(data))


def read_results(path: Path) -> Results:
    """:func:`parse_results` of a file.

    Raises:
        ResultsError: it cannot be read, or its header is damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ResultsError(f"cannot read {path}: {error.strerror}.") from None
    return parse_results(data, str(path))


def check_identity(
    header: ResultsHeader, *, run_id: str, model_crc: int, list_crc: int, name: str
) -> None:
    """Refuse results that another run, model or list produced.

    Raises:
        ResultsError: naming the first thing that differs.
    """
    for what, expected, found in (
        ("run", run_id, header.run_id),
        ("model", f"{model_crc:08x}", f"{header.model_crc:08x}"),
        ("list", f"{list_crc:08x}", f"{header.list_crc:08x}"),
    ):
        if expected != found:
            raise ResultsError(
                f"{name} belongs to another {what}: expected {expected}, found {found}.",
                hint="run the evaluation again; the file is replaced.",
            )


def model_fingerprint(path: Path) -> int:
    """CRC-32 of the model file's first 4096 bytes followed by its size as u64."""
    with path.open("rb") as file:
        head = file.read(_FINGERPRINT_BYTES)
    return zlib.crc32(struct.pack("<Q", path.stat().st_size), zlib.crc32(head))


def format_header(header: ResultsHeader) -> bytes:
    """The 64 bytes of a header (for tests and simulators)."""
    run_id = header.run_id.encode("ascii")
    body = _HEADER.pack(
        _MAGIC, _HEADER.size, header.values, run_id, header.model_crc, header.list_crc, 0, 0
    )[:-4]
    return body + _CRC.pack(zlib.crc32(body))


def format_record(record: ResultRecord) -> bytes:
    """The bytes of a record (for tests and simulators)."""
    logits = np.asarray(record.logits, dtype="<f4").tobytes()
    body = (
        _RECORD.pack(
            _RECORD_MAGIC,
            record.seq,
            record.sample_id,
            record.status,
            len(logits) // 4,
            record.latency_ns,
            record.input_crc,
            record.executions,
        )
        + logits
    )
    return body + _CRC.pack(zlib.crc32(body))


def _parse_header(data: bytes, name: str) -> ResultsHeader:
    again = "delete it on the board and run again."
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise ResultsError(f"{name} is no results file ({len(data)} bytes).", hint=again)
    _, size, values, run_id, model_crc, list_crc, _, crc = _HEADER.unpack_from(data)
    if size != _HEADER.size or crc != zlib.crc32(data[: _HEADER.size - 4]):
        raise ResultsError(f"{name} has a damaged header.", hint=again)
    text = run_id.rstrip(b"\0").decode("ascii", "replace")
    return ResultsHeader(values, text, model_crc, list_crc)


def _parse_record(
    data: bytes, position: int, seq: int, values: int
) -> tuple[ResultRecord | None, int]:
    """The record at ``position`` and its size, or nothing when it is damaged or cut short."""
    if len(data) < position + _RECORD.size:
        return None, 0
    magic, found_seq, sample_id, status, count, latency, input_crc, executions = (
        _RECORD.unpack_from(data, position)
    )
    if magic != _RECORD_MAGIC or found_seq != seq or count != (values if status == 0 else 0):
        return None, 0
    body = _RECORD.size + 4 * count
    if len(data) < position + body + _CRC.size:
        return None, 0
    (crc,) = _CRC.unpack_from(data, position + body)
    if crc != zlib.crc32(data[position : position + body]):
        return None, 0
    logits = np.frombuffer(data, "<f4", count, position + _RECORD.size).astype(np.float32)
    record = ResultRecord(seq, sample_id, status, latency, input_crc, executions, logits)
    return record, body + _CRC.size
