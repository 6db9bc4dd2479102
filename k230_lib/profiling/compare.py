"""Two or more variants, operator by operator: what got faster, and what is in the way now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from ..errors import InputError
from .profile import Profile
from .tables import grouped_table

ACCELERATED_FROM = 1.05
_WORTH_JUDGING = 0.01
# In another export, what a fused operator is compared with: its clamp is then simply gone.
_FUSED = {"k230.conv2d_clamp.default": "aten.convolution.default"}


@dataclass(frozen=True)
class Gain:
    """One variant against the baseline.

    ``speedup`` is of the whole inference. ``remainder`` is the share of the *baseline's* time in
    operators that the variant does not accelerate, and ``ceiling`` the total speed-up that would be
    left if all accelerated ones took no time at all (Amdahl); infinite when nothing remains.
    Time between operators counts as one more of them. ``noise`` is the larger spread (p90 - p10
    over the median) of the two.
    """

    variant: str
    baseline_ms: float
    variant_ms: float
    speedup: float
    remainder: float
    ceiling: float
    accelerated: int
    slowed: int
    noise: float

    @property
    def within_noise(self) -> bool:
        """Whether the difference is smaller than the executions differ among themselves."""
        return abs(1 - 1 / self.speedup) < self.noise if self.speedup > 0 else False


@dataclass(frozen=True, eq=False)
class Comparison:
    """Variants joined operator by operator.

    ``events`` has a row per operator in execution order, ``operators`` and ``kinds`` one per type;
    for each variant there are the columns ``<variant>_ms`` and, but for the baseline,
    ``<variant>_speedup``. Operators that one side lacks have NaN there. In ``events`` the column
    ``<variant>_order`` is the operator's place in that variant, -1 where it has none.
    """

    baseline: str
    variants: tuple[str, ...]
    events: pd.DataFrame
    operators: pd.DataFrame
    kinds: pd.DataFrame
    gains: tuple[Gain, ...]

    def event_speedups(self, variant: str) -> dict[int, float]:
        """Speed-up of each operator of ``variant`` by its order; none for the baseline."""
        column = f"{variant}_speedup"
        if column not in self.events:
            return {}
        known = self.events[self.events[column].notna()]
        orders = known[f"{variant}_order"].astype(int)
        return dict(zip(orders, known[column].astype(float), strict=True))

    def type_speedup(self, variant: str, operator: str) -> float | None:
        """Speed-up of an operator type of ``variant``; None where there is nothing to compare."""
        column = f"{variant}_speedup"
        if column not in self.operators:
            return None
        names = (operator, _FUSED.get(operator, operator))
        found = self.operators.loc[self.operators["operator"].isin(names), column].dropna()
        return None if found.empty else float(found.iloc[0])


@dataclass(frozen=True)
class Thresholds:
    """When a comparison fails, percent; None never fails."""

    total_slower: float | None = None
    operator_slower: float | None = None


def compare(profiles: Sequence[Profile], baseline: str | None = None) -> Comparison:
    """Join profiles of different variants.

    Args:
        profiles: one per variant (see :func:`.profile.pooled`).
        baseline: name of the variant to compare with; the first one by default.

    Raises:
        InputError: fewer than two variants, one twice, or no such baseline.
    """
    names = [profile.capture.variant for profile in profiles]
    if len(names) < 2 or len(set(names)) != len(names):
        raise InputError(
            f"a comparison needs two or more different variants, found: {', '.join(names)}.",
            hint="profile with more than one runner variant.",
        )
    if baseline is None:
        baseline = names[0]
    if baseline not in names:
        raise InputError(
            f"no variant {baseline!r} to compare with, found: {', '.join(names)}.",
            hint="name one of these as the baseline.",
        )
    ordered = sorted(profiles, key=lambda profile: profile.capture.variant != baseline)
    named = all(profile.has_record for profile in ordered)
    programs = [_program(profile, named) for profile in ordered]
    by_place = all(program == programs[0] for program in programs)
    if by_place and not named:
        ordered = [ordered[0], *(_named_like(ordered[0], other) for other in ordered[1:])]
    if not by_place:
        ordered = [
            _renamed(profile, profile.events["operator"].replace(_FUSED)) for profile in ordered
        ]
    events = _joined_events(ordered, by_place)
    base = ordered[0]
    return Comparison(
        baseline=baseline,
        variants=tuple(profile.capture.variant for profile in ordered),
        events=events,
        operators=_joined([(p, p.operators) for p in ordered], ["operator"]),
        kinds=_joined([(p, p.kinds) for p in ordered], ["operator", "kind"]),
        gains=tuple(_gain(base, other, events) for other in ordered[1:]),
    )


def failures(comparison: Comparison, limits: Thresholds) -> list[str]:
    """What is slower than allowed, a line each; empty when all is well.

    Operator types below 1 % of the baseline's time are not judged: they are mostly noise.
    """
    lines = []
    for gain in comparison.gains:
        slower = 100 * (gain.variant_ms / gain.baseline_ms - 1)
        if limits.total_slower is not None and slower > limits.total_slower:
            lines.append(
                f"{gain.variant}: {gain.variant_ms:.3f} ms per inference, {slower:.1f} % slower "
                f"than {comparison.baseline} ({gain.baseline_ms:.3f} ms), allowed are "
                f"{limits.total_slower:g} %"
            )
        if limits.operator_slower is None:
            continue
        base = comparison.operators[f"{comparison.baseline}_ms"]
        for _, row in comparison.operators[base > _WORTH_JUDGING * base.sum()].iterrows():
            before = float(row[f"{comparison.baseline}_ms"])
            slower = 100 * (float(row[f"{gain.variant}_ms"]) / before - 1)
            if slower > limits.operator_slower:
                lines.append(
                    f"{gain.variant}: {row['operator']} {slower:.1f} % slower than "
                    f"{comparison.baseline}, allowed are {limits.operator_slower:g} %"
                )
    return lines


def _program(profile: Profile, named: bool) -> list[tuple[int, str]]:
    """What ran: instructions, with their operators where an ETRecord tells them (``named``)."""
    frame = profile.events.sort_values("order")
    names = frame["operator"] if named else [""] * len(frame)
    return list(zip(frame["instruction"], names, strict=True))


def _named_like(base: Profile, other: Profile) -> Profile:
    """The same profile with the baseline's operator names.

    Without an ETRecord an operator has its kernel's name, and kernels of our own have their own.
    """
    names = base.events.set_index("order")["operator"]
    return _renamed(other, other.events["order"].map(names))


def _renamed(profile: Profile, operators: pd.Series[str]) -> Profile:
    """The same profile with other operator names, and its types grouped anew."""
    events = profile.events.assign(operator=operators)
    return replace(
        profile,
        events=events,
        operators=grouped_table(events, profile.op_ms, ["operator"]),
        kinds=grouped_table(events, profile.op_ms, ["operator", "kind"]),
    )


def _joined_events(profiles: Sequence[Profile], by_place: bool) -> pd.DataFrame:
    """Operators side by side: by instruction for one program, else by module and operator."""
    keys = ["nth"] if by_place else ["operator", "module", "nth"]
    shown = ["operator", "module", "nth", "order", "kind", "detail", "source"]
    frames = []
    for profile in profiles:
        frame = profile.events.sort_values("order", ignore_index=True)
        # In other programs (batch norms folded, say) instructions have other numbers.
        frame["nth"] = (
            frame["instruction"] if by_place else frame.groupby(["operator", "module"]).cumcount()
        )
        frames.append((profile, frame))
    described = pd.concat([frame[shown] for _, frame in frames]).drop_duplicates(subset=keys)
    table = _joined(frames, keys, extra=described)
    for profile, frame in frames:
        place = frame[[*keys, "order"]].rename(
            columns={"order": f"{profile.capture.variant}_order"}
        )
        table = table.merge(place, on=keys, how="left")
    orders = [f"{profile.capture.variant}_order" for profile in profiles]
    table[orders] = table[orders].fillna(-1).astype(int)
    # Operators that only a later variant has stand where they ran in it.
    return table.sort_values(["order", orders[0]], ignore_index=True).drop(columns="nth")


def _joined(
    frames: Sequence[tuple[Profile, pd.DataFrame]],
    keys: list[str],
    extra: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Median times side by side, with speed-ups against the first; slowest in it first."""
    baseline = frames[0][0].capture.variant
    table: pd.DataFrame | None = None
    for profile, frame in frames:
        column = f"{profile.capture.variant}_ms"
        part = frame[[*keys, "median_ms"]].rename(columns={"median_ms": column})
        table = part if table is None else table.merge(part, on=keys, how="outer", sort=False)
    assert table is not None  # compare() refuses fewer than two profiles
    if extra is not None:
        table = extra.merge(table, on=keys, how="right")
    for profile, _ in frames[1:]:
        variant = profile.capture.variant
        table[f"{variant}_speedup"] = table[f"{baseline}_ms"] / table[f"{variant}_ms"].where(
            table[f"{variant}_ms"] > 0
        )
    return table.sort_values(f"{baseline}_ms", ascending=False, ignore_index=True)


def _gain(base: Profile, other: Profile, events: pd.DataFrame) -> Gain:
    variant = other.capture.variant
    before = events[f"{base.capture.variant}_ms"]
    speedups = events[f"{variant}_speedup"]
    # An operator that the variant no longer has was accelerated without limit.
    gone = before.notna() & events[f"{variant}_ms"].isna()
    accelerated = (speedups >= ACCELERATED_FROM) | gone
    remaining = float(before[~accelerated].sum())
    # Sums of medians throughout: the median of whole executions is not the sum of its parts'.
    parts = float(before.sum()) + max(base.totals.overhead_ms, 0.0)
    if base.totals.overhead_ms < ACCELERATED_FROM * other.totals.overhead_ms:
        remaining += max(base.totals.overhead_ms, 0.0)
    remainder = remaining / parts if parts > 0 else 0.0
    total = base.totals.inference_ms
    return Gain(
        variant=variant,
        baseline_ms=total,
        variant_ms=other.totals.inference_ms,
        speedup=total / other.totals.inference_ms if other.totals.inference_ms > 0 else 0.0,
        remainder=remainder,
        ceiling=1 / remainder if remainder > 0 else float("inf"),
        accelerated=int(accelerated.sum()),
        slowed=int((speedups < 1 / ACCELERATED_FROM).sum()),
        noise=max(base.totals.spread, other.totals.spread),
    )
