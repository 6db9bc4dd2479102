# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Let a board compute its share of a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.k230.executorch.k230_lib.board.power import PowerCommand
from ansible_collections.k230.executorch.k230_lib.dataset.manifest import DATASET_FILE
from ansible_collections.k230.executorch.k230_lib.inference.engine import run_board
from ansible_collections.k230.executorch.k230_lib.inference.job import BoardJob, Limits
from ansible_collections.k230.executorch.k230_lib.inference.progress import BoardProgress
from ansible_collections.k230.executorch.k230_lib.inference.run import (
    ORIGINS,
    RunSettings,
    open_run,
    samples_left,
)
from ansible_collections.k230.executorch.k230_lib.inference.runner import RunnerOptions
from ansible_collections.k230.executorch.k230_lib.model.contract import FILE_NAME as MODEL_FILE
from ansible_collections.k230.executorch.plugins.plugin_utils.board_action import BoardAction

#: Phases that are told at once; the others once a second at most.
_RARE = {"start", "golden", "recover", "done"}


class ActionModule(BoardAction):
    """See the module documentation of the same name."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "model": {"type": "path", "required": True},
        "dataset": {"type": "path", "required": True},
        "runner": {"type": "str", "required": True},
        "runner_sha256": {"type": "str", "required": True},
        "variant": {"type": "str", "default": "portable"},
        "console": {"type": "str", "required": True},
        "baudrate": {"type": "int", "default": 115200},
        "upstream": {"type": "bool", "default": False},
        "runs": {"type": "path", "default": "runs"},
        "run_id": {"type": "str"},
        "host_logits": {"type": "path"},
        "repeats": {"type": "int", "default": 1},
        "warmup": {"type": "int", "default": 0},
        "pace_ms": {"type": "float", "default": 0.0},
        "chunk": {"type": "int", "default": 64},
        "cross_check": {"type": "float", "default": 0.02},
        "tolerance": {"type": "float", "default": 1e-4},
        "origin": {"type": "str", "choices": list(ORIGINS), "default": "measured_on_board"},
        "sample_timeout": {"type": "float", "default": 300.0},
        "reboot_timeout": {"type": "float", "default": 120.0},
        "power_command": {"type": "str"},
    }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Open the run and work on it; in check mode only count what is left."""
        settings = RunSettings(
            variant=args["variant"],
            runner_sha256=args["runner_sha256"],
            options=RunnerOptions(args["repeats"], args["warmup"], args["pace_ms"]),
            chunk=args["chunk"],
            cross_check=args["cross_check"],
            tolerance=args["tolerance"],
            origin=args["origin"],
        )
        where = (Path(args["runs"]), Path(args["model"]), Path(args["dataset"]))
        run_id = args["run_id"] or None
        if self.check_mode:
            if not (where[1] / MODEL_FILE).exists() or not (where[2] / DATASET_FILE).exists():
                # The steps before this one did nothing either: all samples are still to be done.
                return {"changed": True}
            folder, left = samples_left(*where, settings, run_id)
            return {"run_id": folder.name, "changed": left > 0, "left": left}
        host = Path(args["host_logits"]) if args["host_logits"] else None
        run = open_run(*where, settings, run_id=run_id, host=host)
        result: dict[str, Any] = {"run_id": run.id, "run_folder": str(run.folder)}
        job = BoardJob(
            board=self.board,
            shell=self.shell,
            console=args["console"],
            run=run,
            runner=args["runner"],
            golden=run.golden(),
            limits=Limits(sample=args["sample_timeout"], reboot=args["reboot_timeout"]),
            power=PowerCommand(args["power_command"]) if args["power_command"] else None,
            baudrate=args["baudrate"],
            upstream=args["upstream"],
            end_with_parent=True,
        )
        outcome = run_board(job, self._tell)
        work = outcome.computed + outcome.checked + outcome.failed
        return {**result, **asdict(outcome), "changed": work > 0}

    def _tell(self, report: BoardProgress) -> None:
        event = {"event": "inference", **asdict(report)}
        self.progress(event, report.line(), last=report.phase in _RARE)
