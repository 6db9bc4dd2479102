# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Builds the runner on the controller; what it decides is in ``k230_lib.runner``."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.plugins.plugin_utils.controller_action import (
    ControllerAction,
)


class ActionModule(ControllerAction):
    """``k230 runner build`` as a task."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "variant": {"type": "str", "default": "portable"},
        "target": {
            "type": "str",
            "default": "host",
            "choices": ["host", "riscv64-linux", "k230-rtsmart"],
        },
        "tracer": {"type": "bool", "default": True},
        "output": {"type": "path", "default": "artifacts/runners"},
        "source": {"type": "path"},
        "prefix": {"type": "path"},
        "defines": {"type": "dict", "default": {}},
        "variants": {"type": "path"},
        "models": {"type": "list", "elements": "path", "default": []},
    }

    def command(self, args: dict[str, Any]) -> list[str]:
        """The arguments of ``k230`` for this task."""
        words = ["runner", "build", "--json", "--variant", args["variant"]]
        words += ["--target", args["target"], "--output", args["output"]]
        words.append("--tracer" if args["tracer"] else "--no-tracer")
        for name in ("source", "prefix", "variants"):
            if args[name]:
                words += [f"--{name}", args[name]]
        for model in args["models"]:
            words += ["--model", model]
        for key, value in sorted(args["defines"].items()):
            words += ["--define", f"{key}={value}"]
        return words
