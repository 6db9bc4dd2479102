"""What becomes of a sample in a run's database: a result, a comparison of two, or a failure."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from .chunks import Chunk
from .queue_rows import insert_chunk
from .results import ResultRecord

ATTEMPTS = 2
"""A sample that failed so often is given up."""


@dataclass(frozen=True)
class Failure:
    """Why a sample gave no result on a board."""

    sample: int
    reason: str
    excerpt: str = ""


def insert_result(
    db: sqlite3.Connection, record: ResultRecord, board: str, chunk: int, now: float
) -> bool:
    """Enter a result; false when the sample has one already."""
    values = (record.sample_id, board, record.latency_ns, record.executions)
    logits = np.asarray(record.logits, "<f4").tobytes()
    sql = "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)"
    return db.execute(sql, (*values, logits, chunk, now)).rowcount > 0


def cross_check(
    db: sqlite3.Connection, record: ResultRecord, board: str, tolerance: float, now: float
) -> None:
    """Compare a second result of a sample with the first."""
    row = db.execute(
        "SELECT board, logits FROM results WHERE sample = ?", (record.sample_id,)
    ).fetchone()
    if row["board"] == board:
        return
    first = np.frombuffer(row["logits"], "<f4")
    second = np.asarray(record.logits, np.float32)
    difference = float(np.max(np.abs(first - second))) if first.shape == second.shape else np.inf
    scale = max(1.0, float(np.max(np.abs(first), initial=0.0)))
    db.execute(
        "INSERT OR REPLACE INTO checks VALUES (?, ?, ?, ?, ?)",
        (record.sample_id, board, difference, int(difference <= tolerance * scale), now),
    )


def insert_failure(
    db: sqlite3.Connection, chunk: Chunk, board: str, failure: Failure, now: float
) -> None:
    """Enter a failure; the sample gets another try on another board, or is given up."""
    db.execute(
        "INSERT INTO failures (sample, board, reason, excerpt, at) VALUES (?, ?, ?, ?, ?)",
        (failure.sample, board, failure.reason, failure.excerpt, now),
    )
    if chunk.kind == "check":
        db.execute("UPDATE samples SET chunk = NULL, checked = 0 WHERE id = ?", (failure.sample,))
        return
    db.execute(
        "UPDATE samples SET attempts = attempts + 1, chunk = NULL, "
        "state = CASE WHEN attempts + 1 >= ? THEN 'quarantined' ELSE state END WHERE id = ?",
        (ATTEMPTS, failure.sample),
    )
    row = db.execute("SELECT state FROM samples WHERE id = ?", (failure.sample,)).fetchone()
    if row["state"] == "open":
        insert_chunk(db, "main", [failure.sample], [failure.sample], avoid=board)
