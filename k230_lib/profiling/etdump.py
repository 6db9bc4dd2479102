"""Reading ETDump files, the event traces that ExecuTorch writes at run time.

Read by :mod:`.flatbuf` instead of ``executorch.devtools``: no torch, no helper process, every
offset checked, and fast for traces of many executions. A test compares the outcome with
ExecuTorch's own Inspector cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .flatbuf import Buffer, DamagedBufferError
from .sources import read_file

IDENTIFIER = b"ED00"
_PREFIX_BYTES = 4
_HEAD_BYTES = 12
_EVENT_BYTES_AT_LEAST = 16
_WRAP = 2**32
RERUN = "run the traced runner again and fetch its ETDump."

# Slots of the schema's tables, in the order of their declaration.
_ETDUMP_VERSION, _ETDUMP_RUNS = 0, 1
_RUN_NAME, _RUN_EVENTS = 0, 3
_EVENT_PROFILE = 0
_NAME, _INSTRUCTION, _DELEGATE_INT, _DELEGATE_TEXT, _START, _END = 0, 2, 3, 4, 6, 7


@dataclass(frozen=True, eq=False)
class Run:
    """The profiling events of one block of a trace, in the order of their ends.

    Arrays have one entry per event. ``name`` and ``delegate_text`` index :attr:`EtDump.texts`;
    ``instruction`` and ``delegate_int`` are -1 where they do not apply. ``start`` and ``end`` are
    ticks of the runtime's clock.
    """

    label: str
    name: npt.NDArray[np.int64]
    instruction: npt.NDArray[np.int32]
    delegate_int: npt.NDArray[np.int32]
    delegate_text: npt.NDArray[np.int64]
    start: npt.NDArray[np.uint64]
    end: npt.NDArray[np.uint64]

    @property
    def ticks(self) -> npt.NDArray[np.int64]:
        """Durations in ticks; a 32-bit counter that wrapped in between is mended."""
        raw = (self.end - self.start).astype(np.int64)
        return np.where(self.end < self.start, raw + _WRAP, raw)


@dataclass(frozen=True, eq=False)
class EtDump:
    """A whole trace: its blocks and the strings they refer to."""

    path: Path
    version: int
    texts: tuple[str, ...]
    runs: tuple[Run, ...]


def read_etdump(path: Path) -> EtDump:
    """Read and check an ETDump file.

    Raises:
        InputError: the file is missing, empty, truncated, damaged, of another kind or release, or
            holds no events; the message says which.
    """
    data = read_file(path, "ETDump", hint=RERUN)
    _check_head(path, data)
    try:
        dump = _parse(path, data)
    except DamagedBufferError as error:
        raise InputError(f"{path}: the ETDump is damaged: {error}.", hint=RERUN) from error
    if not any(run.name.size for run in dump.runs):
        raise InputError(
            f"{path}: the ETDump holds no events.",
            hint="use a runner built with the event tracer, and let it end by itself.",
        )
    return dump


def _check_head(path: Path, data: bytes) -> None:
    if len(data) < _HEAD_BYTES:
        raise InputError(
            f"{path}: the ETDump is truncated: {len(data)} bytes are shorter than its head.",
            hint=RERUN,
        )
    identifier = data[8:12]
    if identifier != IDENTIFIER:
        if identifier[:2] == IDENTIFIER[:2] and identifier[2:].isdigit():
            raise InputError(
                f"{path}: ETDump of schema {identifier.decode()}, expected {IDENTIFIER.decode()}: "
                "it was written by another release of ExecuTorch.",
                hint="rebuild the runner with the ExecuTorch that the controller has.",
            )
        kind = "an ETRecord or other zip file" if data[:2] == b"PK" else "another kind of file"
        if data[4:6] == b"ET":
            kind = "a .pte model"
        raise InputError(f"{path}: not an ETDump but {kind}.", hint="give the runner's trace.")
    expected = int.from_bytes(data[:_PREFIX_BYTES], "little") + _PREFIX_BYTES
    if len(data) < expected:
        raise InputError(
            f"{path}: the ETDump is truncated: {len(data)} of {expected} bytes.", hint=RERUN
        )


def _parse(path: Path, data: bytes) -> EtDump:
    buffer = Buffer(data)
    root = buffer.root(_PREFIX_BYTES)
    version = int(buffer.scalar(root, _ETDUMP_VERSION, "<u4", 0)[0])
    run_tables = buffer.tables(int(buffer.child(root, _ETDUMP_RUNS)[0]))
    labels, label_of = buffer.texts(buffer.child(run_tables, _RUN_NAME))
    vectors = [buffer.tables(int(place)) for place in buffer.child(run_tables, _RUN_EVENTS)]
    # Many blocks may refer to one list: a small hostile file must not grow without end.
    if sum(vector.size for vector in vectors) * _EVENT_BYTES_AT_LEAST > len(data):
        raise DamagedBufferError("it claims more events than fit into it")
    events = np.concatenate([*vectors, np.empty(0, dtype=np.int64)])
    profile = buffer.child(events, _EVENT_PROFILE)
    names, name_of = buffer.texts(buffer.child(profile, _NAME))
    delegates, delegate_of = buffer.texts(buffer.child(profile, _DELEGATE_TEXT))
    texts = tuple(names) + tuple(delegates)
    instruction = buffer.scalar(profile, _INSTRUCTION, "<i4", -1)
    delegate_int = buffer.scalar(profile, _DELEGATE_INT, "<i4", -1)
    start = buffer.scalar(profile, _START, "<u8", 0)
    end = buffer.scalar(profile, _END, "<u8", 0)
    if np.any((end < start) & (start >= _WRAP)):
        raise DamagedBufferError("an event ends before it starts")
    runs = []
    first = 0
    for index, vector in enumerate(vectors):
        whole = np.arange(first, first + vector.size)
        kept = whole[profile[whole] >= 0]
        first += vector.size
        runs.append(
            Run(
                label=labels[label_of[index]],
                name=name_of[kept],
                instruction=instruction[kept],
                delegate_int=delegate_int[kept],
                delegate_text=len(names) + delegate_of[kept],
                start=start[kept],
                end=end[kept],
            )
        )
    return EtDump(path=path, version=version, texts=texts, runs=tuple(runs))
