"""``k230 run report``: the figures of a run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from ..errors import ResultsError
from ..inference.run import reopen

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_RUN = typer.Argument(help="Folder of the run, e.g. runs/4f2a90b1c3d4.")


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
    # Imported where used: every other command starts without them.
    from .figures import compute
    from .summary import export, missing_text, summary_text

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
