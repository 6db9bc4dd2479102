# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Have a file of the controller on a board."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.files import (
    PutRequest,
    put_file,
    would_change,
)
from ansible_collections.k230.executorch.k230_lib.errors import InputError
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "src": {"type": "path"},
        "content": {"type": "str"},
        "dest": {"type": "str", "required": True},
        "mode": {"type": "str"},
        "sha256": {"type": "str"},
    }
    RULES: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [("src", "content")],
        "required_one_of": [("src", "content")],
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Send what is not there already."""
        source: Path | bytes = (
            Path(args["src"]) if args["src"] else (args["content"] or "").encode()
        )
        if isinstance(source, Path) and not source.is_file():
            raise InputError(f"there is no file {source} on the controller", board=self.board)
        mode = _mode(args["mode"])
        if self.check_mode:
            request = PutRequest(source, args["dest"], args["sha256"], mode)
            return {"changed": would_change(self.shell, [request])[0], "dest": args["dest"]}
        outcome = put_file(
            self.shell,
            source,
            args["dest"],
            sha256=args["sha256"],
            mode=mode,
            progress=self.byte_progress(f"sending {args['dest']}"),
        )
        return {
            "changed": outcome.changed,
            "dest": args["dest"],
            "bytes_sent": outcome.bytes_sent,
        }


def _mode(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 8)
    except ValueError:
        raise InputError(f"mode {text!r} is not octal", hint="write it as '0755'.") from None
