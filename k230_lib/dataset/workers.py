"""Work on several cores, with the results in order and a bounded number of them ahead."""

from __future__ import annotations

import ctypes
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from ..errors import EnvironmentProblemError

# M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_TOP_PAD of malloc.h, in bytes.
_KEEP = {-3: 1 << 25, -1: 1 << 27, -2: 1 << 26}

T = TypeVar("T")
R = TypeVar("R")


def ordered(
    function: Callable[[T], R],
    tasks: Iterable[T],
    workers: int,
    prepare: Callable[[], None] | None = None,
) -> Iterator[R]:
    """``map`` over fresh processes.

    Args:
        function: a module's function, so that a worker can import it.
        tasks: taken one by one, at most two for each worker ahead of the results.
        workers: number of processes.
        prepare: called once in each worker.

    Raises:
        EnvironmentProblemError: a worker was killed, usually for want of memory.
    """
    # spawn: a forked copy of a process that holds threads (Ansible, torch) may hang
    context = multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    running: deque[Future[R]] = deque()
    with ProcessPoolExecutor(workers, context, _start, (prepare,)) as pool:
        try:
            while True:
                while len(running) < 2 * workers:
                    try:
                        running.append(pool.submit(function, next(waiting)))
                    except StopIteration:
                        break
                if not running:
                    return
                yield running.popleft().result()
        except BrokenProcessPool:
            raise EnvironmentProblemError(
                "a worker process was killed",
                hint="look at free memory, use fewer workers, and run again: it continues.",
            ) from None
        finally:
            for future in running:
                future.cancel()


def _start(prepare: Callable[[], None] | None) -> None:
    """Set a worker up: it ends with its parent, and leaves Ctrl-C to it.

    A pool's worker whose parent was killed would wait for tasks for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()
    if prepare is not None:
        prepare()


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, for work that allocates and frees pictures by the thousand.

    Otherwise each large buffer is given back to the kernel and faulted in again, page by page: 5 %
    of the time of preprocessing. Other C libraries are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _KEEP.items():
            mallopt(option, value)


def _follow(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
