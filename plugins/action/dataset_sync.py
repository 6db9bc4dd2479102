# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Put shards of a dataset on a board."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.dataset.manifest import load
from ansible_collections.k230.executorch.k230_lib.inference.preload import (
    choose_shards,
    look,
    preload,
)
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "dataset": {"type": "path", "required": True},
        "shards": {"type": "list", "elements": "str", "default": []},
        "reserve": {"type": "int", "default": 32 * 2**20},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Look what is there, send what is missing and fits."""
        started = time.monotonic()
        folder = Path(args["dataset"])
        wanted = choose_shards(load(folder), args["shards"])
        plan = look(self.shell, wanted, args["reserve"])
        result = {
            "changed": bool(plan.send),
            "shards": [shard.name for shard in (*plan.present, *plan.send)],
            "left_out": [shard.name for shard in plan.left_out],
        }
        if self.check_mode:
            return result
        sent = preload(self.shell, folder, plan, self.byte_progress("sending shards"))
        return {**result, "bytes_sent": sent, "seconds": round(time.monotonic() - started, 3)}
