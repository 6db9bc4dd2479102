# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Trace a model on a board and bring the trace home."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.profiling.tracing import (
    TraceRequest,
    kept_capture,
    plan_trace,
    trace,
)
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "model": {"type": "path", "required": True},
        "runner": {"type": "str", "required": True},
        "runner_sha256": {"type": "str", "default": ""},
        "variant": {"type": "str", "default": "portable"},
        "console": {"type": "str", "required": True},
        "baudrate": {"type": "int", "default": 115200},
        "executions": {"type": "int", "default": 10},
        "warmup": {"type": "int", "default": 1},
        "input": {"type": "path"},
        "upstream": {"type": "bool", "default": False},
        "tick_hz": {"type": "float", "default": 1e9},
        "origin": {
            "type": "str",
            "default": "measured_on_board",
            "choices": ["measured_here", "modelled", "measured_on_board"],
        },
        "runs": {"type": "path", "default": "runs"},
        "timeout": {"type": "float", "default": 300.0},
        "force": {"type": "bool", "default": False},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Trace, unless the same trace is there; in check mode only say whether it is."""
        request = TraceRequest(
            model=Path(args["model"]),
            runner=args["runner"],
            runner_sha256=args["runner_sha256"],
            variant=args["variant"],
            executions=args["executions"],
            warmup=args["warmup"],
            input=Path(args["input"]) if args["input"] else None,
            upstream=args["upstream"],
            tick_hz=args["tick_hz"],
            origin=args["origin"],
            timeout=args["timeout"],
        )
        runs = Path(args["runs"])
        folder, wanted = plan_trace(self.board, request, runs)
        result = {"folder": str(folder), "run_folder": str(folder.parent.parent)}
        if self.check_mode:
            return {**result, "changed": args["force"] or kept_capture(folder, wanted) is None}
        outcome = trace(
            self.shell,
            args["console"],
            request,
            runs,
            baudrate=args["baudrate"],
            force=args["force"],
            progress=self._tell,
        )
        capture = outcome.capture
        return {
            **result,
            "changed": outcome.changed,
            "etdump": str(outcome.folder / "model.etdump"),
            "etdump_sha256": capture.etdump_sha256,
            "executions": capture.executions,
            "wall_ms": list(capture.wall_ms),
            "origin": capture.origin,
        }

    def _tell(self, done: int, total: int, ms: float) -> None:
        self.progress(
            {"event": "profile", "done": done, "total": total, "ms": ms},
            f"traced {done}/{total}, {ms:.1f} ms",
            last=done == total,
        )
