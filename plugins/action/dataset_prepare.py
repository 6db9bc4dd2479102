# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Turn labelled images into packed tensors on the controller."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.plugins.plugin_utils.controller_action import (
    ControllerAction,
)


class ActionModule(ControllerAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "images": {"type": "path"},
        "digits": {"type": "bool", "default": False},
        "model": {"type": "path", "required": True},
        "name": {"type": "str", "required": True},
        "out": {"type": "path", "default": "artifacts/datasets"},
        "mapping": {"type": "path"},
        "labels": {"type": "path"},
        "layout": {
            "type": "str",
            "choices": ["auto", "folders", "kaggle", "flat", "list", "numeric"],
            "default": "auto",
        },
        "label_base": {"type": "int"},
        "dtype": {"type": "str", "choices": ["uint8", "float32"], "default": "uint8"},
        "limit": {"type": "int"},
        "seed": {"type": "int", "default": 0},
        "shard_size": {"type": "int", "default": 64},
        "max_skipped": {"type": "int", "default": 0},
        "workers": {"type": "int"},
    }
    RULES: ClassVar[dict[str, Any]] = {
        "required_one_of": [["images", "digits"]],
    }

    def command(self, args: dict[str, Any]) -> list[str]:
        """``k230 dataset prepare``; empty values are as good as none, as roles pass them."""
        command = ["dataset", "prepare", "--json"]
        for option, value in args.items():
            if option not in ("images", "digits") and value not in (None, ""):
                command += [f"--{option.replace('_', '-')}", str(value)]
        return [*command, "--digits"] if args["digits"] else [*command, args["images"] or ""]
