# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""What the storage modules have in common: arguments, and how an outcome becomes a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.filesystems import FSTYPES, Wish
from ansible_collections.k230.executorch.k230_lib.board.journal import Folder
from ansible_collections.k230.executorch.k230_lib.board.provisioning import Outcome, Target
from ansible_collections.k230.executorch.k230_lib.board.storage import KNOWN_STARTS
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class StorageAction(BoardAction):
    """An action on the data partition."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "partition": {"type": "int", "default": 4},
        "mountpoint": {"type": "str", "default": "/sharefs"},
        "starts": {"type": "list", "elements": "int", "default": list(KNOWN_STARTS)},
        "stop_users": {"type": "bool", "default": False},
    }
    FILESYSTEM: ClassVar[dict[str, Any]] = {
        "fstype": {"type": "str", "choices": list(FSTYPES), "default": "auto"},
        "label": {"type": "str", "default": "K230_APP"},
        "replace": {"type": "bool", "default": False},
        "preserve": {"type": "bool", "default": True},
        "backup_dir": {"type": "path", "default": ".k230/storage"},
    }

    def target(self, args: dict[str, Any]) -> Target:
        """The partition that the arguments name."""
        return Target(
            partition=args["partition"],
            mountpoint=args["mountpoint"],
            starts=tuple(args["starts"]),
            repair_primary=args.get("repair_primary", False),
            stop_users=args["stop_users"],
        )

    def wish(self, args: dict[str, Any]) -> Wish:
        """The file system that the arguments ask for."""
        return Wish(
            fstype=args["fstype"],
            label=args["label"],
            replace=args["replace"],
            preserve=args["preserve"],
            stop_users=args["stop_users"],
        )

    def folder(self, args: dict[str, Any]) -> Folder:
        """The journal of this board."""
        return Folder(Path(args["backup_dir"]), self.board)

    def result(self, outcome: Outcome, what: str) -> dict[str, Any]:
        """The task's result; in diff mode also the state before and after, and every script."""
        steps = [step.to_json() for step in outcome.steps]
        answer: dict[str, Any] = {
            "changed": outcome.changed,
            "steps": steps,
            **outcome.extra,
        }
        if outcome.message:
            answer["msg"] = outcome.message
        if self.diff_mode and outcome.changed:
            scripts = "".join(
                f"# {step['name']}: {step['does']}\n{step['script']}" for step in steps
            )
            answer["diff"] = [
                {
                    "before_header": what,
                    "after_header": what,
                    "before": outcome.before,
                    "after": outcome.after,
                },
                {"prepared": scripts},
            ]
        return answer
