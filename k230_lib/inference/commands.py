"""``k230 run status``: how far a run on the controller is."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import typer

from ..errors import InputError
from .queue import RunQueue
from .queue_rows import boards, events
from .queue_schema import connect
from .run import DATABASE

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_RUN = typer.Argument(help="Folder of the run, e.g. runs/4f2a90b1c3d4.")


@app.command()
def status(run: Path = _RUN, as_json: bool = typer.Option(False, "--json")) -> None:
    """Samples by state, boards and the latest events."""
    counts = _queue(run).counts()
    with closing(connect(run / DATABASE)) as db:
        rows, latest = boards(db), events(db, 10)
    if as_json:
        typer.echo(json.dumps({**asdict(counts), "boards": rows}, indent=1))
        return
    typer.echo(
        f"{counts.done} of {counts.total} done, {counts.leased} at work, {counts.open} open, "
        f"{counts.quarantined} given up"
    )
    for row in rows:
        words = f"{row['board']}: {row['state']}, {row['computed']} computed"
        typer.echo(f"{words} {row['message']}".rstrip())
    for moment, board, text in latest:
        typer.echo(f"{moment} {board}: {text}")


def _queue(run: Path) -> RunQueue:
    if not (run / DATABASE).is_file():
        raise InputError(f"{run} is no run", hint="give a folder below runs/.")
    return RunQueue(run / DATABASE)
