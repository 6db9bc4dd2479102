# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Compute what the controller's own ExecuTorch runtime says: the reference for the boards."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.plugins.plugin_utils.controller_action import (
    ControllerAction,
)


class ActionModule(ControllerAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "model": {"type": "path", "required": True},
        "dataset": {"type": "path", "required": True},
        "cache": {"type": "path", "default": "artifacts/host"},
        "first": {"type": "int"},
        "dest": {"type": "path", "required": True},
    }

    def command(self, args: dict[str, Any]) -> list[str]:
        """The arguments of ``k230`` for this task."""
        command = ["model", "host", "--json", "--cache", args["cache"], "--save", args["dest"]]
        if args["first"]:
            command += ["--first", str(args["first"])]
        return [*command, args["model"], args["dataset"]]
