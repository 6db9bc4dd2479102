"""What to do next, in sentences that follow from the tables."""

from __future__ import annotations

import pandas as pd

from .compare import ACCELERATED_FROM, Comparison
from .families import type_name
from .profile import WALL_TOLERANCE, Profile

_TWICE = 2.0
_LAGGING = 0.5
_HALF = 0.5
_MANY = 10
_WORTH_A_LINE = 0.002


def amdahl(share: float, factor: float) -> float:
    """Speed-up of the whole when a ``share`` of it becomes ``factor`` times as fast."""
    return 1 / (1 - share + share / factor)


def next_steps(profile: Profile, comparison: Comparison | None = None) -> list[str]:
    """Some sentences, the most useful first.

    Args:
        profile: the variant to improve next: the fastest one.
        comparison: how it compares with the baseline, if there is one.
    """
    return [
        *_bottleneck(profile),
        *_concentration(profile),
        *_ceiling(profile, comparison),
        *_slowed(profile, comparison),
        *_lagging(profile),
        *_removable(profile),
        *_framework(profile),
    ]


def _bottleneck(profile: Profile) -> list[str]:
    first = profile.kinds.iloc[0]
    name = type_name(first["operator"], first["kind"])
    count = int(first["operators"])
    share = float(first["share"])
    rest = f" All else together can give {1 / share:.2f}x at most." if share > 0.5 else ""
    return [
        f"Speed up {name}: {_operators(count, 'takes', 'take')} {share:.0%} of the operators' "
        f"time; twice as fast there makes the model {amdahl(share, _TWICE):.2f}x as fast.{rest}"
    ]


def _concentration(profile: Profile) -> list[str]:
    """How few operators are worth looking at one by one."""
    events = profile.events
    if not profile.has_record or len(events) < _MANY:
        return []
    needed = int((events["cumulative_share"] < _HALF).sum()) + 1
    first = events.iloc[0]
    return [
        f"Start with {first['module'] or first['operator']} ({first['detail']}), "
        f"{first['share']:.1%} by itself; the slowest {needed} of {len(events)} operators take "
        "half of the time."
    ]


def _ceiling(profile: Profile, comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return []
    for gain in comparison.gains:
        faster = gain.speedup >= ACCELERATED_FROM and gain.remainder > 0
        if gain.variant == profile.capture.variant and faster:
            return [
                f"{gain.variant} leaves {gain.remainder:.1%} of {comparison.baseline}'s time as it "
                f"was: however fast its {gain.accelerated} accelerated operators get, the model "
                f"stays below {gain.ceiling:.1f}x."
            ]
    return []


def _slowed(profile: Profile, comparison: Comparison | None) -> list[str]:
    if comparison is None or profile.capture.variant == comparison.baseline:
        return []
    speedup = comparison.events[f"{profile.capture.variant}_speedup"]
    lost = comparison.events[speedup < 0.95]
    if lost.empty:
        return []
    ms = lost[f"{profile.capture.variant}_ms"] - lost[f"{comparison.baseline}_ms"]
    if float(ms.sum()) < _WORTH_A_LINE * profile.totals.operators_ms:
        return []
    worst = lost.iloc[int(ms.to_numpy().argmax())]
    where = worst["module"] or worst["operator"]
    losers = _operators(len(lost), "loses", "lose")
    return [
        f"Look at what got slower: {losers} {ms.sum():.2f} ms against {comparison.baseline}, most "
        f"of it in {where}."
    ]


def _lagging(profile: Profile) -> list[str]:
    """Operators that compute much slower than others of their kind."""
    events = profile.events[profile.events["gmac_per_s"].notna()]
    usual = events.groupby(["operator", "kind"])["gmac_per_s"].transform("median")
    events = events.assign(usual=usual)
    slow = events[(events["gmac_per_s"] < _LAGGING * usual) & (events["share"] > _WORTH_A_LINE)]
    if slow.empty:
        return []
    worst = slow.iloc[0]
    return [
        f"{_operators(len(slow), 'runs', 'run')} at less than half the usual rate of their kind, "
        f"first {worst['module']} ({worst['detail']}): {worst['gmac_per_s']:.3g} "
        f"against {worst['usual']:.3g} GMAC/s."
    ]


def _removable(profile: Profile) -> list[str]:
    """Work that the export can take away."""
    lines = []
    norms = _share_of(profile.operators, "batch_norm")
    if norms > _WORTH_A_LINE:
        lines.append(f"Fold batch norms into the convolutions at export: {norms:.1%} goes away.")
    copies = profile.events[profile.events["operator"].str.contains("permute_copy")]
    constant = copies[copies["module_type"] == "Linear"]
    share = float(constant["share"].sum())
    if share > _WORTH_A_LINE:
        lines.append(
            f"Transpose the classifier's weight at export, not in every inference: {share:.1%} "
            "goes away."
        )
    return lines


def _framework(profile: Profile) -> list[str]:
    totals = profile.totals
    if totals.execute_ms is None or totals.execute_ms <= 0:
        return []
    share = 1 - totals.operators_ms / totals.execute_ms
    if share < WALL_TOLERANCE:
        return []
    return [
        f"{share:.0%} of an inference is spent between operators: many small ones; fuse them, or "
        "trace without profiling to see how much of it is the tracing itself."
    ]


def _operators(count: int, one: str, many: str) -> str:
    return f"1 operator {one}" if count == 1 else f"{count} operators {many}"


def _share_of(table: pd.DataFrame, part: str) -> float:
    return float(table.loc[table["operator"].str.contains(part), "share"].sum())
