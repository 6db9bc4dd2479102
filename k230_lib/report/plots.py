"""Plots as SVG and PNG files: top operators, variants stacked, time along the layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..profiling.compare import Comparison
from ..profiling.families import family, type_name
from ..profiling.profile import Profile

COLOURS = {
    "pointwise": "#3b6fd4",
    "depthwise": "#1a9a8f",
    "dense": "#7a5bd0",
    "convolution": "#5c7fd0",
    "norm": "#c2508d",
    "matmul": "#d0632f",
    "activation": "#d39b1f",
    "pooling": "#6f9a3a",
    "arithmetic": "#b0703f",
    "movement": "#7d8794",
    "other": "#a2a9b3",
}
_DPI = 150
_TOP = 12


def write_plots(
    folder: Path, profiles: Sequence[Profile], comparison: Comparison | None
) -> list[Path]:
    """Draw the plots of one profile per variant.

    Returns:
        the files written, ``.svg`` and ``.png`` of each plot.
    """
    # The object interface draws without a display and keeps no global state.
    from matplotlib import rc_context

    style = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": "k230",
        "svg.fonttype": "none",
    }
    with rc_context(style):
        figures = {"top-operators": _top(profiles), "layers": _layers(profiles)}
        if comparison:
            figures["variants"] = _stacked(profiles)
        return [path for name, figure in figures.items() for path in _save(folder, name, figure)]


def _save(folder: Path, name: str, figure: Any) -> Iterable[Path]:
    for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        path = folder / f"{name}.{suffix}"
        figure.savefig(path, dpi=_DPI, metadata=metadata)
        yield path


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _times(profile: Profile) -> dict[tuple[str, str], float]:
    """Median time, ms, by operator and kind; slowest first."""
    kinds = profile.kinds
    names = zip(kinds["operator"].astype(str), kinds["kind"].astype(str), strict=True)
    return dict(zip(names, kinds["median_ms"].astype(float), strict=True))


def _top(profiles: Sequence[Profile]) -> Any:
    """Horizontal bars of the operator types of every variant, slowest of the first one on top."""
    names = list(_times(profiles[0]))[:_TOP]
    figure, axes = _figure(8, 1 + 0.32 * len(names) * max(1, len(profiles) ** 0.5))
    height = 0.8 / len(profiles)
    for number, profile in enumerate(profiles):
        times = _times(profile)
        values = [times.get(name, 0.0) for name in names]
        places = [index + number * height for index in range(len(names))]
        colours = [COLOURS[family(*name)] for name in names]
        # The baseline is drawn pale, so that one hue still means one family.
        alpha = 1.0 if number == len(profiles) - 1 else 0.45
        bars = axes.barh(places, values, height=height * 0.92, color=colours, alpha=alpha)
        axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=7)
    axes.set_yticks(
        [index + 0.4 - height / 2 for index in range(len(names))],
        [type_name(*name) for name in names],
    )
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlabel("ms per inference (median)")
    axes.set_title(" / ".join(profile.capture.label for profile in profiles), loc="left")
    return figure


def _stacked(profiles: Sequence[Profile]) -> Any:
    """One bar per variant, made of its operator types."""
    figure, axes = _figure(8, 1.2 + 0.5 * len(profiles))
    shown: set[str] = set()
    for number, profile in enumerate(profiles):
        left = 0.0
        for key, ms in _times(profile).items():
            name = family(*key)
            axes.barh(
                number,
                ms,
                left=left,
                color=COLOURS[name],
                label=name if name not in shown else None,
            )
            shown.add(name)
            left += ms
        axes.annotate(
            f"{left:.4g} ms", (left, number), xytext=(4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(profiles)), [profile.capture.variant for profile in profiles])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("ms per inference (sum of operators)")
    axes.legend(ncols=6, fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.3))
    return figure


def _layers(profiles: Sequence[Profile]) -> Any:
    """Time of each operator in execution order, one line per variant."""
    figure, axes = _figure(9, 3.2)
    for profile in profiles:
        frame = profile.events.sort_values("order")
        axes.plot(
            frame["order"],
            frame["median_ms"],
            linewidth=1.1,
            marker=".",
            markersize=3,
            label=profile.capture.label,
        )
    axes.set_yscale("log")
    axes.set_xlabel("operator, in execution order")
    axes.set_ylabel("ms per inference")
    axes.legend(frameon=False, fontsize=8)
    return figure
