"""Rows of a run's database: small statements that several steps of the queue share."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence

from .queue_schema import Worker

LEASE_SECONDS = 120.0
"""A lease of a process that nothing is known of ends so long after its last heartbeat."""

_CHECK_CHUNK = 32


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


def new_chunk(db: sqlite3.Connection, want: int, max_bytes: int | None) -> int | None:
    """A chunk of samples that nobody has had; its number, or None when there are none."""
    rows = db.execute(
        "SELECT id, shard, nbytes FROM samples WHERE state = 'open' AND chunk IS NULL "
        "ORDER BY id LIMIT ?",
        (max(1, want),),
    ).fetchall()
    if not rows:
        return None
    # Within one shard, so that a whole shard on the board is recognised.
    chosen = [int(row["id"]) for row in rows if row["shard"] == rows[0]["shard"]]
    if max_bytes is not None:
        chosen = chosen[: max(1, max_bytes // max(1, int(rows[0]["nbytes"])))]
    return insert_chunk(db, "main", chosen, chosen)


def check_chunk(db: sqlite3.Connection, board: str) -> int | None:
    """A chunk of samples for the board to compare with another's; its number, or None."""
    open_check = db.execute(
        "SELECT id FROM chunks WHERE state = 'open' AND kind = 'check' AND avoid != ?", (board,)
    ).fetchone()
    if open_check:
        return int(open_check["id"])
    rows = db.execute(
        "SELECT samples.id AS id, results.board AS board FROM samples "
        "JOIN results ON results.sample = samples.id "
        "WHERE checked = 1 AND state = 'done' AND results.board != ? "
        "AND samples.id NOT IN (SELECT sample FROM checks) AND samples.chunk IS NULL "
        "ORDER BY samples.id LIMIT ?",
        (board, _CHECK_CHUNK),
    ).fetchall()
    if not rows:
        return None
    chosen = [int(row["id"]) for row in rows if row["board"] == rows[0]["board"]]
    return insert_chunk(db, "check", chosen, chosen, avoid=rows[0]["board"])
