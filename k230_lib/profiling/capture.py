"""The file beside a trace that says what was traced: ``capture.json``.

An ETDump names neither model, board nor kernels. The action plugin writes this file when it has
fetched and checked the trace; a trace without one is still read, with less certainty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .sources import read_file, sha256_of

SCHEMA_VERSION = 1
FILE_NAME = "capture.json"
ETDUMP_NAME = "model.etdump"
UNKNOWN = "unknown"
ORIGINS = ("measured_here", "modelled", "measured_on_board", UNKNOWN)
_TRACE_AGAIN = "run profile.yml again."

ITERATION = re.compile(r"Iteration (\d+) of (\d+): (\d+\.\d+) ms")
# Both figures are printed with six decimals.
_ROUNDING = 2e-6
_EXECUTED = re.compile(r"Model executed successfully (\d+) time\(s\) in (\d+\.\d+) ms")


@dataclass(frozen=True)
class Capture:
    """One trace: of which model, with which kernels, on which board.

    ``wall_ms`` holds the time of each traced inference as the runner's own clock saw it, or its
    mean alone; empty when the runner did not say. ``tick_hz`` is the rate of the clock of the
    trace. ``origin`` is one of :data:`ORIGINS`; nobody knows that of a trace without capture file.
    ``skip`` counts traced executions at the beginning that were warm-up.
    """

    variant: str
    board: str
    model: str = ""
    origin: str = UNKNOWN
    pte_sha256: str = ""
    etdump_sha256: str = ""
    runner_sha256: str = ""
    executions: int = 0
    warmup: int = 0
    skip: int = 0
    tick_hz: float = 1e9
    wall_ms: tuple[float, ...] = ()
    load_ms: float | None = None
    started: str = ""
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """``variant on board``, for people."""
        return f"{self.variant} on {self.board}" if self.board else self.variant


def write_capture(folder: Path, capture: Capture) -> Path:
    """Write ``capture.json`` into ``folder`` and return its path."""
    path = folder / FILE_NAME
    document = {"schema_version": SCHEMA_VERSION, **asdict(capture)}
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    return path


def read_capture(path: Path) -> Capture:
    """Read and check a ``capture.json``.

    Raises:
        InputError: it is missing, not JSON, of another schema, or lacks a key.
    """
    data = read_file(path, "capture file", hint=_TRACE_AGAIN)
    try:
        document = json.loads(data)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}.", hint=_TRACE_AGAIN) from error
    found = document.get("schema_version") if isinstance(document, dict) else None
    if found != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema_version {found!r}, expected {SCHEMA_VERSION}.", hint=_TRACE_AGAIN
        )
    return _from_document(path, document)


def capture_of(etdump: Path, variant: str, *, tick_hz: float | None, skip: int | None) -> Capture:
    """What is known of a trace: its capture file when it has one, else the arguments alone.

    Args:
        etdump: the trace; a capture file counts when it lies beside it and names its hash.
        variant: the name that the reports shall use.
        tick_hz: rate of its clock; None means what the capture file says, else 1e9.
        skip: executions to leave out; None means what the capture file says, else 0.

    Raises:
        InputError: there is a capture file, but it cannot be used.
    """
    capture = Capture(variant, "")
    path = etdump.with_name(FILE_NAME)
    if path.is_file() and etdump.is_file():
        beside = read_capture(path)
        if beside.etdump_sha256 == sha256_of(etdump):
            capture = replace(beside, variant=variant)
    return replace(
        capture,
        tick_hz=capture.tick_hz if tick_hz is None else tick_hz,
        skip=capture.skip if skip is None else skip,
    )


def _from_document(path: Path, document: Mapping[str, Any]) -> Capture:
    values = {key: value for key, value in document.items() if key != "schema_version"}
    try:
        capture = Capture(
            **{**values, "wall_ms": tuple(float(ms) for ms in values.get("wall_ms", ()))}
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: not a capture file: {error}.", hint=_TRACE_AGAIN) from error
    if capture.origin not in ORIGINS:
        raise InputError(
            f"{path}: origin {capture.origin!r}, expected one of {', '.join(ORIGINS)}.",
            hint=_TRACE_AGAIN,
        )
    return capture


def wall_times(log: str) -> tuple[float, ...]:
    """Times of the inferences, ms, from what ``executor_runner`` prints; empty when in doubt.

    Releases from 1.3 print each execution and their sum, older ones only the sum: its mean is given
    then. A console may lose or change bytes, so count and sum must agree.
    """
    together = _EXECUTED.search(log)
    if not together or not int(together[1]):
        return ()
    count, total = int(together[1]), float(together[2])
    each = tuple(float(match[3]) for match in ITERATION.finditer(log))
    if not each and "Iteration" not in log:
        return (total / count,)
    return each if len(each) == count and abs(sum(each) - total) < _ROUNDING * count else ()
