"""Two runs over the same images: which answers changed, and is it more than chance?

Everything comes from the runs' own folders: model and dataset may have been made anew since.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..evaluation.accuracy import rank
from ..evaluation.agreement import Agreement, Difference, joined
from ..evaluation.agreement import compare as compare_scores
from ..evaluation.compare import Answer, Comparison, compare
from ..inference.queue_schema import connect
from ..inference.run import DATABASE, Begun

Kind = Literal["lost", "gained", "class", "top5"]
KINDS: tuple[Kind, ...] = ("lost", "gained", "class", "top5")
"""Right in the first run only, in the second only, wrong in both in two ways, another five."""

_ROWS = 4096
"""Samples whose scores are in memory at a time."""

_PAIRS = """
SELECT s.id AS id, s.path AS path, s.label AS label,
       a.logits AS first, a.latency_ns AS first_ns, b.logits AS second, b.latency_ns AS second_ns
FROM main.samples s LEFT JOIN main.results a ON a.sample = s.id
LEFT JOIN other.results b ON b.sample = s.id ORDER BY s.id
"""
_SAME = """
SELECT COUNT(*), COALESCE(SUM(a.crc32 != b.crc32), 0) FROM main.samples a
JOIN other.samples b ON a.id = b.id AND a.path = b.path AND a.label = b.label
"""


@dataclass(frozen=True)
class Side:
    """One of the two runs; ``latency_ms`` is the median over the images that both answered."""

    run: str
    model: str
    model_sha256: str
    variant: str
    runner_sha256: str
    origin: str
    missing: tuple[str, ...]
    latency_ms: float | None


@dataclass(frozen=True)
class Change:
    """An image with another best class or another set of five; ``margin`` is the first run's."""

    index: int
    path: str
    label: int
    kind: Kind
    first: tuple[int, ...]
    second: tuple[int, ...]
    margin: float
    close_call: bool


@dataclass(frozen=True)
class RunComparison:
    """The second run against the first.

    Attributes:
        total: images of each run.
        other_tensors: images of which the two runs had different tensors.
        top1: right and wrong by the best class.
        top5: right and wrong by the five best.
        agreement: of the scores, the first run's being the reference.
        changes: every changed image, the lost ones first.
    """

    first: Side
    second: Side
    total: int
    other_tensors: int
    top1: Comparison
    top5: Comparison
    agreement: Agreement
    changes: tuple[Change, ...]

    def count(self, kind: Kind) -> int:
        """How many images changed so."""
        return sum(change.kind == kind for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Plain objects; what is no finite number becomes null."""
        scores = asdict(self.agreement)
        del scores["differences"]
        return {
            "first": asdict(self.first),
            "second": asdict(self.second),
            "total": self.total,
            "other_tensors": self.other_tensors,
            "top1": self.top1.to_json(),
            "top5": self.top5.to_json(),
            "agreement": _finite(scores),
            "changes": [_finite(asdict(change)) for change in self.changes],
        }


def compare_runs(first: Path, second: Path) -> RunComparison:
    """Compare two runs by their folders; nothing is written.

    Raises:
        InputError: one is no run, or they are not of the same images, labels and classes.
    """
    begun = (Begun.load(first), Begun.load(second))
    with closing(_opened(first, second)) as db:
        total, other_tensors = _same_samples(db, first, second)
        pairs = _Pairs()
        for rows in _blocks(db):
            pairs.add(rows)
        models = [
            str(db.execute(f"SELECT value FROM {name}.meta WHERE key = 'model'").fetchone()[0])
            for name in ("main", "other")
        ]
    sides = [
        Side(
            run=folder.resolve().name,
            model=run.model.name,
            model_sha256=model,
            variant=run.settings.variant,
            runner_sha256=run.settings.runner_sha256,
            origin=run.settings.origin,
            missing=tuple(missing),
            latency_ms=median(latencies) if latencies else None,
        )
        for folder, run, model, missing, latencies in zip(
            (first, second), begun, models, pairs.missing, pairs.latencies, strict=True
        )
    ]
    return RunComparison(
        sides[0],
        sides[1],
        total,
        other_tensors,
        compare(*pairs.best),
        compare(*pairs.five),
        joined(pairs.agreements),
        tuple(sorted(pairs.changes, key=lambda one: (KINDS.index(one.kind), one.index))),
    )


class _Pairs:
    """What both runs said, collected block by block; two of each, for the first and the second."""

    def __init__(self) -> None:
        self.best: tuple[dict[int, Answer], dict[int, Answer]] = ({}, {})
        self.five: tuple[dict[int, Answer], dict[int, Answer]] = ({}, {})
        self.missing: tuple[list[str], list[str]] = ([], [])
        self.latencies: tuple[list[float], list[float]] = ([], [])
        self.agreements: list[Agreement] = []
        self.changes: list[Change] = []

    def add(self, rows: list[sqlite3.Row]) -> None:
        for side, name in enumerate(("first", "second")):
            self.missing[side].extend(row["path"] for row in rows if row[name] is None)
            answered = [row for row in rows if row[name] is not None]
            if answered:
                self._answers(side, name, answered)
        both = {row["id"]: row for row in rows if None not in (row["first"], row["second"])}
        if not both:
            return
        scores = [_scores(list(both.values()), name) for name in ("first", "second")]
        if scores[0].shape != scores[1].shape:
            raise InputError(
                f"the runs have {scores[0].shape[1]} and {scores[1].shape[1]} classes",
                hint="compare runs of models with the same classes.",
            )
        for side, name in enumerate(("first_ns", "second_ns")):
            self.latencies[side].extend(row[name] / 1e6 for row in both.values())
        found = compare_scores(scores[0], scores[1], list(both))
        self.agreements.append(found)
        self.changes += [_change(both[one.index], one) for one in found.differences]

    def _answers(self, side: int, name: str, rows: list[sqlite3.Row]) -> None:
        for row, best in zip(rows, rank(_scores(rows, name)).tolist(), strict=True):
            ms = row[f"{name}_ns"] / 1e6
            self.best[side][row["id"]] = Answer(best[0] == row["label"], ms)
            self.five[side][row["id"]] = Answer(row["label"] in best, ms)


def _change(row: sqlite3.Row, found: Difference) -> Change:
    label = int(row["label"])
    kind: Kind = "top5"
    if found.kind == "top1":
        was, is_now = found.reference[0] == label, found.found[0] == label
        kind = "lost" if was else "gained" if is_now else "class"
    return Change(
        index=found.index,
        path=str(row["path"]),
        label=label,
        kind=kind,
        first=found.reference,
        second=found.found,
        margin=found.margin,
        close_call=found.close_call,
    )


def _opened(first: Path, second: Path) -> sqlite3.Connection:
    """The first run's database, with the second's beside it as ``other``."""
    for folder in (first, second):
        if not (folder / DATABASE).is_file():
            raise InputError(f"{folder} is no run", hint="give a folder below runs/.")
    db = connect(first / DATABASE)
    db.execute("ATTACH ? AS other", (str(second / DATABASE),))
    return db


def _same_samples(db: sqlite3.Connection, first: Path, second: Path) -> tuple[int, int]:
    """Number of samples, and of those with other tensors; refuses runs of other images."""
    mine, others = (
        int(db.execute(f"SELECT COUNT(*) FROM {name}.samples").fetchone()[0])
        for name in ("main", "other")
    )
    same, other_tensors = map(int, db.execute(_SAME).fetchone())
    if not same == mine == others:
        raise InputError(
            f"{first} and {second} are not over the same images and labels: {mine} and {others} "
            f"images, {same} in common",
            hint="evaluate both with the same dataset.",
        )
    return same, other_tensors


def _blocks(db: sqlite3.Connection) -> Iterator[list[sqlite3.Row]]:
    cursor = db.execute(_PAIRS)
    while rows := cursor.fetchmany(_ROWS):
        yield rows


def _scores(rows: list[sqlite3.Row], name: str) -> npt.NDArray[np.float32]:
    return np.stack([np.frombuffer(row[name], "<f4") for row in rows])


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in values.items()
    }
