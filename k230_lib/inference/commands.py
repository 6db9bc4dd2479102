"""``k230 run``: look at runs on the controller."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from ..errors import InputError
from .queue import RunQueue
from .run import DATABASE

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_RUN = typer.Argument(help="Folder of the run, e.g. runs/4f2a90b1c3d4.")


@app.command()
def status(run: Path = _RUN, as_json: bool = typer.Option(False, "--json")) -> None:
    """Samples by state, boards and the latest events."""
    queue = _queue(run)
    counts = queue.counts()
    if as_json:
        typer.echo(json.dumps({**asdict(counts), "boards": queue.boards()}, indent=1))
        return
    typer.echo(
        f"{counts.done} of {counts.total} done, {counts.leased} at work, {counts.open} open, "
        f"{counts.quarantined} given up"
    )
    for row in queue.boards():
        words = f"{row['board']}: {row['state']}, {row['computed']} computed"
        typer.echo(f"{words} {row['message']}".rstrip())
    for moment, board, text in queue.events(10):
        typer.echo(f"{moment} {board}: {text}")


@app.command()
def report(run: Path = _RUN) -> None:
    """Print the summary that the evaluation wrote."""
    _queue(run)
    summary = run / "summary.md"
    if not summary.is_file():
        raise InputError(f"{run} has no summary yet", hint="let the evaluation end first.")
    typer.echo(summary.read_text(encoding="utf-8"), nl=False)


def _queue(run: Path) -> RunQueue:
    if not (run / DATABASE).is_file():
        raise InputError(f"{run} is no run", hint="give a folder below runs/.")
    return RunQueue(run / DATABASE)
