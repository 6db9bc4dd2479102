"""The seam to a board's Linux: run a script, move bytes.

Everything above this seam is pure or written against :class:`BoardShell`; the Ansible plugins
supply one that goes through the user's own connection (port, key, jump host), tests one over
plain ``ssh``.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import BoardCommandError, BoardUnreachableError

SSH_TRANSPORT_FAILED = 255


@dataclass(frozen=True)
class CommandResult:
    """What a script on the board left: exit status and its two streams."""

    rc: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text; undecodable bytes are replaced."""
        return self.stdout.decode("utf-8", "replace")


class BoardShell(Protocol):
    """A board's busybox ``sh``, one round trip per call."""

    @property
    def board(self) -> str:
        """Inventory name of the board, for messages."""
        ...

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        """Run ``script`` by the board's ``/bin/sh`` and wait for its end.

        Args:
            script: POSIX shell text; only tools of the stock image may be used.
            stdin: bytes for its standard input; none means empty.
            timeout: seconds; kept by the controller, the board has no ``timeout``.

        Raises:
            BoardUnreachableError: the connection could not be made, broke or timed out.
        """
        ...


class SshShell:
    """A :class:`BoardShell` over the ``ssh`` program, without Ansible."""

    def __init__(self, board: str, destination: str, options: Sequence[str] = ()) -> None:
        self._board = board
        self._command = ["ssh", "-T", *options, destination]

    @property
    def board(self) -> str:
        return self._board

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        command = [*self._command, f"/bin/sh -c {shlex.quote(script)}"]
        try:
            done = subprocess.run(
                command, input=stdin or b"", capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise BoardUnreachableError(
                f"no answer within {timeout:g} s",
                board=self._board,
                hint="look at its power and network.",
            ) from None
        if done.returncode == SSH_TRANSPORT_FAILED:
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise BoardUnreachableError(
                f"ssh failed: {reason[-1] if reason else 'no reason given'}",
                board=self._board,
                hint="check address, key and that the board is up.",
            )
        return CommandResult(done.returncode, done.stdout, done.stderr)


def with_deadline(script: str, seconds: float) -> str:
    """A script that runs ``script`` and kills it when it takes longer than ``seconds``.

    The board has no ``timeout``. The inner shell gets the caller's standard input, which a
    background job would lose; its status is kept (137 when it was killed).
    """
    return (
        f"exec 3<&0\n( {script}\n) <&3 3<&- & job=$!\n"
        f"( sleep {max(1, round(seconds))}; kill -9 $job ) </dev/null >/dev/null 2>&1 3<&- &\n"
        "guard=$!\n"
        "wait $job; rc=$?; kill $guard 2>/dev/null; exit $rc"
    )


def checked(shell: BoardShell, script: str, *, stdin: bytes | None = None) -> str:
    """Run ``script`` and return its standard output as text.

    Raises:
        BoardCommandError: it ended with a status other than 0.
    """
    result = shell.run(script, stdin=stdin)
    if result.rc != 0:
        tail = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BoardCommandError(
            f"a command ended with status {result.rc}: {tail[0] if tail else script[:80]}",
            board=shell.board,
        )
    return result.text
