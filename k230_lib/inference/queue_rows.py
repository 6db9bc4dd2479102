"""Rows of a run's database: small statements that several steps of the queue share."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence

import numpy as np

from .queue_schema import Worker
from .results import ResultRecord

LEASE_SECONDS = 120.0
"""A lease of a process that nothing is known of ends so long after its last heartbeat."""


def insert_result(
    db: sqlite3.Connection, record: ResultRecord, board: str, chunk: int, now: float
) -> bool:
    """Enter a result; false when the sample has one already."""
    values = (record.sample_id, board, record.latency_ns, record.executions)
    logits = np.asarray(record.logits, "<f4").tobytes()
    sql = "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)"
    return db.execute(sql, (*values, logits, chunk, now)).rowcount > 0


def boards(db: sqlite3.Connection) -> list[dict[str, str | float | None]]:
    """State of every board, and how many samples it has computed."""
    rows = db.execute(
        "SELECT board, state, message, rate, golden_difference, bytes_sent, (SELECT COUNT(*) "
        "FROM results WHERE results.board = boards.board) AS computed FROM boards ORDER BY 1"
    )
    return [dict(row) for row in rows]


def events(db: sqlite3.Connection, count: int) -> list[tuple[str, str, str]]:
    """The latest events, oldest first: UTC time, board, text."""
    rows = db.execute(
        "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch'), board, text FROM "
        "(SELECT * FROM events ORDER BY id DESC LIMIT ?) ORDER BY id",
        (count,),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def lost(row: sqlite3.Row, last_heard: float) -> bool:
    """Has the process that a row names died, or been silent for too long?"""
    if Worker(row["pid"], row["pid_start"], row["host"]).is_dead():
        return True
    return time.time() - float(last_heard) > LEASE_SECONDS


def insert_chunk(
    db: sqlite3.Connection,
    kind: str,
    samples: Sequence[int],
    pack: Sequence[int],
    *,
    board: str | None = None,
    avoid: str | None = None,
) -> int:
    """Enter an open chunk; returns its number."""
    number = db.execute(
        "INSERT INTO chunks (kind, samples, pack, state, board, avoid) "
        "VALUES (?, ?, ?, 'open', ?, ?)",
        (kind, json.dumps(samples), json.dumps(pack), board, avoid),
    ).lastrowid
    db.executemany("UPDATE samples SET chunk = ? WHERE id = ?", [(number, s) for s in samples])
    return int(number or 0)


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
