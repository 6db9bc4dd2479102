"""The ``k230`` command: one sub-command per room."""

from __future__ import annotations

import sys

import typer

from . import __version__
from .dataset.commands import app as dataset_app
from .errors import EnvironmentProblemError, K230Error
from .inference.commands import app as inference_app
from .model.commands import app as model_app
from .model.commands import export
from .play import play
from .profiling.commands import app as profiling_app
from .report.commands import app as report_app
from .runner.commands import app as runner_app
from .virtual.commands import app as boards_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Provision CanMV-K230 boards and measure ExecuTorch models on them.",
)
app.add_typer(boards_app, name="boards", help="Virtual boards: up, down, status.")
app.add_typer(model_app, name="model", help="Export models to ExecuTorch.")
app.add_typer(dataset_app, name="dataset", help="Turn labelled images into packed tensors.")
app.add_typer(runner_app, name="runner", help="Build and check the program for the board.")
# Two rooms tell of a run: how far it is, and what its figures are.
run_app = typer.Typer(no_args_is_help=True)
run_app.add_typer(inference_app)
run_app.add_typer(report_app)
app.add_typer(run_app, name="run", help="Look at runs: status, report.")
app.add_typer(profiling_app, name="profile", help="Tables and reports from ETDump files.")
# The step that people start with has a short name too.
app.command("export")(export)
app.command("play", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    play
)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point: a user's mistake is one line on standard error and exit status 1."""
    try:
        app()
    except K230Error as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        reason = EnvironmentProblemError(
            f"{error.filename}: {error.strerror}",
            hint="check the path, its permissions and the free space.",
        )
        print(f"error: {reason}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
