"""``k230 run report`` and ``k230 run compare``: the figures of runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ResultsError
from ..inference.run import reopen
from ..terminal import AsJson, tell

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_RUN = typer.Argument(help="Folder of the run, e.g. runs/4f2a90b1c3d4.")


@app.command()
def report(
    run: Path = _RUN,
    as_json: AsJson = False,
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


@app.command()
def compare(
    first: Annotated[
        Path, typer.Argument(metavar="RUN_A", help="Folder of the run to compare with.")
    ],
    second: Annotated[
        Path, typer.Argument(metavar="RUN_B", help="Folder of a run over the same images.")
    ],
    *,
    max_lost: Annotated[
        int | None, typer.Option(min=0, help="Fail when more images are right in RUN_A only.")
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(min=0, help="Fail when top-1 falls by more than so many percentage points."),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option(help="Compare the images that have a result in both.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two variants' runs image by image: gained, lost, other ranks, and their significance.

    Exit status 2: worse than allowed.
    """
    from .comparison import compare_runs
    from .comparison_text import comparison_text, missing_words

    found = compare_runs(first, second)
    for side in (found.first, found.second):
        if side.missing and not allow_missing:
            raise ResultsError(
                missing_words(side, found.total),
                hint="evaluate again to go on, or compare with --allow-missing.",
            )
    lost = len(found.top1.lost)
    failed = []
    if max_lost is not None and lost > max_lost:
        failed.append(f"{lost} images lost, {max_lost} allowed")
    if max_drop is not None and found.top1.regressed(max_drop / 100):
        drop = -100 * found.top1.accuracy_change
        failed.append(f"top-1 falls by {drop:.2f} percentage points, {max_drop:g} allowed")
    text = comparison_text(found)
    if as_json:
        typer.echo(json.dumps({**found.to_json(), "failures": failed, "summary": text}))
    else:
        typer.echo(text, nl=False)
    for line in failed:
        tell(f"worse than allowed: {line}")
    if failed:
        raise typer.Exit(2)
