# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Wait until a board without Python answers and /sharefs is there."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.wait import wait_until_ready
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction

_START = "`make boards` starts the virtual boards, `k230 boards status` shows which run."


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "timeout": {"type": "float", "default": 60.0},
        "interval": {"type": "float", "default": 1.0},
        "sharefs": {"type": "bool", "default": True},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Probe, also in check mode: nothing is changed by it."""
        hint = {"hint": _START} if self.variable("k230_virtual", False) else {}
        ready = wait_until_ready(
            self.shell,
            timeout_s=args["timeout"],
            interval_s=args["interval"],
            need_sharefs=args["sharefs"],
            on_failure=self.shell.reset,
            **hint,
        )
        return {
            "uptime_s": ready.uptime_s,
            "sharefs_mounted": ready.sharefs_mounted,
            "sharefs_daemon": ready.sharefs_daemon,
        }
