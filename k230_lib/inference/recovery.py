"""Bringing a board back: Ctrl-C, msh check, ``reboot`` from Linux, power, giving up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from ..board.console import MshConsole
from ..board.sharefs import probe, require_usable
from ..board.wait import wait_until_ready
from ..errors import (
    BoardUnreachableError,
    ConsoleBusyError,
    ConsoleError,
    K230Error,
    WrongConsoleError,
)
from .job import BoardJob

_SHUTDOWN = 5.0

OpenConsole = Callable[[], MshConsole]
Say = Callable[[str], None]


def recover(job: BoardJob, console: MshConsole, reopen: OpenConsole, say: Say) -> MshConsole:
    """Bring the board back to a prompt with a usable ``/sharefs``, by the mildest means.

    Args:
        console: the console in use; closed when another one is returned.
        reopen: opens the console anew.
        say: told each step, for log and display.

    Returns:
        The console to go on with.

    Raises:
        K230Error: nothing helped; the message says what was tried.
    """
    try:
        say("looking whether msh answers")
        console.wake()
        wait_until_ready(job.shell, timeout_s=job.limits.reboot)
        return console
    except K230Error as error:
        reason: K230Error = error
    tried = ["Ctrl-C"]
    console.close()
    steps: list[tuple[str, Callable[[], None]]] = [
        ("opening the console anew", lambda: None),
        ("reboot from Linux", lambda: _reboot(job)),
    ]
    power = job.power
    if power is not None:
        steps.append(("power command", lambda: power.cycle(job.board)))
    for name, step in steps:
        say(f"{name} ({reason.message})")
        tried.append(name)
        try:
            step()
            wait_until_ready(job.shell, timeout_s=job.limits.reboot)
            require_usable(probe(job.shell), job.board)
            return reopen()
        except (ConsoleBusyError, WrongConsoleError):
            raise
        except K230Error as error:
            reason = error
    raise ConsoleError(
        f"the board could not be brought back by {', '.join(tried)}: {reason.message}",
        board=job.board,
        hint="restart it by hand (or set k230_power_command), then run again.",
    )


def _reboot(job: BoardJob) -> None:
    with contextlib.suppress(BoardUnreachableError):
        # Gone before it could answer; whether it comes back is seen next.
        job.shell.run("sync; (sleep 1; reboot) >/dev/null 2>&1 </dev/null &", timeout=20)
    # Linux answers for a moment after it was told to restart.
    time.sleep(_SHUTDOWN)
