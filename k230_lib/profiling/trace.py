"""Traces for Perfetto and chrome://tracing: one process per board, one thread per variant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .profile import Profile
from .samples import EXECUTE

_US_PER_MS = 1000.0


def trace_document(profiles: Iterable[Profile]) -> dict[str, Any]:
    """The trace as plain objects, in the JSON object format of the trace event specification.

    Times are microseconds from the first execution of each profile, so that variants which ran at
    different times lie above each other.
    """
    events: list[dict[str, Any]] = []
    processes: dict[str, int] = {}
    threads: dict[str, int] = {}
    for profile in profiles:
        board = profile.capture.board or "board"
        variant = profile.capture.variant
        if board not in processes:
            processes[board] = len(processes) + 1
            events.append(_name("process_name", board, processes[board]))
        process = processes[board]
        thread = threads.setdefault(variant, len(threads) + 1)
        events.append(_name("thread_name", variant, process, thread))
        events.extend(_executions(profile, process, thread))
    return {"displayTimeUnit": "ms", "traceEvents": events}


def write_trace(path: Path, profiles: Iterable[Profile]) -> None:
    """Write :func:`trace_document` to ``path``."""
    path.write_text(json.dumps(trace_document(profiles), separators=(",", ":")))


def _name(kind: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _executions(profile: Profile, process: int, thread: int) -> Iterator[dict[str, Any]]:
    samples = profile.samples
    whole = next((i for i, key in enumerate(samples.keys) if key.name == EXECUTE), None)
    starts = profile.op_start_ms if whole is None else samples.start_ms[:, [whole]]
    zero = float(starts.min())
    rows = list(profile.events.sort_values("order").itertuples(index=False))
    for execution in range(samples.executions):
        place = {"ph": "X", "pid": process, "tid": thread}
        if whole is not None:
            yield {
                **place,
                "name": f"inference {execution + 1}",
                "cat": "inference",
                "ts": _us(float(samples.start_ms[execution, whole]) - zero),
                "dur": _us(float(samples.ms[execution, whole])),
            }
        for column, row in enumerate(rows):
            yield {
                **place,
                "name": row.operator,
                "cat": row.kind or "operator",
                "ts": _us(float(profile.op_start_ms[execution, column]) - zero),
                "dur": _us(float(profile.op_ms[execution, column])),
                "args": {
                    "module": row.module,
                    "detail": row.detail,
                    "source": row.source,
                    "kernel": row.kernel,
                    "instruction": row.instruction,
                },
            }


def _us(ms: float) -> float:
    return round(ms * _US_PER_MS, 3)
