"""Inline SVG for the report's page: colours come from its style sheet, so both themes work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape, quoteattr

_WIDTH = 1120
_LEFT = 44
_RIGHT = 8
_TIME_HEIGHT = 170
_SPEED_HEIGHT = 104
_GAP = 22
_FOOT = 26
_LABEL_ROOM = 7.5


@dataclass(frozen=True)
class LayerMark:
    """One operator in execution order; ``speedup`` is None without a baseline."""

    title: str
    group: str
    family: str
    ms: float
    speedup: float | None


def layer_chart(marks: Sequence[LayerMark]) -> str:
    """Time of each operator in execution order, below it the speed-up of each.

    Returns:
        an ``<svg>`` element; families are CSS classes ``f-<family>``.
    """
    speedups = [mark.speedup for mark in marks if mark.speedup is not None and mark.speedup > 0]
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(marks), 1)
    height = _TIME_HEIGHT + _FOOT + (_GAP + _SPEED_HEIGHT if speedups else 0)
    parts = [*_time_panel(marks, step), *_groups(marks, step, height)]
    if speedups:
        parts += _speed_panel(marks, step, speedups)
    label = quoteattr("Time per operator in execution order")
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label={label}>'
        + "".join(parts)
        + "</svg>"
    )


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Round values from 0 to at most ``top``, about ``wanted`` of them."""
    if top <= 0:
        return [0.0]
    raw = top / wanted
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.999)
    return [step * index for index in range(floor(top / step * 1.001) + 1)]


def _time_panel(marks: Sequence[LayerMark], step: float) -> list[str]:
    top = max((mark.ms for mark in marks), default=0.0) or 1.0
    room = _TIME_HEIGHT - 12
    parts = []
    for value in ticks(top):
        y = _TIME_HEIGHT - room * value / top
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "grid"))
        parts.append(_text(_LEFT - 6, y + 3, f"{value:.3g}", "axis end"))
    parts.append(_text(0, 9, "ms", "axis"))
    width = max(step * 0.74, 0.8)
    for index, mark in enumerate(marks):
        tall = max(room * mark.ms / top, 0.6)
        x = _LEFT + step * index + (step - width) / 2
        parts.append(
            f'<rect class="f-{mark.family}" x="{x:.2f}" y="{_TIME_HEIGHT - tall:.2f}" '
            f'width="{width:.2f}" height="{tall:.2f}" rx="0.8">'
            f"<title>{escape(mark.title)}</title></rect>"
        )
    return parts


def _speed_panel(marks: Sequence[LayerMark], step: float, speedups: Sequence[float]) -> list[str]:
    """Dots on a logarithmic scale; 1 is always in it."""
    low = min(log10(min(speedups)), 0.0)
    high = max(log10(max(speedups)), log10(2.0))
    head = _TIME_HEIGHT + _FOOT + _GAP
    room = _SPEED_HEIGHT - 14

    def place(value: float) -> float:
        return head + room - room * (log10(value) - low) / (high - low)

    parts = [_text(0, head - 8, "speed-up", "axis")]
    for value in _log_ticks(low, high):
        y = place(value)
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "grid one" if value == 1 else "grid"))
        parts.append(_text(_LEFT - 6, y + 3, f"{value:g}\u00d7", "axis end"))
    for index, mark in enumerate(marks):
        if mark.speedup is None or mark.speedup <= 0:
            continue
        x = _LEFT + step * (index + 0.5)
        parts.append(
            f'<circle class="f-{mark.family}" cx="{x:.2f}" cy="{place(mark.speedup):.2f}" r="2.6">'
            f"<title>{escape(mark.title)}</title></circle>"
        )
    return parts


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... between the two decades; only powers of ten when there are many."""
    factors = (1, 2, 5) if high - low < 1.6 else (1,)
    decades = range(floor(low), ceil(high) + 1)
    values = [factor * 10.0**decade for decade in decades for factor in factors]
    return [value for value in values if low - 1e-9 <= log10(value) <= high + 1e-9]


def _groups(marks: Sequence[LayerMark], step: float, height: int) -> list[str]:
    """Fine lines where a module begins, and the modules' names where there is room."""
    parts = []
    free_from = 0.0
    starts = [0, *(i for i in range(1, len(marks)) if marks[i].group != marks[i - 1].group)]
    for start, end in zip(starts, [*starts[1:], len(marks)], strict=True):
        x = _LEFT + step * start
        if start:
            parts.append(_line(x, 6, x, height - 6, "group"))
        name = marks[start].group.rpartition(".")[2]
        middle = x + step * (end - start) / 2
        half = _LABEL_ROOM * len(name) / 2
        if middle - half >= free_from and middle + half <= _WIDTH:
            parts.append(_text(middle, _TIME_HEIGHT + 15, name, "axis middle"))
            free_from = middle + half
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
