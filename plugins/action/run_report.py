# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Sum up a run on the controller."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.plugins.plugin_utils.controller_action import (
    ControllerAction,
)


class ActionModule(ControllerAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "run": {"type": "path", "required": True},
        "allow_missing": {"type": "bool", "default": False},
        "allow_doubts": {"type": "bool", "default": False},
    }

    def command(self, args: dict[str, Any]) -> list[str]:
        """The arguments of ``k230`` for this task."""
        allowed = [name for name in ("allow_missing", "allow_doubts") if args[name]]
        options = [f"--{name.replace('_', '-')}" for name in allowed]
        return ["run", "report", "--json", *options, args["run"]]

    def show(self, answer: dict[str, Any]) -> str:
        """The summary, as text for the terminal."""
        return str(answer["summary"])
