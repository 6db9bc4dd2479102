"""Wait until a board's Linux answers and ``/sharefs`` is there.

sshd is up before ``rcS`` mounts ``/sharefs`` and starts the sharefs daemon, so an answer alone
does not mean that the board can be used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BoardUnreachableError
from .shell import BoardShell

_LOOK = "check power and network, or look at its Linux console."
_PROBE = (
    "read up rest </proc/uptime; echo uptime=$up\n"
    "grep -q ' /sharefs ' /proc/mounts && echo mounted=1\n"
    "pidof sharefs >/dev/null && echo daemon=1\n"
    "true"
)


@dataclass(frozen=True)
class Readiness:
    """What one probe of a board told."""

    uptime_s: float
    sharefs_mounted: bool
    sharefs_daemon: bool

    @property
    def lacks(self) -> str:
        """What is still missing for inference, or an empty string."""
        if not self.sharefs_mounted:
            return "/sharefs is not mounted"
        return "" if self.sharefs_daemon else "the sharefs daemon does not run"


def parse_probe(text: str) -> Readiness:
    """Read the probe's ``key=value`` lines."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return Readiness(float(values.get("uptime", 0)), "mounted" in values, "daemon" in values)


def wait_until_ready(
    shell: BoardShell,
    *,
    timeout_s: float,
    interval_s: float = 1.0,
    need_sharefs: bool = True,
    on_failure: Callable[[], None] = lambda: None,
    hint: str = _LOOK,
) -> Readiness:
    """Probe until the board is ready, one round trip per probe.

    Args:
        on_failure: called after each connection failure, e.g. to drop a stale control socket.
        hint: what to do when the board does not answer.

    Raises:
        BoardUnreachableError: not ready within ``timeout_s``; says what was missing last.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            ready = parse_probe(shell.run(_PROBE).text)
        except BoardUnreachableError as error:
            lacks = error.message
            on_failure()
        else:
            lacks = ready.lacks if need_sharefs else ""
            if not lacks:
                return ready
        if time.monotonic() + interval_s > deadline:
            raise BoardUnreachableError(
                f"not ready within {timeout_s:g} s: {lacks}",
                board=shell.board,
                hint=hint,
            )
        time.sleep(interval_s)
