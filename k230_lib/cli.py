"""The ``k230`` command: one sub-command per room."""

from __future__ import annotations

import typer

from . import __version__
from .dataset.commands import app as dataset_app
from .inference.commands import app as inference_app
from .model.commands import app as model_app
from .model.commands import export
from .play import play
from .profiling.commands import app as profiling_app
from .report.commands import app as report_app
from .runner.commands import app as runner_app
from .terminal import run
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
app.add_typer(run_app, name="run", help="Look at runs: status, report, compare.")
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
    """Entry point."""
    run(app)


if __name__ == "__main__":
    main()
