# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Make a board's partition table whole."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.provisioning import ensure_table
from ansible_collections.k230.executorch.plugins.plugin_utils.storage_action import StorageAction


class ActionModule(StorageAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        **StorageAction.ARGUMENTS,
        "repair_primary": {"type": "bool", "default": False},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Look, and write the headers that are not right."""
        outcome = ensure_table(self.shell, self.target(args), check=self.check_mode)
        return self.result(outcome, "partition table")
