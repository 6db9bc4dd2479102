"""Cutting a board's power by whatever command the user has for it."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass

from ..errors import EnvironmentProblemError


@dataclass(frozen=True)
class PowerCommand:
    """A command of the controller that restarts a board's power.

    Attributes:
        command: words of a shell line; ``{board}`` is replaced by the board's name, which is also
            in the environment as ``K230_BOARD``.
        timeout: seconds for the command.
    """

    command: str
    timeout: float = 60.0

    def cycle(self, board: str) -> None:
        """Run it.

        Raises:
            EnvironmentProblemError: it cannot be started, fails or takes too long.
        """
        words = [word.replace("{board}", board) for word in shlex.split(self.command)]
        try:
            done = subprocess.run(
                words,
                env={**os.environ, "K230_BOARD": board},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout,
                check=False,
            )
        except (OSError, ValueError) as error:
            raise self._failed(board, str(error)) from error
        except subprocess.TimeoutExpired:
            raise self._failed(board, f"no end within {self.timeout:g} s") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise self._failed(board, f"status {done.returncode}: {said[-1] if said else '-'}")

    def _failed(self, board: str, reason: str) -> EnvironmentProblemError:
        return EnvironmentProblemError(
            f"the power command failed: {reason}", board=board, hint="check k230_power_command."
        )
