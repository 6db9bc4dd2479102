# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Base of all action plugins that work on a board.

The board has no Python, so these plugins run on the controller and speak to the board through
the user's connection. A plugin states its arguments and implements :meth:`BoardAction.act`;
what it decides is in ``k230_lib``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.k230.executorch.k230_lib.errors import BoardUnreachableError, K230Error
from ansible_collections.k230.executorch.plugins.plugin_utils.shell import AnsibleShell

display = Display()

#: Marks lines for programs that read the output, e.g. event handlers of ansible-runner.
PROGRESS_MARK = "K230PROGRESS"
#: Environment variable; ``json`` asks for the marked lines instead of the ones for people.
PROGRESS_FORMAT = "K230_PROGRESS"


class BoardAction(ActionBase):
    """An action plugin with a module's manners: typed arguments, check mode, diff, one-line errors.

    Subclasses set ``ARGUMENTS`` (and ``RULES`` such as ``required_if``) and implement ``act``.
    """

    ARGUMENTS: ClassVar[dict[str, Any]] = {}
    RULES: ClassVar[dict[str, Any]] = {}
    #: Set when the plugin has to see a board; off for those that only use the console.
    _requires_connection = True
    TRANSFERS_FILES = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Validate arguments, call :meth:`act`, turn known errors into one line."""
        super().run(tmp, task_vars)
        del tmp
        self.task_vars: dict[str, Any] = task_vars or {}
        self.board: str = str(self.task_vars.get("inventory_hostname", "board"))
        self.check_mode = bool(self._task.check_mode)
        self.diff_mode = bool(self._task.diff)
        self.shell = AnsibleShell(self._connection, self.board)
        self._last_shown = 0.0
        validated, _ = self.validate_argument_spec(argument_spec=self.ARGUMENTS, **self.RULES)
        # The validated parameters only: the task's own values may still carry template tags.
        args = json.loads(json.dumps(validated.validated_parameters, default=str))
        try:
            return {"changed": False, **self.act(args)}
        except BoardUnreachableError as error:
            return {"unreachable": True, "changed": False, "msg": str(error)}
        except K230Error as error:
            return {
                "failed": True,
                "changed": False,
                "msg": str(error),
                "error_kind": type(error).__name__,
            }

    def act(self, args: dict[str, Any]) -> dict[str, Any]:
        """Do the work and return the task's result.

        Args:
            args: validated arguments, plain JSON types, defaults filled in.

        Raises:
            K230Error: told to the user in one line; the task fails on this board only.
        """
        raise NotImplementedError

    def variable(self, name: str, default: Any = None) -> Any:
        """The templated value of a host variable as plain JSON types."""
        if name not in self.task_vars:
            return default
        return json.loads(json.dumps(self._templar.template(self.task_vars[name]), default=str))

    def progress(
        self, event: dict[str, Any], text: str, *, every: float = 1.0, last: bool = False
    ) -> None:
        """Show one line while the task runs, for people and for programs.

        Args:
            event: machine-readable form; ``board`` is added.
            text: the same for people.
            every: seconds between two lines at least.
            last: shown however soon after the line before.
        """
        now = time.monotonic()
        if not last and now - self._last_shown < every:
            return
        self._last_shown = now
        if os.environ.get(PROGRESS_FORMAT) == "json":
            mark = json.dumps({"board": self.board, **event}, separators=(",", ":"), sort_keys=True)
            display.display(f"{PROGRESS_MARK} {mark}")
        else:
            display.display(f"  {self.board}: {text}")

    def byte_progress(self, what: str) -> Callable[[int, int], None]:
        """A callback for transfers that shows bytes, rate and the time left."""
        started = time.monotonic()

        def show(done: int, total: int) -> None:
            rate = done / max(time.monotonic() - started, 1e-3)
            left = (total - done) / rate if rate else 0.0
            self.progress(
                {"event": "bytes", "what": what, "done": done, "total": total, "rate": rate},
                f"{what}: {done / 1e6:.1f}/{total / 1e6:.1f} MB, "
                f"{rate / 1e6:.1f} MB/s, {left:.0f} s left",
            )

        return show
