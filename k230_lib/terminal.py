"""What the commands of all rooms share: options of one meaning, and how a user is told things."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .errors import EnvironmentProblemError, K230Error

AsJson = Annotated[bool, typer.Option("--json", help="One line of JSON as the last output.")]
Check = Annotated[bool, typer.Option("--check", help="Only say whether anything would be done.")]


def tell(line: str) -> None:
    """One line of progress: on standard error, since standard output is the command's answer."""
    print(line, file=sys.stderr, flush=True)


def run(app: typer.Typer) -> None:
    """Run ``app``; a user's mistake is one line on standard error and exit status 1."""
    try:
        app()
    except K230Error as error:
        tell(f"error: {error}")
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        reason = EnvironmentProblemError(
            f"{error.filename}: {error.strerror}",
            hint="check the path, its permissions and the free space.",
        )
        tell(f"error: {reason}")
        sys.exit(1)
