"""Plans are data: a step is a script for the board and a sentence for people.

A plan is made from facts by pure functions; check mode prints it, a run executes it. The scripts
guard themselves: they refuse to run when another one still runs (an SSH connection that breaks
does not stop a ``mkfs``), when the board was restarted since it was looked at, or when the
partition is not the one that was looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BoardCommandError, StorageError
from .facts_script import LOCK
from .records import BoardFacts
from .shell import BoardShell

_LOG = "/tmp/.k230-storage.log"
_LOCKED = 75
_CHANGED = 76

_GUARD = """export PATH=/bin:/sbin:/usr/bin:/usr/sbin LC_ALL=C
trap '' HUP PIPE
exec 9>>{lock}
flock -n 9 || exit {locked}
[ "$(cat /proc/sys/kernel/random/boot_id)" = "{boot_id}" ] || exit {changed}
[ "$(cat {sys}/start) $(cat {sys}/size)" = "{start} {sectors}" ] || exit {changed}
"""
# Output goes to a file first: with the connection gone, a program that writes would be killed in
# the middle of its work.
_LOGGED = """(
set -e
{body}
) >{log} 2>&1 </dev/null
rc=$?
cat {log}
exit $rc
"""


@dataclass(frozen=True)
class Step:
    """One script for the board.

    Args:
        name: stable short name, for results, journals and tests.
        does: what it does, for people.
        script: exactly what the board's ``sh`` runs.
    """

    name: str
    does: str
    script: str

    def to_json(self) -> dict[str, str]:
        """For a task's result."""
        return {"name": self.name, "does": self.does, "script": self.script}


def guard(facts: BoardFacts) -> str:
    """The lines with which a script makes sure that the board is as ``facts`` say."""
    disk, part = facts.disk, facts.partition
    if disk is None or part is None:
        raise ValueError("scripts that write need a disk and a partition")
    return _GUARD.format(
        lock=LOCK,
        locked=_LOCKED,
        changed=_CHANGED,
        boot_id=facts.boot_id,
        sys=f"/sys/block/{disk.name}/{disk.name}p{part.number}",
        start=part.start,
        sectors=part.sectors,
    )


def guarded_step(facts: BoardFacts, name: str, does: str, body: Sequence[str]) -> Step:
    """A step whose commands run one after the other, to the end or to the first that fails."""
    script = guard(facts) + _LOGGED.format(body="\n".join(body), log=_LOG)
    return Step(name, does, script)


def run_step(shell: BoardShell, step: Step, *, stdin: bytes | None = None) -> bytes:
    """Run one step and return its output.

    Raises:
        StorageError: the board is not as it was when the plan was made; nothing was done.
        BoardCommandError: a command failed.
        BoardUnreachableError: the connection broke; the step may have run.
    """
    result = shell.run(step.script, stdin=stdin)
    if result.rc == _LOCKED:
        raise StorageError(
            f"step {step.name}: another storage command still runs on the board",
            board=shell.board,
            hint="wait until it ends, then run again.",
        )
    if result.rc == _CHANGED:
        raise StorageError(
            f"step {step.name}: the board was restarted or its partition changed since it was "
            "looked at; nothing was done",
            board=shell.board,
            hint="run again.",
        )
    if result.rc != 0:
        lines = (result.text + "\n" + result.stderr.decode("utf-8", "replace")).split("\n")
        told = [line.strip() for line in lines if line.strip()]
        raise BoardCommandError(
            f"step {step.name} ended with status {result.rc}: {told[-1] if told else 'no message'}",
            board=shell.board,
            hint="nothing is lost; remove the cause and run again, it goes on from here.",
        )
    return result.stdout
