# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Have keys, password, name, clock and MAC address of a board as wanted."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.access import (
    AccessWish,
    plan_access,
    read_access,
    run_access,
)
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "authorized_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
        "root_password": {"type": "str", "no_log": True},
        "hostname": {"type": "str"},
        "set_clock": {"type": "bool", "default": True},
        "max_clock_skew": {"type": "float", "default": 2.0},
        "mac": {"type": "str"},
        "validate_only": {"type": "bool", "default": False},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Look, then change what differs."""
        wish = AccessWish(
            keys=tuple(args["authorized_keys"]),
            password=args["root_password"],
            hostname=args["hostname"],
            max_skew_s=args["max_clock_skew"] if args["set_clock"] else None,
            mac=args["mac"],
        )
        if args["validate_only"]:
            return {"steps": []}
        state = read_access(self.shell)
        steps = plan_access(state, wish, board=self.board)
        for step in steps:
            if step.name == "mac":
                # the exact value is told before it is written
                self.progress({"event": "access", "text": step.does}, step.does, last=True)
        if not self.check_mode:
            run_access(self.shell, steps)
        answer: dict[str, Any] = {
            "changed": bool(steps),
            "steps": [step.to_json() for step in steps],
            "clock_skew_s": state.clock_skew_s,
            "reboot_required": any(step.name == "mac" for step in steps),
        }
        if self.diff_mode and steps:
            scripts = "".join(f"# {step.name}: {step.does}\n{step.script}\n" for step in steps)
            answer["diff"] = {"prepared": scripts}
        return answer
