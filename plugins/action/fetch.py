# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Have a file of a board on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.files import (
    fetch_file,
    file_sha256,
    probe_files,
)
from ansible_collections.k230.executorch.k230_lib.errors import TransferError
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "src": {"type": "str", "required": True},
        "dest": {"type": "path", "required": True},
        "sha256": {"type": "str"},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Bring the file unless the controller has it already."""
        target = Path(args["dest"])
        if self.check_mode:
            remote = probe_files(self.shell, [args["src"]])[0]
            if remote.size < 0:
                raise TransferError(f"there is no file {args['src']}", board=self.board)
            same = target.is_file() and file_sha256(target) == remote.sha256
            return {"changed": not same, "dest": str(target), "sha256": remote.sha256}
        outcome = fetch_file(
            self.shell,
            args["src"],
            target,
            sha256=args["sha256"],
            progress=self.byte_progress(f"fetching {args['src']}"),
        )
        return {
            "changed": outcome.changed,
            "dest": str(target),
            "sha256": outcome.sha256,
            "size": outcome.size,
        }
