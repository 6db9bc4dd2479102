"""One board's work in a run: lease, send ahead, compute, verify, commit, until nothing is left.

Two threads: this one has the console and computes; the other has the board's Linux and sends the
next chunk and fetches the results of the last one meanwhile. Nothing is believed but verified
results files; whatever else happens, samples without a result go back to the queue.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from ..board.console import MshConsole
from ..board.sharefs import probe, require_usable
from ..board.wait import wait_until_ready
from ..errors import (
    BoardRebootedError,
    BoardSpaceError,
    BoardUnreachableError,
    ConsoleError,
    ProgramCrashedError,
    ProgramHungError,
    ResultsError,
)
from .chunks import Chunk, SentChunk
from .heart import beating
from .job import BoardJob, BoardOutcome
from .progress import BoardProgress
from .queue import Counts, RunQueue
from .queue_outcomes import Failure
from .recovery import recover
from .results import ResultRecord
from .schedule import Pace, chunk_size, time_to_send
from .session import ChunkRun, ChunkSession
from .store import BoardStore, Collected
from .upstream import UpstreamSession, UpstreamStore

Report = Callable[[BoardProgress], None]

T = TypeVar("T")

_CONNECTION_ATTEMPTS = 3
_POLL = 0.5
_SHORTLY = 0.05
_EXCERPT = 2000


def run_board(job: BoardJob, report: Report = lambda progress: None) -> BoardOutcome:
    """Compute samples of the run on one board until none is left for it.

    Args:
        job: the board and the run.
        report: told how it goes, from this thread.

    Raises:
        K230Error: the board had to stop; its message names the board, its leases are back in the
            queue, and what it has committed stays.
    """
    queue = job.run.queue()
    counts = queue.counts()
    if counts.left == 0 and not queue.checks_wanted(job.board):
        report(_final(job, counts))
        return BoardOutcome(
            job.board, 0, 0, 0, 0.0, 0.0, 0, None, 0, counts.left, counts.quarantined
        )
    queue.board_begins(job.board)
    engine = BoardEngine(job, queue, report)
    try:
        outcome = engine.work()
    except BaseException as error:
        queue.board_ends(job.board, "failed", str(error) or type(error).__name__)
        raise
    queue.board_ends(job.board, "done", "")
    report(_final(job, queue.counts()))
    return outcome


class BoardEngine:
    """The state of one board's session; use :func:`run_board`."""

    def __init__(self, job: BoardJob, queue: RunQueue, report: Report) -> None:
        self._job, self._queue, self._report = job, queue, report
        kind = UpstreamStore if job.upstream else BoardStore
        self._store = kind(job.shell, job.run, job.limits.reserve)
        self._pace = Pace()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"transfer-{job.board}")
        self._next: Future[SentChunk | None] | None = None
        self._last: Future[None] | None = None
        self._waiting_for_room = False
        self._in_flight = 0
        self._send_seconds = 0.0
        self._computed = self._checked = self._failed = self._right = 0
        self._fruitless = self._recoveries = 0
        self._stuck_at: int | None = None
        self._golden_difference: float | None = None
        self._console: MshConsole

    def work(self) -> BoardOutcome:
        """The whole session."""
        begin = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.callback(self._pool.shutdown, cancel_futures=True)
            stack.enter_context(beating(self._job, self._queue, self._pace))
            self._tell("start", "opening console")
            self._console = self._open_console()
            stack.callback(self._close_console)
            require_usable(probe(self._job.shell), self._job.board)
            self._tell("start", "preparing /sharefs")
            self._store.prepare(self._queue.wanted_packs(self._job.board))
            self._check_golden()
            self._loop()
        counts = self._queue.counts()
        self._queue.note_board(self._job.board, sent=self._store.bytes_sent)
        return BoardOutcome(
            board=self._job.board,
            computed=self._computed,
            checked=self._checked,
            failed=self._failed,
            seconds=time.monotonic() - begin,
            rate=self._pace.rate,
            bytes_sent=self._store.bytes_sent,
            golden_difference=self._golden_difference,
            recoveries=self._recoveries,
            left=counts.left,
            quarantined=counts.quarantined,
        )

    # ---- the two threads -----------------------------------------------------------------

    def _loop(self) -> None:
        while True:
            self._send_ahead()
            assert self._next is not None
            packed = self._next.result()
            self._next = None
            if packed is not None:
                self._compute(packed)
                continue
            self._settle_last()
            if self._waiting_for_room:
                self._waiting_for_room = False
                continue
            counts, board = self._queue.counts(), self._job.board
            if counts.left == 0 and not self._queue.checks_wanted(board):
                return
            if counts.left and not counts.leased:
                if not self._queue.open_for(board):
                    # What is left has failed here; the others will do it.
                    return
                time.sleep(_SHORTLY)
                continue
            self._tell("wait", "for the other boards")
            time.sleep(_POLL)

    def _send_ahead(self) -> None:
        """Let the other thread lease and send the next chunk."""
        if self._next is None:
            self._next = self._pool.submit(self._lease_and_send)

    def _send_in_time(self, left: int) -> None:
        """Send ahead when the present chunk will be done soon."""
        if time_to_send(left, self._pace.rate, self._send_seconds):
            self._send_ahead()

    def _lease_and_send(self) -> SentChunk | None:
        job, sample = self._job, self._job.run.header.nbytes
        if self._store.room < sample:
            self._with_linux(self._store.measure)
        if self._store.room < sample:
            if not self._in_flight:
                raise self._store.no_room(sample)
            self._waiting_for_room = True
            return None
        self._queue.heartbeat(job.board, self._pace.rate)
        rates = self._queue.rates()
        want = chunk_size(self._queue.counts().open, rates, job.board, job.run.settings.chunk)
        chunk = self._queue.lease(job.board, want, self._store.room)
        if chunk is None:
            return None
        begin = time.monotonic()
        try:
            packed = self._with_linux(lambda: self._store.send(chunk))
        except BoardSpaceError:
            self._queue.release(chunk)
            if not self._in_flight:
                raise
            self._waiting_for_room = True
            self._with_linux(self._store.measure)
            return None
        self._in_flight += 1
        parts = job.run.settings.chunk / len(chunk.pack)
        self._send_seconds = (time.monotonic() - begin) * max(1.0, parts)
        return packed

    def _with_linux(self, step: Callable[[], T]) -> T:
        """Do a step on the board's Linux; a broken connection is waited for and tried again."""
        for _ in range(_CONNECTION_ATTEMPTS):
            try:
                return step()
            except BoardUnreachableError as error:
                self._queue.event(self._job.board, f"connection lost: {error.message}")
                wait_until_ready(self._job.shell, timeout_s=self._job.limits.reboot)
        return step()

    def _settle_last(self) -> None:
        """Wait until the results of the last chunk are committed."""
        if self._last is not None:
            last, self._last = self._last, None
            last.result()

    def _compute(self, packed: SentChunk) -> None:
        self._queue.start(packed.chunk)
        begin = time.monotonic()
        self._pace.begin()
        self._send_in_time(len(packed.chunk.samples))
        end = self._run(packed, lambda done: self._on_done(packed.chunk, done))
        if end.error is None:
            computed = len(packed.chunk.samples) - end.resumed
            self._pace.add(computed, time.monotonic() - begin)
        self._settle_last()
        if end.error is not None:
            # What the board holds can be fetched once it is back.
            self._bring_back(end.error)
        self._last = self._pool.submit(self._conclude, packed, end)
        if end.error is not None or self._fruitless:
            self._settle_last()

    def _run(self, packed: SentChunk, on_done: Callable[[int], None]) -> ChunkRun:
        job, options = self._job, self._job.run.settings.options
        silence = job.limits.silence(self._pace.rate, options.repeats)
        if isinstance(self._store, UpstreamStore):
            single = UpstreamSession(self._console, self._store, job.runner)
            return single.run(packed, silence=silence, on_done=on_done)
        session = ChunkSession(self._console, job.run.id)
        command = self._store.command(packed, job.runner)
        return session.run(command, silence=silence, on_done=on_done)

    def _on_done(self, chunk: Chunk, running: int) -> None:
        self._pace.at(running, time.monotonic())
        self._send_in_time(len(chunk.samples) - running)
        if chunk.kind == "check":
            self._tell("check", f"{running} of {len(chunk.samples)} of another board")
        else:
            self._tell("compute", running=running)

    # ---- outcomes (in the other thread) ---------------------------------------------------

    def _conclude(self, packed: SentChunk, end: ChunkRun) -> None:
        """Fetch, verify, commit, delete."""
        job, chunk = self._job, packed.chunk
        got = self._with_linux(lambda: self._store.collect(packed))
        if got.problem:
            self._queue.event(job.board, f"chunk {chunk.id}: {got.problem}")
        failures = [
            Failure(record.sample_id, f"the runner gives status {record.status:#x}", end.output)
            for record in got.bad
        ]
        failures += self._blame(got, end)
        tolerance = job.run.settings.tolerance
        fresh = self._queue.commit(chunk, job.board, got.good, failures, tolerance=tolerance)
        self._count(chunk, got.good, len(failures), fresh)
        rest = len(got.good) + len(failures) < len(chunk.samples)
        self._with_linux(lambda: self._store.discard(packed, keep_pack=rest))
        self._in_flight -= 1
        if not got.good and not (failures and len(chunk.samples) == 1):
            self._fruitless += 1
            if self._fruitless >= job.limits.fruitless:
                raise ResultsError(
                    f"{self._fruitless} chunks in a row brought no result: "
                    f"{end.error.message if end.error else got.problem or end.output}",
                    board=job.board,
                    hint="look at the console log.",
                )
        elif got.good:
            self._fruitless = 0

    def _blame(self, got: Collected, end: ChunkRun) -> list[Failure]:
        """The sample at which the program died, if one is to blame."""
        if not got.missing or not (end.begun or got.good):
            return []
        first = got.missing[0]
        reason = end.error.message if end.error else "the runner ended without this sample"
        reason += f" ({got.problem})" if got.problem else ""
        certain = isinstance(end.error, ProgramCrashedError | ProgramHungError)
        if not certain and self._stuck_at != first:
            # A restart or a cut file may have any cause; twice at one sample is no accident.
            self._stuck_at = first
            return []
        self._stuck_at = None
        return [Failure(first, reason[:_EXCERPT], end.output[:_EXCERPT])]

    def _count(
        self, chunk: Chunk, good: tuple[ResultRecord, ...], failures: int, fresh: int
    ) -> None:
        labels = {sample.id: sample.label for sample in chunk.samples}
        self._failed += failures
        if chunk.kind == "check":
            self._checked += len(good)
            return
        self._computed += fresh
        self._right += sum(int(np.argmax(r.logits)) == labels[r.sample_id] for r in good)

    # ---- golden sample and recovery --------------------------------------------------------

    def _check_golden(self) -> None:
        """Compute the golden sample; stop the board when it computes something else."""
        golden = self._job.golden
        if golden is None:
            return
        self._tell("golden", "computing the golden sample")
        chunk = Chunk(0, "golden", (golden.sample,), (golden.sample,))
        packed = self._store.send(chunk)
        end = self._run(packed, lambda done: None)
        got = self._store.collect(packed)
        self._store.discard(packed, keep_pack=False)
        if end.error is not None and not got.good:
            raise end.error
        if not got.good:
            raise ResultsError(
                f"the golden sample gave no result: {got.problem or end.output}",
                board=self._job.board,
                hint="look at the console log.",
            )
        wanted, found = golden.logits, got.good[0].logits
        difference = float(np.max(np.abs(wanted - found)))
        self._golden_difference = difference
        self._queue.note_board(self._job.board, golden=difference)
        limit = self._job.run.settings.tolerance * max(1.0, float(np.max(np.abs(wanted))))
        if not difference <= limit:
            raise ResultsError(
                f"the golden sample {golden.sample.path} differs from the host's logits by "
                f"{difference:.3g}, {limit:.3g} is allowed",
                board=self._job.board,
                hint="check runner, model and the board's memory; nothing was computed there.",
            )

    def _bring_back(self, error: ConsoleError) -> None:
        self._recoveries += 1
        if self._recoveries > self._job.limits.recoveries:
            raise error
        if isinstance(error, BoardRebootedError):
            self._tell("recover", "the board restarted")
        # The other thread must not use the board's Linux while it may be restarted.
        if self._next is not None:
            self._next.exception()
        self._console = recover(self._job, self._console, self._open_console, self._say)

    def _open_console(self) -> MshConsole:
        job = self._job
        return MshConsole.open(
            job.console, job.board, job.run.console_log(job.board), baudrate=job.baudrate
        )

    def _close_console(self) -> None:
        self._console.close()

    def _say(self, text: str) -> None:
        self._queue.event(self._job.board, text)
        self._console.note(text)
        self._tell("recover", text)

    def _tell(self, phase: str, text: str = "", *, running: int = 0) -> None:
        counts = self._queue.counts()
        rates = {**self._queue.rates(), self._job.board: self._pace.rate}
        speed = sum(rates.values())
        mine = self._computed + running
        self._report(
            BoardProgress(
                board=self._job.board,
                phase=phase,
                done=min(counts.total, counts.done + counts.quarantined + running),
                total=counts.total,
                mine=mine,
                rate=self._pace.rate,
                eta_s=(counts.left - running) / speed if speed > 0 and running else None,
                top1=self._right / self._computed if self._computed else None,
                text=text,
            )
        )


def _final(job: BoardJob, counts: Counts) -> BoardProgress:
    text = f"{counts.left} left" if counts.left else ""
    if counts.quarantined:
        text = ", ".join(filter(None, (text, f"{counts.quarantined} given up")))
    return BoardProgress(
        job.board, "done", counts.done + counts.quarantined, counts.total, text=text
    )
