# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Make tables and reports from traces, on the controller."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.plugins.plugin_utils.controller_action import (
    ControllerAction,
)


class ActionModule(ControllerAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "run": {"type": "path", "required": True},
        "model": {"type": "path"},
        "variants": {"type": "list", "elements": "str", "default": []},
        "baseline": {"type": "str"},
        "out": {"type": "path"},
        "fail_slower": {"type": "float"},
        "fail_operator_slower": {"type": "float"},
    }

    def command(self, args: dict[str, Any]) -> list[str]:
        """``k230 profile report``; empty values are as good as none, as roles pass them."""
        command = ["profile", "report", args["run"], "--json"]
        for name in ("model", "baseline", "out"):
            if args[name]:
                command += [f"--{name}", args[name]]
        for variant in args["variants"]:
            command += ["--variant", variant]
        for name in ("fail_slower", "fail_operator_slower"):
            if args[name] is not None:
                command += [f"--{name.replace('_', '-')}", str(args[name])]
        return command
