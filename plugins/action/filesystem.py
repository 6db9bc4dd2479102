# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Have a file system on a board's data partition, without losing files."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.provisioning import ensure_filesystem
from ansible_collections.k230.executorch.k230_lib.board.sizes import parse_size
from ansible_collections.k230.executorch.plugins.plugin_utils.storage_action import StorageAction


class ActionModule(StorageAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        **StorageAction.ARGUMENTS,
        **StorageAction.FILESYSTEM,
        "size": {"type": "str"},
        "repair_primary": {"type": "bool", "default": False},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Go on with what an earlier run began, then keep, grow, make or replace."""
        outcome = ensure_filesystem(
            self.shell,
            self.target(args),
            self.wish(args),
            self.folder(args),
            check=self.check_mode,
            size=parse_size(args["size"]) if args["size"] else None,
            progress=lambda text: self.progress({"event": "storage", "text": text}, text),
        )
        return self.result(outcome, "file system")
