# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Base of the action plugins whose work is done on the controller by the ``k230`` command.

A separate process does the work, so that torch is never imported in an Ansible worker. Its
standard error is progress, shown as it comes; its standard output is one JSON object.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

_ERROR = re.compile(r"^error: ", re.IGNORECASE)
_COLLECTION_ROOT = Path(__file__).resolve().parents[2]


class ControllerAction(ActionBase):
    """Runs ``python -m k230_lib ...`` and returns its JSON answer as the task's result.

    Subclasses set ``ARGUMENTS`` and implement :meth:`command`.
    """

    ARGUMENTS: ClassVar[dict[str, Any]] = {}
    RULES: ClassVar[dict[str, Any]] = {}
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Validate arguments, run the command, show its progress, return its answer."""
        super().run(tmp, task_vars)
        del tmp
        validated, _ = self.validate_argument_spec(argument_spec=self.ARGUMENTS, **self.RULES)
        args = json.loads(json.dumps(validated.validated_parameters, default=str))
        command = self.command(args)
        if self._task.check_mode:
            command.append("--check")
        result = _run(command, self._task.action.rpartition(".")[2])
        if not result.get("failed") and (text := self.show(result)):
            display.display(text)
        return result

    def command(self, args: dict[str, Any]) -> list[str]:
        """The arguments of ``k230`` for this task, without ``--check``."""
        raise NotImplementedError

    def show(self, answer: dict[str, Any]) -> str:
        """What of the answer is worth showing to people in full; nothing by default."""
        del answer
        return ""


def _run(arguments: list[str], label: str) -> dict[str, Any]:
    # From a built collection k230_lib need not be installed: it lies beside the plugins.
    path = os.pathsep.join(filter(None, [str(_COLLECTION_ROOT), os.environ.get("PYTHONPATH")]))
    tail: collections.deque[str] = collections.deque(maxlen=20)
    # The answer goes to a file: two pipes read one after the other could block each other.
    with tempfile.TemporaryFile("w+") as answer:
        process = subprocess.Popen(
            [sys.executable, "-m", "k230_lib", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            # Messages about wrong options in one line, without frames around them.
            env={**os.environ, "PYTHONPATH": path, "TYPER_USE_RICH": "0"},
        )
        with process:
            for line in process.stderr or ():
                tail.append(line.rstrip())
                if line.strip():
                    display.display(f"  {label}: {line.rstrip()}")
        answer.seek(0)
        text = answer.read()
    if process.returncode != 0:
        reason = next((line for line in reversed(tail) if line), f"exit {process.returncode}")
        return {"failed": True, "changed": False, "msg": _ERROR.sub("", reason)}
    result: dict[str, Any] = json.loads(text)
    return {"changed": False, **result}
