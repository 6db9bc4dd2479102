"""Tables of a run's database ``run.sqlite``, and how it is opened.

Several processes write it at once, one per board: write-ahead log, a long wait for the lock, and
every change in one immediate transaction.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS samples (
    id INTEGER PRIMARY KEY, shard TEXT NOT NULL, offset INTEGER NOT NULL, nbytes INTEGER NOT NULL,
    crc32 INTEGER NOT NULL, label INTEGER NOT NULL, path TEXT NOT NULL, wnid TEXT,
    checked INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'open',
    attempts INTEGER NOT NULL DEFAULT 0, chunk INTEGER
);
CREATE INDEX IF NOT EXISTS samples_open ON samples (state, chunk, id);
CREATE TABLE IF NOT EXISTS chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, samples TEXT NOT NULL,
    pack TEXT NOT NULL, state TEXT NOT NULL, board TEXT, avoid TEXT,
    pid INTEGER, pid_start INTEGER, host TEXT, expires REAL,
    leased REAL, started REAL, ended REAL, computed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS chunks_state ON chunks (state, board);
CREATE TABLE IF NOT EXISTS results (
    sample INTEGER PRIMARY KEY, board TEXT NOT NULL, latency_ns INTEGER NOT NULL,
    executions INTEGER NOT NULL, logits BLOB NOT NULL, chunk INTEGER NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS checks (
    sample INTEGER NOT NULL, board TEXT NOT NULL, difference REAL NOT NULL,
    agrees INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (sample, board)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    id INTEGER PRIMARY KEY, sample INTEGER NOT NULL, board TEXT NOT NULL, reason TEXT NOT NULL,
    excerpt TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS boards (
    board TEXT PRIMARY KEY, state TEXT NOT NULL, message TEXT NOT NULL, pid INTEGER,
    pid_start INTEGER, host TEXT, started REAL NOT NULL, seen REAL NOT NULL, ended REAL,
    rate REAL NOT NULL DEFAULT 0, golden_difference REAL, bytes_sent INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, board TEXT NOT NULL, text TEXT NOT NULL
);
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open the database; transactions are begun explicitly."""
    connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction that no other process can disturb."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@dataclass(frozen=True)
class Worker:
    """A process of this or another machine; its start tells it from one with the same number."""

    pid: int
    start: int
    host: str

    @classmethod
    def current(cls) -> Worker:
        """This process."""
        pid = os.getpid()
        return cls(pid, process_start(pid) or 0, socket.gethostname())

    def is_dead(self) -> bool:
        """Is it known to have ended? Of other machines nothing is known."""
        return self.host == socket.gethostname() and process_start(self.pid) != self.start


def process_start(pid: int) -> int | None:
    """Start of a process in clock ticks since boot, or None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie has ended, but its parent has not asked for its status yet.
    return None if fields[0] == "Z" else int(fields[19])
