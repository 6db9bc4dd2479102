"""``k230 profile report`` and ``k230 profile compare``."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import EnvironmentProblemError, InputError

if TYPE_CHECKING:
    from .compare import Comparison
    from .profile import ModelFiles, Profile

app = typer.Typer(no_args_is_help=True)

_Model = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of the model that ran: model.json, .pte, .etrecord."),
]
_Record = Annotated[Path | None, typer.Option("--etrecord", help="ETRecord, without a folder.")]
_Pte = Annotated[Path | None, typer.Option("--pte", help="Its .pte, to check the ETRecord by.")]
_Out = Annotated[Path | None, typer.Option("--out", help="Folder for tables and reports.")]
_Hz = Annotated[
    float | None,
    typer.Option("--tick-hz", help="Ticks per second of the trace's clock, 1e9 (ns) by default."),
]
_Skip = Annotated[
    int | None, typer.Option("--skip", min=0, help="First executions to leave out, 0 by default.")
]
_Slower = Annotated[
    float | None,
    typer.Option("--fail-slower", help="Fail when a variant is slower by more than this, %."),
]
_OperatorSlower = Annotated[
    float | None,
    typer.Option("--fail-operator-slower", help="The same for each operator type of over 1 %."),
]
_Json = Annotated[bool, typer.Option("--json", help="One line of JSON as the only output.")]


@app.command()
def report(
    source: Annotated[Path, typer.Argument(help="An ETDump, or a folder of profile.yml.")],
    *,
    model: _Model = None,
    etrecord: _Record = None,
    pte: _Pte = None,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Only these variants of a folder.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Variant to compare with.")] = None,
    out: _Out = None,
    tick_hz: _Hz = None,
    skip: _Skip = None,
    fail_slower: _Slower = None,
    fail_operator_slower: _OperatorSlower = None,
    check: Annotated[bool, typer.Option("--check", help="Only say what would be done.")] = False,
    as_json: _Json = False,
) -> None:
    """Show where the time goes: tables, workbook, trace, plots and a one-file HTML report."""
    from .capture import capture_of
    from .profile import load_folder, load_profile

    folder = out or (
        source / "report" if source.is_dir() else source.parent / f"{source.stem}-report"
    )
    if check and not source.exists():
        # In check mode the steps before this one did nothing.
        _told(folder, changed=True, as_json=as_json)
        return
    files = _files(model, etrecord, pte)
    if source.is_dir():
        profiles = load_folder(source, files, variants=tuple(variant or ()))
    else:
        capture = capture_of(source, source.stem, tick_hz=tick_hz, skip=skip)
        profiles = (load_profile(source, capture, files),)
    limits = (fail_slower, fail_operator_slower)
    _finish(profiles, baseline, folder, limits, as_json, check=check)


@app.command()
def compare(
    etdumps: Annotated[
        list[str], typer.Argument(help="Two or more of NAME=ETDUMP; the first is the baseline.")
    ],
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", help="Folder of the model that ran, or NAME=FOLDER for one variant's own."
        ),
    ] = None,
    etrecord: _Record = None,
    pte: _Pte = None,
    out: _Out = None,
    tick_hz: _Hz = None,
    skip: _Skip = None,
    fail_slower: _Slower = None,
    fail_operator_slower: _OperatorSlower = None,
    as_json: _Json = False,
) -> None:
    """Compare traces made with different kernels or exports, operator by operator."""
    from .capture import capture_of
    from .profile import load_profile

    traces = [_named(text, "NAME=ETDUMP") for text in etdumps]
    own = dict(_named(text, "NAME=FOLDER") for text in model or () if "=" in text)
    common = next((Path(text) for text in model or () if "=" not in text), None)
    unknown = set(own) - {name for name, _ in traces}
    if unknown:
        raise InputError(
            f"--model for {', '.join(sorted(unknown))}, but there is no such trace.",
            hint="use the names of the traces.",
        )
    profiles = []
    for name, path in traces:
        files = _files(own.get(name, common), etrecord, pte)
        capture = capture_of(path, name, tick_hz=tick_hz, skip=skip)
        profiles.append(load_profile(path, capture, files))
    folder = out or Path("profile-report")
    limits = (fail_slower, fail_operator_slower)
    _finish(tuple(profiles), profiles[0].capture.variant, folder, limits, as_json)


def _named(text: str, form: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise InputError(
            f"{text!r}: expected {form}.", hint="write e.g. portable=a.etdump rvv=b.etdump."
        )
    return name, Path(path)


def _files(model: Path | None, etrecord: Path | None, pte: Path | None) -> ModelFiles:
    from .profile import ModelFiles, model_files

    if model is not None and (etrecord or pte):
        raise InputError(
            "--model together with --etrecord or --pte: a model folder has both.",
            hint="give one or the other.",
        )
    return model_files(model) if model is not None else ModelFiles(etrecord=etrecord, pte=pte)


def _finish(
    profiles: tuple[Profile, ...],
    baseline: str | None,
    folder: Path,
    limits: tuple[float | None, float | None],
    as_json: bool,
    *,
    check: bool = False,
) -> None:
    """Write everything, say the essentials, and fail on what is slower than allowed."""
    from ..report.profile_page import page
    from ..report.profile_report import would_change, write_profile_report
    from .compare import Thresholds, failures
    from .compare import compare as compare_profiles
    from .outputs import PAGE_NAME, summary_document
    from .profile import pooled

    variants = pooled(profiles)
    comparison = compare_profiles(variants, baseline) if len(variants) > 1 else None
    if comparison is not None:
        order = comparison.variants
        variants = tuple(sorted(variants, key=lambda one: order.index(one.capture.variant)))
        profiles = tuple(sorted(profiles, key=lambda one: order.index(one.capture.variant)))
    thresholds = Thresholds(*limits)
    if comparison is None and thresholds != Thresholds():
        raise InputError(
            "a limit for slower variants, but there is only one variant.",
            hint="profile with two or more runner variants.",
        )
    failed = failures(comparison, thresholds) if comparison else []
    if check:
        html = page(profiles, variants, comparison, failed)
        _told(folder, changed=would_change(folder, html), as_json=as_json)
        return
    with _noise_in(folder):
        changed = write_profile_report(folder, profiles, variants, comparison, failed)
    target = folder / PAGE_NAME
    lines = [*_spoken(variants, comparison), f"report: {target}"]
    if as_json:
        document = summary_document(variants, comparison, failed)
        answer = {**document, "changed": changed, "page": str(target), "lines": lines}
        typer.echo(json.dumps(answer))
    else:
        typer.echo("\n".join(lines))
    for line in failed:
        print(f"slower than allowed: {line}", file=sys.stderr)
    if failed:
        raise typer.Exit(2)


def _told(folder: Path, *, changed: bool, as_json: bool) -> None:
    """What check mode says."""
    from .outputs import PAGE_NAME

    answer = {"changed": changed, "page": str(folder / PAGE_NAME)}
    text = f"the report in {folder} {'would be written' if changed else 'is up to date'}"
    typer.echo(json.dumps(answer) if as_json else text)


@contextlib.contextmanager
def _noise_in(folder: Path) -> Iterator[None]:
    """Warnings and log lines of the libraries go to ``report.log``, not to the terminal.

    Raises:
        EnvironmentProblemError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(folder / "report.log", mode="w", encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblemError(
            f"{folder}: the report cannot be written: {error.strerror}.",
            hint="give a folder with space that you may write to.",
        ) from error
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        handler.close()


def _spoken(variants: tuple[Profile, ...], comparison: Comparison | None) -> list[str]:
    """What a terminal needs to know: totals, the top operators, speed-up, what to do next."""
    from .advice import next_steps
    from .families import type_name

    lines = []
    for profile in variants:
        totals = profile.totals
        lines.append(
            f"{profile.capture.label}: {totals.inference_ms:.3f} ms per inference (median of "
            f"{totals.executions}, {profile.capture.origin})"
        )
        for _, row in profile.operators.head(5).iterrows():
            name = type_name(row["operator"])
            lines.append(f"  {row['share']:6.1%} {row['median_ms']:10.3f} ms  {name}")
    if comparison is not None:
        for gain in comparison.gains:
            noise = " (within noise)" if gain.within_noise else ""
            lines.append(
                f"{gain.variant} is {gain.speedup:.2f}x as fast as {comparison.baseline}{noise}"
            )
    fastest = min(variants, key=lambda profile: profile.totals.inference_ms)
    lines.extend(f"next: {step}" for step in next_steps(fastest, comparison)[:2])
    notes = dict.fromkeys(note for profile in variants for note in profile.notes)
    lines.extend(f"note: {note}" for note in notes)
    return lines
