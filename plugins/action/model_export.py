# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Export a model to ExecuTorch on the controller."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.plugins.plugin_utils.controller_action import (
    ControllerAction,
)

_PASSES = ("fold_batch_norm", "constants", "fuse_clamp")


class ActionModule(ControllerAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "model": {"type": "str", "required": True},
        "weights": {"type": "str"},
        "transforms": {"type": "str"},
        "out": {"type": "path", "default": "artifacts/models"},
        "name": {"type": "str"},
        "fold_batch_norm": {"type": "bool", "default": True},
        "constants": {"type": "bool", "default": True},
        "fuse_clamp": {"type": "bool", "default": False},
    }

    def command(self, args: dict[str, Any]) -> list[str]:
        """``k230 model export``; empty values are as good as none, as roles pass them."""
        command = ["model", "export", "--json"]
        for option in ("weights", "transforms", "out", "name"):
            if args[option]:
                command += [f"--{option}", args[option]]
        for option in _PASSES:
            dashed = option.replace("_", "-")
            command.append(f"--{dashed}" if args[option] else f"--no-{dashed}")
        # --check is appended to the options, so the model must not follow a "--"
        return [*command, args["model"]]
