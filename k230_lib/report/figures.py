"""Figures of a run, all computed from its database: accuracy, speed, agreement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..evaluation.accuracy import rank, suspect_convention
from ..evaluation.agreement import Agreement, compare
from ..inference.queue_schema import connect
from ..inference.run import HostReference, Run

Logits = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Prediction:
    """One sample's outcome; the fields without a result are None or empty."""

    index: int
    path: str
    label: int
    wnid: str | None
    top5: tuple[int, ...]
    latency_ns: int | None
    board: str
    status: str

    @property
    def top1(self) -> int | None:
        """The class with the largest score."""
        return self.top5[0] if self.top5 else None

    @property
    def top1_correct(self) -> bool:
        """Is the best class the label?"""
        return self.top1 == self.label

    @property
    def top5_correct(self) -> bool:
        """Is the label among the five best classes?"""
        return self.label in self.top5


@dataclass(frozen=True)
class BoardFigures:
    """One board's part: rates in images per second, latencies in milliseconds."""

    board: str
    images: int
    images_per_s: float
    latency_median_ms: float
    latency_p90_ms: float
    top1: float
    top5: float
    state: str
    message: str
    golden_difference: float | None
    bytes_sent: int


@dataclass(frozen=True)
class RunFigures:
    """All figures of a run; shares are of the samples with a result."""

    total: int
    done: int
    quarantined: tuple[int, ...]
    missing: int
    top1: float
    top5: float
    top1_count: int
    top5_count: int
    wall_s: float
    images_per_s: float
    boards: tuple[BoardFigures, ...]
    host: Agreement | None
    cross_checked: int
    cross_disagreeing: tuple[int, ...]
    suspect: str | None = None
    origin: str = "measured_here"

    @property
    def complete(self) -> bool:
        """Has every sample a result?"""
        return self.done == self.total

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why these figures should not be believed, a sentence each; empty when they may be."""
        found = []
        if self.host is not None and not self.host.agrees:
            wrong = [d.index for d in self.host.differences if not d.close_call]
            found.append(
                f"the boards' classes differ from the host runtime's on {len(wrong)} images, "
                f"the first is sample {wrong[0]}"
            )
        if self.cross_disagreeing:
            found.append(
                f"two boards disagree on {len(self.cross_disagreeing)} images, "
                f"the first is sample {self.cross_disagreeing[0]}"
            )
        if self.suspect:
            found.append(self.suspect)
        return tuple(found)


def predictions(run: Run) -> Iterator[Prediction]:
    """Every sample of the run in order, one at a time."""
    for row in _rows(run):
        yield _prediction(row)


def compute(run: Run) -> RunFigures:
    """Compute the figures of a run as it stands."""
    by_board: dict[str, list[Prediction]] = {}
    done: list[Prediction] = []
    quarantined: list[int] = []
    pairs = _Pairs(run.host)
    total = 0
    for row in _rows(run):
        total += 1
        prediction = _prediction(row)
        if row["logits"] is None:
            if prediction.status == "quarantined":
                quarantined.append(prediction.index)
            continue
        done.append(prediction)
        by_board.setdefault(prediction.board, []).append(prediction)
        pairs.add(prediction.index, np.frombuffer(row["logits"], "<f4"))
    db = connect(run.database)
    try:
        spans = _spans(db)
        boards = tuple(
            _board(row, by_board, spans)
            for row in db.execute("SELECT * FROM boards ORDER BY board").fetchall()
        )
        checks = db.execute("SELECT sample, agrees FROM checks ORDER BY sample").fetchall()
    finally:
        db.close()
    wall = union_length([span for each in spans.values() for span in each])
    right1 = sum(prediction.top1_correct for prediction in done)
    right5 = sum(prediction.top5_correct for prediction in done)
    best = np.array([prediction.top5[0] for prediction in done], np.int64)
    labels = np.array([prediction.label for prediction in done], np.int64)
    return RunFigures(
        origin=run.settings.origin,
        total=total,
        done=len(done),
        quarantined=tuple(quarantined),
        missing=total - len(done) - len(quarantined),
        top1=_share(right1, len(done)),
        top5=_share(right5, len(done)),
        top1_count=right1,
        top5_count=right5,
        wall_s=wall,
        images_per_s=len(done) / wall if wall > 0 else 0.0,
        boards=boards,
        host=pairs.agreement(),
        cross_checked=len(checks),
        suspect=suspect_convention(best, labels) if done else None,
        cross_disagreeing=tuple(int(row["sample"]) for row in checks if not row["agrees"]),
    )


def union_length(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of time spans: time in which at least one board computed."""
    length, end = 0.0, float("-inf")
    for begin, stop in sorted(spans):
        if stop > end:
            length += stop - max(begin, end)
            end = stop
    return length


class _Pairs:
    """Logits of the host and of the boards for the same samples."""

    def __init__(self, host: HostReference | None) -> None:
        self._rows: dict[int, Logits] = (
            {} if host is None else dict(zip(host.indices.tolist(), host.logits, strict=True))
        )
        self._given = host is not None
        self._indices: list[int] = []
        self._host: list[Logits] = []
        self._board: list[Logits] = []

    def add(self, index: int, logits: Logits) -> None:
        host = self._rows.get(index)
        if host is not None:
            self._indices.append(index)
            self._host.append(host)
            self._board.append(logits)

    def agreement(self) -> Agreement | None:
        if not self._given:
            return None
        if not self._indices:
            return Agreement(0, 0, 0, 0.0, 0.0, None, ())
        return compare(np.stack(self._host), np.stack(self._board), self._indices)


def _rows(run: Run) -> Iterator[sqlite3.Row]:
    db = connect(run.database)
    try:
        yield from db.execute(
            "SELECT samples.id, path, label, wnid, state, results.board, latency_ns, logits "
            "FROM samples LEFT JOIN results ON results.sample = samples.id ORDER BY samples.id"
        )
    finally:
        db.close()


def _prediction(row: sqlite3.Row) -> Prediction:
    has_result = row["logits"] is not None
    logits = np.frombuffer(row["logits"] or b"", "<f4")
    best = tuple(map(int, rank(logits[None, :])[0])) if has_result else ()
    status = "ok" if has_result else "quarantined" if row["state"] == "quarantined" else "missing"
    return Prediction(
        int(row["id"]),
        str(row["path"]),
        int(row["label"]),
        row["wnid"],
        best,
        int(row["latency_ns"]) if has_result else None,
        str(row["board"] or ""),
        status,
    )


def _spans(db: sqlite3.Connection) -> dict[str, list[tuple[float, float]]]:
    spans: dict[str, list[tuple[float, float]]] = {}
    for row in db.execute(
        "SELECT board, started, ended FROM chunks WHERE kind = 'main' AND state = 'done' "
        "AND started IS NOT NULL AND ended IS NOT NULL"
    ):
        spans.setdefault(row["board"], []).append((float(row["started"]), float(row["ended"])))
    return spans


def _board(
    row: sqlite3.Row,
    by_board: dict[str, list[Prediction]],
    spans: dict[str, list[tuple[float, float]]],
) -> BoardFigures:
    mine: Sequence[Prediction] = by_board.get(row["board"], [])
    seconds = union_length(spans.get(row["board"], []))
    latencies = [p.latency_ns / 1e6 for p in mine if p.latency_ns is not None] or [0.0]
    return BoardFigures(
        board=str(row["board"]),
        images=len(mine),
        images_per_s=len(mine) / seconds if seconds > 0 else 0.0,
        latency_median_ms=float(np.median(latencies)),
        latency_p90_ms=float(np.percentile(latencies, 90)),
        top1=_share(sum(p.top1_correct for p in mine), len(mine)),
        top5=_share(sum(p.top5_correct for p in mine), len(mine)),
        state=str(row["state"]),
        message=str(row["message"]),
        golden_difference=row["golden_difference"],
        bytes_sent=int(row["bytes_sent"]),
    )


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0
