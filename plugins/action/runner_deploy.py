# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Check a runner and put it on a board."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.inference.deploy import deploy, plan_deploy
from ansible_collections.k230.executorch.k230_lib.runner.preflight import check_runner_file
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "src": {"type": "path", "required": True},
        "folder": {"type": "str", "default": "/sharefs/k230/bin"},
        "target": {
            "type": "str",
            "default": "k230-rtsmart",
            "choices": ["host", "riscv64-linux", "k230-rtsmart"],
        },
        "variant": {"type": "str", "default": "portable"},
        "model": {"type": "path"},
        "keep": {"type": "int", "default": 2},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Check first, then plan, then send: nothing reaches the board that it can't run."""
        runner = Path(args["src"])
        model = Path(args["model"]) if args["model"] else None
        facts = check_runner_file(runner, args["target"], variant=args["variant"], model=model)
        plan = plan_deploy(self.shell, runner, args["folder"], args["variant"], keep=args["keep"])
        result = {
            "path": plan.path,
            "sha256": plan.sha256,
            "upstream": facts.manifest is None,
            "removed": list(plan.remove),
            "load_ms": {"value": facts.load_ms, "origin": "modelled"},
        }
        if self.check_mode:
            return {**result, "changed": plan.send or bool(plan.remove)}
        outcome = deploy(self.shell, runner, plan)
        return {**result, "changed": outcome.changed, "bytes_sent": outcome.bytes_sent}
