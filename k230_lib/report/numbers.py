"""How figures are written, the same in every report."""

from __future__ import annotations

from math import isfinite, isnan

NBSP = "\N{NO-BREAK SPACE}"
PERCENT = "\N{NARROW NO-BREAK SPACE}%"


def milliseconds(value: float | None) -> str:
    """A time in ms without its unit: four digits or so, a dash when unknown."""
    if value is None or not isfinite(value):
        return "\N{EN DASH}"
    if value >= 1000:
        return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    if value >= 100:
        return f"{value:.1f}"
    if value >= 1:
        return f"{value:.2f}"
    return "<0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def percent(share: float | None) -> str:
    """A share of 1 as percent."""
    if share is None or not isfinite(share):
        return "\N{EN DASH}"
    text = "<0.1" if 0 < share < 0.001 else f"{100 * share:.1f}"
    return f"{text}{PERCENT}"


def factor(value: float | None) -> str:
    """A speed-up: ``8.13x``, with a multiplication sign."""
    if value is None or isnan(value):
        return "\N{EN DASH}"
    if value == float("inf"):
        return "\N{INFINITY}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}\N{MULTIPLICATION SIGN}"


def count(value: float) -> str:
    """A large count with its prefix: ``300.8 M``."""
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f} {prefix}"
    return f"{value:.0f}"
