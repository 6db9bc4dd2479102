"""All outputs of a profile in one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import EnvironmentProblemError
from ..profiling.compare import Comparison
from ..profiling.outputs import (
    PAGE_NAME,
    SUMMARY_NAME,
    summary_document,
    write_summary,
    write_tables,
)
from ..profiling.profile import Profile
from ..profiling.trace import write_trace
from .excel import write_workbook
from .plots import write_plots
from .profile_page import page

WORKBOOK_NAME = "profile.xlsx"
TRACE_NAME = "trace.json"


def write_profile_report(
    folder: Path,
    profiles: Sequence[Profile],
    variants: Sequence[Profile],
    comparison: Comparison | None,
    failures: Sequence[str] = (),
) -> bool:
    """Write tables, workbook, trace, plots and page.

    Args:
        folder: made when missing; files of an earlier report are replaced.
        profiles: one per board and variant.
        variants: one per variant, all boards together.
        comparison: of the variants, when there are two or more.
        failures: what is slower than allowed.

    Returns:
        whether the page differs from the one that was there.

    Raises:
        EnvironmentProblemError: the folder cannot be written.
    """
    html = page(profiles, variants, comparison, failures)
    document = summary_document(variants, comparison, failures)
    changed = would_change(folder, html)
    try:
        for part in ("tables", "plots"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        write_tables(folder / "tables", profiles, comparison)
        write_summary(folder / SUMMARY_NAME, document)
        write_workbook(folder / WORKBOOK_NAME, profiles, comparison)
        write_trace(folder / TRACE_NAME, profiles)
        write_plots(folder / "plots", variants, comparison)
        (folder / PAGE_NAME).write_text(html, encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblemError(
            f"{folder}: the report cannot be written: {error.strerror or error}.",
            hint="give a folder with space that you may write to.",
        ) from error
    return changed


def would_change(folder: Path, html: str) -> bool:
    """Whether the page in ``folder`` is another one: it shows all figures."""
    target = folder / PAGE_NAME
    return not target.is_file() or target.read_text(encoding="utf-8") != html
