# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Grow a board's data partition."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.provisioning import ensure_size
from ansible_collections.k230.executorch.k230_lib.board.sizes import parse_size
from ansible_collections.k230.executorch.plugins.plugin_utils.storage_action import StorageAction


class ActionModule(StorageAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        **StorageAction.ARGUMENTS,
        "size": {"type": "str", "required": True},
        "repair_primary": {"type": "bool", "default": False},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Look, and move the end of the partition."""
        size = parse_size(args["size"])
        outcome = ensure_size(self.shell, self.target(args), size, check=self.check_mode)
        answer = self.result(outcome, "partition table")
        answer["reboot_required"] = outcome.reboot_required
        if outcome.reboot_required:
            # nothing that follows may work on a partition whose size the kernel does not know
            answer["failed"] = True
        return answer
