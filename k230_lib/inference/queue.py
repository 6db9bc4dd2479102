"""The queue of a run: which samples are open, leased to a board, done or given up.

Kept in ``run.sqlite``, written by one process per board. A lease belongs to a process; it returns
when that process has died or has not been heard of for a while. Results of a chunk are committed
in one transaction, and the first result of a sample counts.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConsoleBusyError, InputError
from .chunks import Chunk, QueuedSample
from .queue_outcomes import Failure, cross_check, insert_failure, insert_result
from .queue_rows import LEASE_SECONDS, check_chunk, insert_chunk, lost, new_chunk
from .queue_schema import SCHEMA, Worker, connect, writing
from .results import ResultRecord

_SAMPLE_COLUMNS = "id, shard, offset, nbytes, crc32, label, path, wnid"


@dataclass(frozen=True)
class Counts:
    """How many samples are in which state."""

    total: int
    done: int
    quarantined: int
    leased: int
    open: int

    @property
    def left(self) -> int:
        """Samples without an outcome."""
        return self.total - self.done - self.quarantined


class RunQueue:
    """One run's database. An object may be used by all threads of a process, not after a fork.

    SQLite's locks do not survive a fork: a process that forks workers must have closed its
    queues before.

    Args:
        path: of ``run.sqlite``; its folder exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._worker = Worker.current()
        with writing(self._db) as db:
            for statement in SCHEMA.split(";"):
                db.execute(statement)

    @property
    def _db(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self.path)
        return connection

    def close(self) -> None:
        """Close this thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    # ---- what the run is -----------------------------------------------------------------

    def fill(self, identity: dict[str, str], samples: Iterable[QueuedSample], check: float) -> None:
        """Enter the samples, once; later calls compare the run's identity.

        Args:
            identity: what the run is of; all processes give the same.
            samples: all of them.
            check: share of the samples to be computed by a second board as well.

        Raises:
            InputError: the database belongs to another run.
        """
        every = round(1 / check) if check > 0 else 0
        with writing(self._db) as db:
            known = dict(db.execute("SELECT key, value FROM meta").fetchall())
            if known:
                for key, value in identity.items():
                    if known.get(key) != value:
                        raise InputError(
                            f"{self.path.parent} is a run of another {key} "
                            f"({known.get(key)} there, {value} here)",
                            hint="give another k230_run_id, or delete the folder.",
                        )
                return
            db.executemany("INSERT INTO meta VALUES (?, ?)", identity.items())
            db.executemany(
                f"INSERT INTO samples ({_SAMPLE_COLUMNS}, checked) VALUES (?,?,?,?,?,?,?,?,?)",
                (
                    (
                        *(s.id, s.shard, s.offset, s.nbytes, s.crc32, s.label, s.path, s.wnid),
                        int(every > 0 and number % every == every // 2),
                    )
                    for number, s in enumerate(samples)
                ),
            )

    def meta(self) -> dict[str, str]:
        """The run's identity."""
        return dict(self._db.execute("SELECT key, value FROM meta").fetchall())

    def counts(self) -> Counts:
        """Samples by state."""
        rows = self._db.execute(
            "SELECT state, chunk IS NOT NULL AND chunk IN "
            "(SELECT id FROM chunks WHERE state = 'leased'), COUNT(*) FROM samples GROUP BY 1, 2"
        ).fetchall()
        found = {(row[0], bool(row[1])): int(row[2]) for row in rows}
        done = found.get(("done", False), 0) + found.get(("done", True), 0)
        given_up = found.get(("quarantined", False), 0) + found.get(("quarantined", True), 0)
        leased, is_open = found.get(("open", True), 0), found.get(("open", False), 0)
        return Counts(done + given_up + leased + is_open, done, given_up, leased, is_open)

    # ---- boards --------------------------------------------------------------------------

    def board_begins(self, board: str) -> None:
        """Enter a board as working for the run.

        Raises:
            ConsoleBusyError: another process works with it for the same run.
        """
        now, me = time.time(), self._worker
        with writing(self._db) as db:
            row = db.execute("SELECT * FROM boards WHERE board = ?", (board,)).fetchone()
            if row and row["state"] == "working" and not lost(row, row["seen"]):
                raise ConsoleBusyError(
                    f"the board is in use by process {row['pid']} of {row['host']} for this run",
                    board=board,
                    hint="wait for it to end, or stop it.",
                )
            db.execute(
                "INSERT INTO boards (board, state, message, pid, pid_start, host, started, seen) "
                "VALUES (?, 'working', '', ?, ?, ?, ?, ?) ON CONFLICT (board) DO UPDATE SET "
                "state = 'working', message = '', pid = excluded.pid, rate = 0, ended = NULL, "
                "pid_start = excluded.pid_start, host = excluded.host, seen = excluded.seen",
                (board, me.pid, me.start, me.host, now, now),
            )

    def board_ends(self, board: str, state: str, message: str) -> None:
        """Enter a board as ``done`` or ``failed``; the leases of this process go back."""
        with writing(self._db) as db:
            db.execute(
                "UPDATE boards SET state = ?, message = ?, ended = ? WHERE board = ?",
                (state, message, time.time(), board),
            )
            db.execute(
                "UPDATE chunks SET state = 'open' WHERE state = 'leased' AND board = ? AND pid = ?",
                (board, self._worker.pid),
            )

    def heartbeat(self, board: str, rate: float | None = None) -> None:
        """Say that the board's process lives; prolongs its leases."""
        now = time.time()
        with writing(self._db) as db:
            db.execute(
                "UPDATE boards SET seen = ?, rate = COALESCE(?, rate) WHERE board = ?",
                (now, rate, board),
            )
            db.execute(
                "UPDATE chunks SET expires = ? WHERE state = 'leased' AND board = ? AND pid = ?",
                (now + LEASE_SECONDS, board, self._worker.pid),
            )

    def note_board(self, board: str, *, sent: int = 0, golden: float | None = None) -> None:
        """Add to a board's figures: bytes sent, largest difference of the golden sample."""
        self._db.execute(
            "UPDATE boards SET bytes_sent = bytes_sent + ?, "
            "golden_difference = COALESCE(?, golden_difference) WHERE board = ?",
            (sent, golden, board),
        )

    def rates(self) -> dict[str, float]:
        """Samples per second of the boards that work now; 0 where not known yet."""
        rows = self._db.execute(
            "SELECT board, rate, pid, pid_start, host, seen FROM boards WHERE state = 'working'"
        ).fetchall()
        return {row["board"]: float(row["rate"]) for row in rows if not lost(row, row["seen"])}

    def event(self, board: str, text: str) -> None:
        """Write what happened into the run's log."""
        self._db.execute(
            "INSERT INTO events (at, board, text) VALUES (?, ?, ?)", (time.time(), board, text)
        )

    def checks_wanted(self, board: str) -> bool:
        """Are there samples that this board may compute to compare them?"""
        row = self._db.execute(
            "SELECT EXISTS (SELECT 1 FROM samples JOIN results ON results.sample = samples.id "
            "WHERE checked = 1 AND state = 'done' AND results.board != ? AND samples.chunk IS NULL "
            "AND samples.id NOT IN (SELECT sample FROM checks)) OR EXISTS (SELECT 1 FROM chunks "
            "WHERE kind = 'check' AND state = 'open' AND avoid != ?)",
            (board, board),
        ).fetchone()
        return bool(row[0])

    def open_for(self, board: str) -> bool:
        """Is there main work that this board may lease now?

        A sample that failed on a board is open for others only, as long as there are others.
        """
        others = any(name != board for name in self.rates())
        row = self._db.execute(
            "SELECT EXISTS (SELECT 1 FROM samples WHERE state = 'open' AND chunk IS NULL) "
            "OR EXISTS (SELECT 1 FROM chunks WHERE kind = 'main' AND state = 'open' "
            "AND (avoid IS NULL OR avoid != ? OR ?))",
            (board, not others),
        ).fetchone()
        return bool(row[0])

    # ---- leases --------------------------------------------------------------------------

    def lease(self, board: str, want: int, max_bytes: int | None = None) -> Chunk | None:
        """Give the board a chunk of at most ``want`` samples, or None when there is none for it.

        First come chunks that this board had before (their files may still be there), then those
        of others, then samples that nobody has had, then cross-checks.
        """
        others = [name for name in self.rates() if name != board]
        with writing(self._db) as db:
            self._reclaim(db)
            chunk = db.execute(
                "SELECT * FROM chunks WHERE state = 'open' AND kind = 'main' "
                "AND (avoid IS NULL OR avoid != ? OR ?) "
                "ORDER BY (board IS ?) DESC, id LIMIT 1",
                (board, not others, board),
            ).fetchone()
            number = int(chunk["id"]) if chunk else new_chunk(db, want, max_bytes)
            if number is None:
                number = check_chunk(db, board)
            if number is None:
                return None
            return self._take(db, number, board)

    def _reclaim(self, db: sqlite3.Connection) -> None:
        rows = db.execute(
            "SELECT id, pid, pid_start, host, expires FROM chunks WHERE state = 'leased'"
        ).fetchall()
        dead = [(row["id"],) for row in rows if lost(row, row["expires"] - LEASE_SECONDS)]
        db.executemany("UPDATE chunks SET state = 'open' WHERE id = ?", dead)

    def _take(self, db: sqlite3.Connection, number: int, board: str) -> Chunk:
        row = db.execute("SELECT * FROM chunks WHERE id = ?", (number,)).fetchone()
        ids: list[int] = json.loads(row["samples"])
        if row["kind"] == "main":
            # A process thought dead may have committed in the meantime.
            ids = [sample.id for sample in self._samples(db, ids, only_open=True)] or ids
        packed: list[int] = json.loads(row["pack"]) if row["board"] == board else ids
        now, me = time.time(), self._worker
        db.execute(
            "UPDATE chunks SET state = 'leased', board = ?, pid = ?, pid_start = ?, host = ?, "
            "expires = ?, leased = ?, started = NULL, samples = ?, pack = ? WHERE id = ?",
            (
                *(board, me.pid, me.start, me.host, now + LEASE_SECONDS, now),
                *(json.dumps(ids), json.dumps(packed), number),
            ),
        )
        return Chunk(
            number,
            str(row["kind"]),
            tuple(self._samples(db, ids)),
            tuple(self._samples(db, packed)),
        )

    def start(self, chunk: Chunk) -> None:
        """The board begins to compute the chunk."""
        self._db.execute("UPDATE chunks SET started = ? WHERE id = ?", (time.time(), chunk.id))

    def release(self, chunk: Chunk) -> None:
        """Give a chunk back as it is."""
        self._db.execute(
            "UPDATE chunks SET state = 'open' WHERE id = ? AND state = 'leased'", (chunk.id,)
        )

    # ---- outcomes ------------------------------------------------------------------------

    def commit(
        self,
        chunk: Chunk,
        board: str,
        records: Sequence[ResultRecord],
        failures: Sequence[Failure] = (),
        *,
        tolerance: float = 1e-4,
    ) -> int:
        """Enter the outcome of a chunk; samples without one go back to the queue.

        Args:
            records: verified records with status 0.
            failures: samples that gave none, with the reason; a second failure gives a sample up.
            tolerance: largest difference between boards, relative to the largest logit.

        Returns:
            How many samples have got their result now.
        """
        now = time.time()
        with writing(self._db) as db:
            fresh = 0
            for record in records:
                if insert_result(db, record, board, chunk.id, now):
                    fresh += 1
                else:
                    cross_check(db, record, board, tolerance, now)
            ids = [(record.sample_id,) for record in records]
            db.executemany("UPDATE samples SET state = 'done', chunk = NULL WHERE id = ?", ids)
            failed = {failure.sample for failure in failures}
            for failure in failures:
                insert_failure(db, chunk, board, failure, now)
            done = {record.sample_id for record in records} | failed
            rest = [sample.id for sample in chunk.samples if sample.id not in done]
            db.execute(
                "UPDATE chunks SET state = 'done', ended = ?, computed = ? WHERE id = ?",
                (now, len(records), chunk.id),
            )
            if rest:
                pack = [sample.id for sample in chunk.pack]
                avoid = db.execute("SELECT avoid FROM chunks WHERE id = ?", (chunk.id,)).fetchone()
                insert_chunk(db, chunk.kind, rest, pack, board=board, avoid=avoid[0])
        return fresh

    def wanted_packs(self, board: str) -> list[Chunk]:
        """Open chunks whose files may still lie on the board from an earlier attempt."""
        with writing(self._db) as db:
            self._reclaim(db)
        rows = self._db.execute(
            "SELECT id, kind, samples, pack FROM chunks WHERE state = 'open' AND board = ?",
            (board,),
        ).fetchall()
        return [
            Chunk(
                int(row["id"]),
                str(row["kind"]),
                tuple(self._samples(self._db, json.loads(row["samples"]))),
                tuple(self._samples(self._db, json.loads(row["pack"]))),
            )
            for row in rows
        ]

    def _samples(
        self, db: sqlite3.Connection, ids: Sequence[int], *, only_open: bool = False
    ) -> list[QueuedSample]:
        found = {
            int(row["id"]): QueuedSample(*row)
            for row in db.execute(
                f"SELECT {_SAMPLE_COLUMNS} FROM samples WHERE id IN "
                f"(SELECT value FROM json_each(?)) AND (state = 'open' OR ?)",
                (json.dumps(list(ids)), not only_open),
            )
        }
        return [found[number] for number in ids if number in found]
