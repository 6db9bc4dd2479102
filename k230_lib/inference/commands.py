"""``k230 run``: look at runs on the controller."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import typer

from ..errors import InputError, ResultsError
from .queue import RunQueue
from .queue_rows import boards, events
from .queue_schema import connect
from .run import DATABASE, reopen

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


@app.command()
def report(
    run: Path = _RUN,
    as_json: bool = typer.Option(False, "--json", help="One line of JSON as the last output."),
    allow_missing: bool = typer.Option(False, help="Samples without a result are no failure."),
    allow_doubts: bool = typer.Option(False, help="Boards that disagree are no failure."),
    check: bool = typer.Option(False, help="Write nothing."),
) -> None:
    """Compute a run's figures, write predictions.csv, run.json and summary.md, print the summary.

    Fails when a sample has no result, or the figures cannot be believed, and says why.
    """
    # The reports stand above the runs; only this command looks upward.
    from ..report.figures import compute
    from ..report.summary import export, missing_text, summary_text

    opened = reopen(run)
    figures = compute(opened) if check else export(opened)
    summary = summary_text(opened, figures)
    if not figures.complete and not allow_missing:
        typer.echo(summary, err=True)
        raise ResultsError(
            missing_text(opened, figures),
            hint="run again to go on; predictions.csv names every image.",
        )
    if figures.doubts and not allow_doubts:
        typer.echo(summary, err=True)
        raise ResultsError(
            f"run {opened.id}: {'; '.join(figures.doubts)}",
            hint="predictions.csv and the console logs of the run tell more.",
        )
    if as_json:
        answer = {"changed": False, "summary": summary, "run_id": opened.id}
        typer.echo(json.dumps({**answer, "figures": asdict(figures)}))
    else:
        typer.echo(summary, nl=False)


def _queue(run: Path) -> RunQueue:
    if not (run / DATABASE).is_file():
        raise InputError(f"{run} is no run", hint="give a folder below runs/.")
    return RunQueue(run / DATABASE)
