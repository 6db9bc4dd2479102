"""A run in short: ``predictions.csv``, ``run.json`` and ``summary.md`` in its folder."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__
from ..inference.run import Run
from .figures import RunFigures, compute, predictions

SCHEMA_VERSION = 1
_NAMED = 5
_ORIGINS = {
    "measured_here": "virtual boards; no real board's speed",
    "measured_on_board": "on the boards of the inventory",
}
_COLUMNS = (
    "index",
    "path",
    "label",
    "wnid",
    "top1",
    "top5",
    "top1_correct",
    "top5_correct",
    "latency_ms",
    "board",
    "status",
)


def export(run: Run) -> RunFigures:
    """Write the three files from the run's database; safe while boards still work."""
    figures = compute(run)
    _replace(run.folder / "predictions.csv", predictions_csv(run))
    _replace(run.folder / "run.json", json.dumps(run_document(run, figures), indent=1) + "\n")
    _replace(run.folder / "summary.md", summary_text(run, figures))
    return figures


def predictions_csv(run: Run) -> str:
    """The table of all samples (docs/formats.md)."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for p in predictions(run):
        has_result = bool(p.top5)
        writer.writerow(
            (
                p.index,
                p.path,
                p.label,
                p.wnid or "",
                p.top1 if has_result else "",
                " ".join(map(str, p.top5)),
                int(p.top1_correct) if has_result else "",
                int(p.top5_correct) if has_result else "",
                f"{p.latency_ns / 1e6:.3f}" if p.latency_ns is not None else "",
                p.board,
                p.status,
            )
        )
    return stream.getvalue()


def run_document(run: Run, figures: RunFigures) -> dict[str, Any]:
    """All of ``run.json``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run.id,
        "model": {
            "name": run.contract.name,
            "sha256": run.contract.pte.sha256,
            "source": asdict(run.contract.source),
            "versions": dict(run.contract.versions),
            "published": run.contract.published,
        },
        "dataset": {
            "name": run.dataset.name,
            "key": run.dataset.key,
            "dtype": run.dataset.dtype,
            "counts": dict(run.dataset.counts),
            "labels": dict(run.dataset.labels),
        },
        "settings": asdict(run.settings),
        "versions": {"k230_lib": __version__},
        "figures": asdict(figures),
    }


def summary_text(run: Run, figures: RunFigures) -> str:
    """The Markdown summary for the terminal."""
    lines = [
        f"# Run {run.id}",
        "",
        f"Model {run.contract.name}, runner {run.settings.variant}, dataset {run.dataset.name}: "
        f"{figures.done} of {figures.total} images"
        + ("." if figures.complete else f", **{figures.total - figures.done} without a result**."),
        "",
        "| board | images | images/s | median ms | p90 ms | top-1 | top-5 | state |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {b.board} | {b.images} | {b.images_per_s:.2f} | {b.latency_median_ms:.2f} | "
        f"{b.latency_p90_ms:.2f} | {_percent(b.top1, b.images)} | {_percent(b.top5, b.images)} | "
        f"{b.state} |"
        for b in figures.boards
    ]
    lines += [
        f"| **total** | {figures.done} | {figures.images_per_s:.2f} | | | "
        f"**{_percent(figures.top1, figures.done)}** | **{_percent(figures.top5, figures.done)}** "
        "| |",
        "",
        f"Top-1 {figures.top1_count}/{figures.done}, top-5 {figures.top5_count}/{figures.done}.",
    ]
    lines += _agreement_lines(figures)
    lines += [f"**Not to be believed: {doubt}.**" for doubt in figures.doubts]
    lines += [
        f"{b.board} stopped: {b.message.removeprefix(f'{b.board}: ')}"
        for b in figures.boards
        if b.state == "failed"
    ]
    if figures.quarantined:
        lines.append(f"Given up after two failures: samples {_few(figures.quarantined)}.")
    if figures.missing:
        lines.append(f"{figures.missing} images have not been computed: run again to go on.")
    lines.append(f"Origin of the figures: `{figures.origin}` ({_ORIGINS[figures.origin]}).")
    return "\n".join(lines) + "\n"


def missing_text(run: Run, figures: RunFigures) -> str:
    """Which images have no result, the first few by name."""
    names = []
    for prediction in predictions(run):
        if prediction.status != "ok":
            names.append(prediction.path)
        if len(names) == _NAMED:
            break
    count = figures.total - figures.done
    more = f" and {count - len(names)} more" if count > len(names) else ""
    given_up = f", {len(figures.quarantined)} of them given up" if figures.quarantined else ""
    return f"{count} of {figures.total} images have no result{given_up}: {', '.join(names)}{more}"


def _agreement_lines(figures: RunFigures) -> list[str]:
    lines = []
    host = figures.host
    if host is not None:
        lines.append(
            f"Host runtime: {host.count} compared, largest difference {host.max_abs:.2g}, "
            f"same top-1 {host.top1_equal}/{host.count}, same top-5 {host.top5_equal}/{host.count}."
        )
    if figures.cross_checked:
        wrong = figures.cross_disagreeing
        verdict = f"**boards disagree on samples {_few(wrong)}**" if wrong else "all agree"
        lines.append(f"Computed by two boards: {figures.cross_checked} images, {verdict}.")
    return lines


def _percent(share: float, count: int) -> str:
    return f"{100 * share:.2f} %" if count else "-"


def _few(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")


def _replace(path: Path, text: str) -> None:
    """Several board processes may write at once: each its own file, moved in one step."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
