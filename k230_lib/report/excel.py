"""One workbook with every table: Summary, Operators, By module, Events, Comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..profiling.compare import Comparison
from ..profiling.outputs import summary_table
from ..profiling.profile import Profile

_WIDEST = 48
_NARROWEST = 9
_FORMATS = (("_ms", "0.0000"), ("share", "0.0%"), ("_speedup", '0.00"x"'), ("gmac_per_s", "0.000"))
_TIME_BAR = "3B6FD4"


def write_workbook(path: Path, profiles: Sequence[Profile], comparison: Comparison | None) -> None:
    """Write the workbook of one or more profiles.

    Sheets hold values, not formulas; the first row stays visible and has filters.
    """
    sheets = {
        "Summary": _summary(profiles, comparison),
        "Operators": _together(profiles, "operators"),
        "By module": _together(profiles, "modules"),
        "Events": _together(profiles, "events"),
    }
    if comparison is not None:
        sheets["Comparison"] = comparison.operators
        sheets["Comparison by operator"] = comparison.events
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        for name, table in sheets.items():
            table.to_excel(writer, sheet_name=name, index=False)
            _dress(writer.sheets[name], table)


def _summary(profiles: Sequence[Profile], comparison: Comparison | None) -> pd.DataFrame:
    table = summary_table(profiles)
    if comparison is not None:
        speedups = {gain.variant: gain.speedup for gain in comparison.gains}
        speedups[comparison.baseline] = 1.0
        ceilings = {gain.variant: gain.ceiling for gain in comparison.gains}
        place = list(table.columns).index("operators_ms")
        table.insert(place, "total_speedup", table["variant"].map(speedups))
        table.insert(place + 1, "amdahl_ceiling", table["variant"].map(ceilings))
    return table


def _together(profiles: Sequence[Profile], name: str) -> pd.DataFrame:
    """The tables called ``name`` of all profiles, below each other."""
    return pd.concat(
        [
            pd.DataFrame(getattr(profile, name)).assign(
                variant=profile.capture.variant, board=profile.capture.board
            )
            for profile in profiles
        ],
        ignore_index=True,
    ).pipe(lambda table: table[["variant", "board", *table.columns.drop(["variant", "board"])]])


def _dress(sheet: Any, table: pd.DataFrame) -> None:
    """Widths, number formats, a fixed and filtered head, bars behind the medians."""
    from openpyxl.formatting.rule import DataBarRule
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = sheet.dimensions
    for number, name in enumerate(table.columns, start=1):
        letter = get_column_letter(number)
        sheet.cell(row=1, column=number).font = Font(bold=True)
        style = next((shape for ending, shape in _FORMATS if str(name).endswith(ending)), None)
        longest = len(str(name)) + 3
        for row in range(2, len(table) + 2):
            cell = sheet.cell(row=row, column=number)
            if style:
                cell.number_format = style
            elif isinstance(cell.value, str):
                longest = max(longest, len(cell.value))
        sheet.column_dimensions[letter].width = min(max(longest, _NARROWEST), _WIDEST)
        if name == "median_ms" and len(table):
            rule = DataBarRule(start_type="num", start_value=0, end_type="max", color=_TIME_BAR)
            sheet.conditional_formatting.add(f"{letter}2:{letter}{len(table) + 1}", rule)
