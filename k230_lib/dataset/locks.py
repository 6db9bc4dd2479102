"""One process at a time makes a folder; what killed ones left is cleared away."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LEFT_BY = re.compile(r"\.(?P<pid>\d+)\.tmp$")


@contextmanager
def only_one(target: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process makes ``target``; the kernel frees the lock of a dead one.

    Args:
        target: file or folder to be made; the lock lies beside it.
        say: told when there is something to wait for.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that makes {target}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_leftovers(folder: Path) -> None:
    """Delete ``*.<pid>.tmp`` below ``folder`` whose process is gone."""
    for path in folder.rglob("*.tmp"):
        match = _LEFT_BY.search(path.name)
        if match and not _running(int(match["pid"])):
            path.unlink(missing_ok=True)


def _running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    # after the name in brackets; a zombie writes no more
    return status.rpartition(")")[2].split()[0] != "Z"


def temporary(path: Path) -> Path:
    """The name under which ``path`` is written before it is renamed; see above."""
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")
