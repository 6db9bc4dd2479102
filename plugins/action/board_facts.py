# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Gather what a board is and what state its storage is in."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.facts import read_facts
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "partition": {"type": "int", "default": 4},
        "mountpoint": {"type": "str", "default": "/sharefs"},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """One round trip, also in check mode: nothing is changed by it."""
        facts = read_facts(self.shell, args["partition"], args["mountpoint"])
        return {"ansible_facts": {"k230": facts.to_json()}}
