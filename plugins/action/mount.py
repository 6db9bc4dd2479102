# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Have a board's data partition mounted."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.provisioning import ensure_mount
from ansible_collections.k230.executorch.plugins.plugin_utils.storage_action import StorageAction


class ActionModule(StorageAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        **StorageAction.ARGUMENTS,
        "state": {"type": "str", "choices": ["mounted", "unmounted"], "default": "mounted"},
        "daemon": {"type": "bool", "default": True},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Look, mount or unmount, look again."""
        outcome = ensure_mount(
            self.shell,
            self.target(args),
            mounted=args["state"] == "mounted",
            daemon=args["daemon"],
            check=self.check_mode,
        )
        return self.result(outcome, "mount")
