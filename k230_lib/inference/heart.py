"""Saying every few seconds that a board's process lives; ending it with its parent."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from .job import BoardJob
from .queue import RunQueue
from .schedule import Pace

_BEAT_SECONDS = 10.0
_LOOK_SECONDS = 0.5


@contextlib.contextmanager
def beating(job: BoardJob, queue: RunQueue, pace: Pace) -> Iterator[None]:
    """Keep the board's leases while the body runs."""
    stop = threading.Event()
    parent = os.getppid()

    def beat() -> None:
        last = time.monotonic()
        while not stop.wait(_LOOK_SECONDS):
            if job.end_with_parent and os.getppid() != parent:
                # Nobody waits for the answer any more, and the next start wants the console. The
                # leases of a dead process return by themselves, as after kill -9.
                queue.event(job.board, "the process that started this one has ended: stopping")
                os._exit(1)
            if time.monotonic() - last >= _BEAT_SECONDS:
                last = time.monotonic()
                queue.heartbeat(job.board, pace.rate)

    thread = threading.Thread(target=beat, name=f"heart-{job.board}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
