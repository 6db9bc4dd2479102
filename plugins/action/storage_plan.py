# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Say what provisioning would do to a board's storage, or what speaks against it."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.provisioning import foresee
from ansible_collections.k230.executorch.k230_lib.board.sizes import parse_size
from ansible_collections.k230.executorch.plugins.plugin_utils.storage_action import StorageAction


class ActionModule(StorageAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        **StorageAction.ARGUMENTS,
        **StorageAction.FILESYSTEM,
        "size": {"type": "str", "required": True},
        "repair_primary": {"type": "bool", "default": False},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """One round trip; never changes anything."""
        size = parse_size(args["size"])
        outcome = foresee(self.shell, self.target(args), size, self.wish(args), self.folder(args))
        # the steps are to come, this task ran none of them
        return {**self.result(outcome, "storage"), "changed": False, "diff": []}
