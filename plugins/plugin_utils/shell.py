# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""The board's shell through the user's own Ansible connection."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.k230.executorch.k230_lib.board.shell import CommandResult, with_deadline
from ansible_collections.k230.executorch.k230_lib.errors import BoardUnreachableError

if TYPE_CHECKING:
    from ansible.plugins.connection import ConnectionBase


class AnsibleShell:
    """A ``BoardShell`` on an Ansible connection: port, key and jump host are the inventory's.

    Scripts go to the connection directly and not through ``_low_level_execute_command``, which
    decodes the streams and asks for a terminal.
    """

    def __init__(self, connection: ConnectionBase, board: str) -> None:
        self._connection = connection
        self._board = board
        self.round_trips = 0

    @property
    def board(self) -> str:
        """Inventory name of the board."""
        return self._board

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        """Run ``script`` by the board's ``/bin/sh``; see ``BoardShell.run``."""
        if not stdin:
            # Ansible gives a pseudo terminal as standard input; a script that reads would wait.
            script = f"exec </dev/null\n{script}"
        if timeout is not None:
            script = with_deadline(script, timeout)
        self.round_trips += 1
        try:
            rc, stdout, stderr = self._connection.exec_command(
                f"/bin/sh -c {shlex.quote(script)}", in_data=stdin or None, sudoable=False
            )
        except AnsibleConnectionFailure as failure:
            raise BoardUnreachableError(
                _last_line(str(failure)),
                board=self._board,
                hint="check its power, network, address and key; the others go on.",
            ) from failure
        return CommandResult(rc, stdout, stderr)

    def reset(self) -> None:
        """Drop a kept connection, so that the next call makes a new one."""
        try:
            self._connection.reset()
        except AnsibleConnectionFailure:
            # There was none to drop: what is wanted is so already.
            return


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "the connection failed"
