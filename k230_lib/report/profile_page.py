"""The one-file page of a profile: figures chosen here, their looks in ``templates/``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from ..profiling.advice import next_steps
from ..profiling.compare import Comparison, Gain
from ..profiling.families import family, type_name
from ..profiling.profile import Profile
from ..profiling.tables import MODEL_ITSELF
from .charts import LayerMark, layer_chart
from .numbers import NBSP, PERCENT, count, factor, milliseconds, percent

TOP = 5
_ORIGINS = {
    "measured_here": "measured here, on virtual boards: ratios count, times do not",
    "modelled": "modelled, not measured",
    "measured_on_board": "measured on the board",
    "unknown": "a trace that does not say where it is from",
}
_FASTER, _SLOWER = 1.05, 0.95


@dataclass(frozen=True)
class Segment:
    """A coloured part of a bar; ``width`` in percent of the bar's room."""

    family: str
    width: float
    title: str


@dataclass(frozen=True)
class TopOperator:
    """An operator type among the slowest; ``name`` is ``prefix + base + suffix``."""

    name: str
    prefix: str
    base: str
    suffix: str
    ms: str
    share: str
    segments: tuple[Segment, ...]
    speedup: str
    tone: str
    where: str


@dataclass(frozen=True)
class Tile:
    """One of the figures at the head of the page."""

    label: str
    value: str
    unit: str
    note: str
    tone: str = ""


@dataclass(frozen=True)
class VariantBar:
    """A variant's bar, made of its operator types."""

    name: str
    ms: str
    speedup: str
    segments: tuple[Segment, ...]


def page(
    profiles: Sequence[Profile],
    variants: Sequence[Profile],
    comparison: Comparison | None,
    failures: Sequence[str],
) -> str:
    """The whole page as HTML, without any reference to another file.

    Args:
        profiles: one per board and variant.
        variants: one per variant, all boards together.
        comparison: of the variants, when there are two or more.
        failures: what is slower than allowed.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("profile.html.j2")
    return template.render(context(profiles, variants, comparison, failures))


def context(
    profiles: Sequence[Profile],
    variants: Sequence[Profile],
    comparison: Comparison | None,
    failures: Sequence[str],
) -> dict[str, Any]:
    """Everything that the template shows, as plain values."""
    subject = min(variants, key=lambda profile: profile.totals.inference_ms)
    gain = _gain_of(comparison, subject)
    capture = subject.capture
    speedups = comparison.event_speedups(capture.variant) if comparison else {}
    return {
        "model": capture.model or "model",
        "variant": capture.variant,
        "baseline": comparison.baseline if comparison else "",
        "origin": _ORIGINS[capture.origin],
        "boards": sorted({profile.capture.board for profile in profiles} - {""}),
        "executions": sum(profile.totals.executions for profile in profiles),
        "started": capture.started[:16].replace("T", " ") + " UTC" if capture.started else "",
        "failures": list(failures),
        "notes": list(dict.fromkeys(note for profile in variants for note in profile.notes)),
        "tiles": _tiles(subject, comparison, gain),
        "top": _top(subject, comparison),
        "steps": next_steps(subject, comparison),
        "bars": _bars(variants, comparison),
        "families": _families(variants),
        "chart": layer_chart(_marks(subject, speedups)),
        "events": _events(subject, speedups),
        "modules": _modules(subject),
        "runs": _runs(profiles, variants),
        "facts": _facts(subject),
        "has_record": subject.has_record,
    }


def _gain_of(comparison: Comparison | None, subject: Profile) -> Gain | None:
    gains = comparison.gains if comparison else ()
    return next((gain for gain in gains if gain.variant == subject.capture.variant), None)


def _tiles(subject: Profile, comparison: Comparison | None, gain: Gain | None) -> list[Tile]:
    totals = subject.totals
    boards = subject.capture.board.count(",") + 1 if subject.capture.board else 0
    on = f", {boards} boards" if boards > 1 else ""
    tiles = [
        Tile(
            "One inference",
            milliseconds(totals.inference_ms),
            "ms",
            f"median of {totals.executions}{on}; p10 to p90 spread {percent(totals.spread)}",
        )
    ]
    if comparison and gain:
        note = f"against {comparison.baseline}, {milliseconds(gain.baseline_ms)}{NBSP}ms"
        tone = "" if gain.within_noise else _tone(gain.speedup)
        noise = "; within noise" if gain.within_noise else ""
        tiles.append(Tile("Speed-up", factor(gain.speedup), "", note + noise, tone))
        left = f"{percent(gain.remainder)} of {comparison.baseline} is not accelerated"
        ceiling = left if gain.remainder > 0 else "every operator is accelerated"
        tiles.append(Tile("Ceiling (Amdahl)", factor(gain.ceiling), "", ceiling))
    else:
        why = (
            f"{subject.capture.variant} is the baseline and the fastest"
            if comparison
            else "profile a second variant to compare"
        )
        tiles.append(Tile("Speed-up", "\N{EN DASH}", "", why))
    first = subject.kinds.iloc[0]
    tiles.append(
        Tile(
            "Bottleneck",
            percent(float(first["share"])).removesuffix(PERCENT),
            "%",
            f"in {type_name(str(first['operator']), str(first['kind']))}, "
            f"{int(first['operators'])} operators",
        )
    )
    if totals.macs and len(tiles) < 4:
        rate = totals.macs / totals.inference_ms / 1e6
        note = f"{count(totals.macs)}MAC per inference"
        tiles.append(Tile("Rate", f"{rate:.3g}", "GMAC/s", note))
    return tiles


def _top(subject: Profile, comparison: Comparison | None) -> list[TopOperator]:
    rows = []
    largest = float(subject.operators["share"].max())
    for _, row in subject.operators.head(TOP).iterrows():
        name = str(row["operator"])
        base = type_name(name)
        kinds = subject.kinds[subject.kinds["operator"] == name]
        segments = tuple(
            Segment(
                family(name, str(kind["kind"])),
                100 * float(kind["share"]) / largest,
                f"{type_name(name, str(kind['kind']))}: {percent(float(kind['share']))}, "
                f"{int(kind['operators'])} operators, {milliseconds(float(kind['median_ms']))} ms",
            )
            for _, kind in kinds.iterrows()
        )
        speedup = comparison.type_speedup(subject.capture.variant, name) if comparison else None
        slowest = subject.events[subject.events["operator"] == name].iloc[0]
        times = int(row["operators"])
        parts = [f"{times} call{'s' * (times > 1)}"]
        if subject.has_record:
            parts.append(f"slowest {slowest['module'] or MODEL_ITSELF} {slowest['detail']}")
            parts.append(str(slowest["source"]))
        rows.append(
            TopOperator(
                name=name,
                prefix=name.partition(base)[0],
                base=base,
                suffix=name.partition(base)[2],
                ms=milliseconds(float(row["median_ms"])),
                share=percent(float(row["share"])),
                segments=segments,
                speedup=factor(speedup) if speedup is not None else "",
                tone=_tone(speedup),
                where=" \N{MIDDLE DOT} ".join(filter(None, parts)),
            )
        )
    return rows


def _bars(variants: Sequence[Profile], comparison: Comparison | None) -> list[VariantBar]:
    longest = max(profile.totals.inference_ms for profile in variants)
    bars = []
    for profile in variants:
        gain = _gain_of(comparison, profile)
        segments = tuple(
            Segment(
                family(str(row["operator"]), str(row["kind"])),
                100 * float(row["median_ms"]) / longest,
                f"{type_name(str(row['operator']), str(row['kind']))}: "
                f"{milliseconds(float(row['median_ms']))} ms, {percent(float(row['share']))}",
            )
            for _, row in profile.kinds.iterrows()
        )
        bars.append(
            VariantBar(
                name=profile.capture.variant,
                ms=milliseconds(profile.totals.inference_ms),
                speedup=factor(gain.speedup) if gain else "",
                segments=segments,
            )
        )
    return bars


def _families(variants: Sequence[Profile]) -> list[str]:
    """Families that occur, slowest first."""
    kinds = pd.concat([profile.kinds for profile in variants])
    kinds = kinds.sort_values("median_ms", ascending=False)
    pairs = zip(kinds["operator"], kinds["kind"], strict=True)
    return list(dict.fromkeys(family(str(name), str(kind)) for name, kind in pairs))


def _marks(subject: Profile, speedups: dict[int, float]) -> list[LayerMark]:
    marks = []
    for _, row in subject.events.sort_values("order").iterrows():
        speedup = speedups.get(int(row["order"]))
        module = str(row["module"])
        against = f", {factor(speedup)} as fast" if speedup is not None else ""
        marks.append(
            LayerMark(
                title=f"{module or row['operator']} {row['detail']}: "
                f"{milliseconds(float(row['median_ms']))} ms, {row['operator']}{against}",
                group=".".join(module.split(".")[:2]),
                family=family(str(row["operator"]), str(row["kind"])),
                ms=float(row["median_ms"]),
                speedup=speedup,
            )
        )
    return marks


def _events(subject: Profile, speedups: dict[int, float]) -> list[dict[str, Any]]:
    largest = float(subject.events["share"].max())
    rows = []
    for rank, (_, row) in enumerate(subject.events.iterrows(), start=1):
        speedup = speedups.get(int(row["order"]))
        rate = float(row["gmac_per_s"])
        rows.append(
            {
                "rank": rank,
                "order": int(row["order"]),
                "name": type_name(str(row["operator"]), str(row["kind"])),
                "operator": str(row["operator"]),
                "family": family(str(row["operator"]), str(row["kind"])),
                "kernel": str(row["kernel"]),
                "module": str(row["module"]) or (MODEL_ITSELF if subject.has_record else ""),
                "detail": str(row["detail"]),
                "source": str(row["source"]),
                "code": str(row["code"]),
                "ms": milliseconds(float(row["median_ms"])),
                "ms_value": float(row["median_ms"]),
                "range": f"{milliseconds(float(row['min_ms']))} to "
                f"{milliseconds(float(row['max_ms']))} ms, "
                f"p90 {milliseconds(float(row['p90_ms']))}",
                "share": percent(float(row["share"])),
                "cumulative": percent(float(row["cumulative_share"])),
                "width": 100 * float(row["share"]) / largest if largest else 0.0,
                "rate": f"{rate:.3f}" if isfinite(rate) else "",
                "speedup": factor(speedup) if speedup is not None else "",
                "speedup_value": speedup or 0.0,
                "tone": _tone(speedup),
            }
        )
    return rows


def _modules(subject: Profile) -> list[dict[str, Any]]:
    largest = float(subject.modules["share"].max())
    return [
        {
            "name": str(row["module"]),
            "operators": int(row["operators"]),
            "ms": milliseconds(float(row["median_ms"])),
            "share": percent(float(row["share"])),
            "width": 100 * float(row["share"]) / largest if largest else 0.0,
        }
        for _, row in subject.modules.sort_values("order").iterrows()
    ]


def _runs(profiles: Sequence[Profile], variants: Sequence[Profile]) -> list[dict[str, Any]]:
    """One row per board and variant, with its distance from the variant's median."""
    together = {p.capture.variant: p.totals.inference_ms for p in variants}
    return [
        {
            "variant": profile.capture.variant,
            "board": profile.capture.board or "\N{EN DASH}",
            "executions": profile.totals.executions,
            "ms": milliseconds(profile.totals.inference_ms),
            "apart": f"{100 * (profile.totals.inference_ms / middle - 1):+.1f}{PERCENT}",
            "operators": milliseconds(profile.totals.operators_ms),
            "wall": milliseconds(profile.totals.wall_ms),
            "spread": percent(profile.totals.spread),
        }
        for profile in profiles
        if (middle := together[profile.capture.variant])
    ]


def _facts(subject: Profile) -> list[tuple[str, str]]:
    capture = subject.capture
    facts = [
        ("Model", capture.model),
        (".pte sha256", capture.pte_sha256),
        ("Runner sha256", capture.runner_sha256),
        ("Command", capture.command),
        ("Clock of the trace", str(subject.clock)),
        ("Warm-up", f"{capture.warmup + capture.skip} executions" if capture.executions else ""),
        ("Figures", capture.origin),
        *sorted(capture.versions.items()),
    ]
    return [(name, value) for name, value in facts if value]


def _tone(speedup: float | None) -> str:
    if speedup is None:
        return ""
    return "good" if speedup >= _FASTER else "bad" if speedup <= _SLOWER else ""
