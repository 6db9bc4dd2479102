"""A profile: one trace joined with what is known of its model, as tables and totals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import InputError
from . import tables
from .capture import ETDUMP_NAME, FILE_NAME, Capture, read_capture
from .etdump import read_etdump
from .etrecord import REGENERATE, EtRecord, read_etrecord
from .match import GIVE_OTHER, check_program, check_trace
from .pte import read_pte
from .samples import EXECUTE, Clock, Samples, collect
from .sources import sha256_of

WALL_TOLERANCE = 0.05
_CONTRACT = "model.json"


@dataclass(frozen=True)
class Totals:
    """Medians over executions, ms per inference.

    ``operators_ms`` is the sum of the operators of an execution, ``execute_ms`` the framework's
    own figure for the whole execution, ``wall_ms`` the runner's; None where it was not given.
    ``overhead_ms`` is what the framework takes between operators, 0 when it was not traced.
    ``unexplained`` is the share of the wall time (else of the traced execution) that is not in
    operators, execution by execution where both are known. ``spread`` is p90 - p10 over median.
    """

    executions: int
    operators_ms: float
    execute_ms: float | None
    wall_ms: float | None
    overhead_ms: float
    unexplained: float | None
    spread: float
    macs: int

    @property
    def inference_ms(self) -> float:
        """The best figure for a whole inference: traced execution, else the operators' sum.

        The wall time is not used: boards and runners differ in what they print.
        """
        return self.execute_ms if self.execute_ms is not None else self.operators_ms


@dataclass(frozen=True, eq=False)
class Profile:
    """Everything the reports show of one trace.

    ``op_ms`` has shape [executions, operators], operators in execution order: the ``order``
    column of ``events``. ``op_start_ms`` likewise, on the clock of the trace.
    """

    capture: Capture
    clock: Clock
    samples: Samples
    op_ms: npt.NDArray[np.float64]
    op_start_ms: npt.NDArray[np.float64]
    events: pd.DataFrame
    operators: pd.DataFrame
    kinds: pd.DataFrame
    modules: pd.DataFrame
    inner: pd.DataFrame
    totals: Totals
    has_record: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ModelFiles:
    """Files of the model that ran; each may be absent."""

    etrecord: Path | None = None
    pte: Path | None = None
    contract: Path | None = None


def model_files(folder: Path) -> ModelFiles:
    """The files of a model folder.

    Raises:
        InputError: the folder or its ``model.json`` is missing or not understood.
    """
    contract = folder / _CONTRACT
    if not contract.is_file():
        raise InputError(f"{folder}: no {_CONTRACT} in it, expected a model folder.")
    document = _read_contract(contract)
    paths = (folder / document[part]["file"] for part in ("etrecord", "pte"))
    etrecord, pte = (path if path.exists() else None for path in paths)
    return ModelFiles(etrecord=etrecord, pte=pte, contract=contract)


def load_profile(
    etdump: Path,
    capture: Capture,
    files: ModelFiles = ModelFiles(),
) -> Profile:
    """Read a trace and join it with the model's files.

    Raises:
        InputError: a file cannot be used, or belongs to another model; the message says which.
    """
    notes = _check_hashes(etdump, capture, files)
    clock = Clock(capture.tick_hz)
    samples = collect(read_etdump(etdump), clock, skip=capture.skip)
    chosen, inner = tables.operator_events(samples)
    if not chosen:
        raise InputError(
            f"{etdump}: the trace has executions but no operators in them.",
            hint="use a runner whose kernels and runtime were built with the event tracer.",
        )
    record = _checked_record(samples, chosen, files)
    if record is None:
        notes.append(
            "no ETRecord: module paths, source lines, shapes and multiply-accumulates are missing, "
            "and operators have their kernels' names"
        )
    columns = np.array([operator.kernel for operator in chosen], dtype=np.int64)
    op_ms = samples.ms[:, columns]
    events = tables.event_table(samples, chosen, record)
    totals = _totals(samples, op_ms, capture, int(events["macs"].sum()))
    return Profile(
        capture=capture,
        clock=clock,
        samples=samples,
        op_ms=op_ms,
        op_start_ms=samples.start_ms[:, columns],
        events=events,
        operators=tables.grouped_table(events, op_ms, ["operator"]),
        kinds=tables.grouped_table(events, op_ms, ["operator", "kind"]),
        modules=tables.module_table(events, op_ms),
        inner=tables.inner_table(samples, inner),
        totals=totals,
        has_record=record is not None,
        notes=(*notes, *_sum_notes(totals, samples, clock)),
    )


def load_folder(
    folder: Path, files: ModelFiles, *, variants: Sequence[str] = ()
) -> tuple[Profile, ...]:
    """All captures below ``folder``, ordered by variant and board.

    Args:
        folder: of one run.
        files: of the model.
        variants: only these; all when empty.

    Raises:
        InputError: there are none, two have the same variant and board, or one cannot be used.
    """
    found = sorted(folder.rglob(FILE_NAME))
    if not found:
        raise InputError(
            f"{folder}: no {FILE_NAME} in it or below it.", hint="run profile.yml first."
        )
    captures = [(path, read_capture(path)) for path in found]
    for variant in variants:
        if variant not in {capture.variant for _, capture in captures}:
            known = ", ".join(sorted({capture.variant for _, capture in captures}))
            raise InputError(f"{folder}: no traces of variant {variant!r}, found: {known}.")
    captures = [item for item in captures if not variants or item[1].variant in variants]
    captures.sort(key=lambda item: (item[1].variant, item[1].board))
    labels = [capture.label for _, capture in captures]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice:
        raise InputError(
            f"{folder}: two captures of {twice!r}.", hint="give a folder with one run only."
        )
    return tuple(
        load_profile(path.parent / ETDUMP_NAME, capture, files) for path, capture in captures
    )


def pooled(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """One profile per variant: the executions of all its boards together.

    Raises:
        InputError: the boards of a variant ran different operators.
    """
    by_variant: dict[str, list[Profile]] = {}
    for profile in profiles:
        by_variant.setdefault(profile.capture.variant, []).append(profile)
    return tuple(_pool(group) for group in by_variant.values())


def _pool(group: list[Profile]) -> Profile:
    first = group[0]
    if len(group) == 1:
        return first
    order = first.events.set_index("order")[["instruction", "operator"]].sort_index()
    for other in group[1:]:
        theirs = other.events.set_index("order")[["instruction", "operator"]].sort_index()
        if not order.equals(theirs):
            raise InputError(
                f"{other.capture.label}: other operators than {first.capture.label}.",
                hint="profile one model at a time, with the same runner on all boards.",
            )
    op_ms = np.concatenate([profile.op_ms for profile in group])
    events = tables.with_samples(first.events, op_ms)
    executes = [profile.samples.column(EXECUTE) for profile in group]
    known = [column for column in executes if column is not None]
    walls = [ms for profile in group for ms in profile.capture.wall_ms]
    totals = _summary(
        op_ms,
        np.concatenate(known) if len(known) == len(group) else None,
        tuple(walls),
        first.totals.macs,
    )
    return replace(
        first,
        capture=replace(
            first.capture,
            board=", ".join(profile.capture.board for profile in group),
            wall_ms=tuple(walls),
        ),
        op_ms=op_ms,
        op_start_ms=np.concatenate([profile.op_start_ms for profile in group]),
        events=events,
        operators=tables.grouped_table(events, op_ms, ["operator"]),
        kinds=tables.grouped_table(events, op_ms, ["operator", "kind"]),
        modules=tables.module_table(events, op_ms),
        totals=totals,
        notes=tuple(dict.fromkeys(_pool_notes(group))),
    )


def _pool_notes(group: list[Profile]) -> Iterator[str]:
    for profile in group:
        yield from profile.notes
    builds = {profile.capture.runner_sha256 for profile in group} - {""}
    if len(builds) > 1:
        yield (
            f"the boards ran {len(builds)} different builds of {group[0].capture.variant}: their "
            "times are of different programs"
        )


def _read_contract(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
        return {part: dict(document[part]) for part in ("pte", "etrecord")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not understood ({type(error).__name__}: {error}).", hint=REGENERATE
        ) from error


def _check_hashes(etdump: Path, capture: Capture, files: ModelFiles) -> list[str]:
    """Compare what the hashes say; returns what they cannot say."""
    if capture.etdump_sha256 and etdump.is_file() and etdump.stat().st_size:
        found = sha256_of(etdump)
        if found != capture.etdump_sha256:
            raise InputError(
                f"{etdump}: its sha256 begins {found[:12]}, the capture file says "
                f"{capture.etdump_sha256[:12]}: it was changed or replaced.",
                hint="run profile.yml again.",
            )
    if files.contract is None:
        if files.etrecord is None:
            return []
        return [
            "no model.json: that the ETRecord is of the model that ran was checked by operators "
            "only, not by hash"
        ]
    document = _read_contract(files.contract)
    for part, path in (("etrecord", files.etrecord), ("pte", files.pte)):
        if path is not None and path.is_file() and sha256_of(path) != document[part]["sha256"]:
            raise InputError(
                f"{path}: not the file that {files.contract.name} describes.", hint=REGENERATE
            )
    expected = str(document["pte"]["sha256"])
    if capture.pte_sha256 and capture.pte_sha256 != expected:
        raise InputError(
            f"{etdump}: the trace is of a .pte with sha256 {capture.pte_sha256[:12]}..., the model "
            f"folder holds {expected[:12]}...: another model or another export.",
            hint=GIVE_OTHER,
        )
    if not capture.pte_sha256:
        return ["the trace does not say which .pte ran: checked by operators only, not by hash"]
    return []


def _checked_record(
    samples: Samples, chosen: list[tables.OperatorEvent], files: ModelFiles
) -> EtRecord | None:
    if files.etrecord is None:
        return None
    record = read_etrecord(files.etrecord)
    if files.pte is not None:
        check_program(read_pte(files.pte), record)
    check_trace((samples.keys[operator.kernel] for operator in chosen), record)
    return record


def _totals(
    samples: Samples, op_ms: npt.NDArray[np.float64], capture: Capture, macs: int
) -> Totals:
    return _summary(op_ms, samples.column(EXECUTE), capture.wall_ms, macs)


def _summary(
    op_ms: npt.NDArray[np.float64],
    execute: npt.NDArray[np.float64] | None,
    wall_ms: tuple[float, ...],
    macs: int,
) -> Totals:
    sums = op_ms.sum(axis=1)
    low, middle, high = np.percentile(sums, [10, 50, 90])
    overhead = 0.0 if execute is None else float(np.median(execute - sums))
    whole = np.array(wall_ms) if wall_ms else execute
    if whole is not None and whole.shape != sums.shape:
        # The runner told only one figure for all executions.
        whole, sums = np.array([np.median(whole)]), np.array([middle])
    return Totals(
        executions=int(op_ms.shape[0]),
        operators_ms=float(middle),
        execute_ms=None if execute is None else float(np.median(execute)),
        wall_ms=float(np.median(wall_ms)) if wall_ms else None,
        overhead_ms=overhead,
        unexplained=None if whole is None else float(np.median(1 - sums / whole)),
        spread=float((high - low) / middle) if middle > 0 else 0.0,
        macs=macs,
    )


def _sum_notes(totals: Totals, samples: Samples, clock: Clock) -> list[str]:
    """What does not add up, in words."""
    notes = []
    if totals.wall_ms is None:
        notes.append("the runner's wall time is not known: the clock's rate is unchecked")
    elif abs(totals.unexplained or 0.0) > WALL_TOLERANCE:
        notes.append(_mismatch(totals, totals.wall_ms, clock))
    if samples.other_paths:
        notes.append(
            f"{samples.other_paths} executions ran other events and are left out; figures are of "
            f"the {samples.executions} on the most common path"
        )
    return notes


def _mismatch(totals: Totals, wall_ms: float, clock: Clock) -> str:
    gap = totals.unexplained or 0.0
    text = (
        f"operators sum to {totals.operators_ms:.3f} ms, the runner's wall time is {wall_ms:.3f} "
        f"ms: {abs(gap):.1%} {'not explained by operators' if gap > 0 else 'too much'}"
    )
    inside = totals.execute_ms is not None and abs(1 - totals.execute_ms / wall_ms)
    if inside is not False and inside < WALL_TOLERANCE:
        return f"{text} (the traced execution agrees with it: the rest is the framework's)"
    implied = clock.hz * totals.inference_ms / wall_ms
    return (
        f"{text}; if the runner's time is right, the clock of the trace runs at about "
        f"{implied:.4g} ticks per second, not {clock.hz:.4g}"
    )
