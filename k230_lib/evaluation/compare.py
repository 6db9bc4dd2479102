"""Two variants on the same images: is one more accurate, is one faster? Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Answer:
    """What one variant said about one image."""

    correct: bool
    latency_ms: float


@dataclass(frozen=True)
class Comparison:
    """Paired figures over the images that both variants answered.

    ``gained`` images are right only in the second variant, ``lost`` only in the first;
    ``p_value`` is the exact two-sided McNemar probability of so uneven a split by chance.
    ``speedup`` is the median over images of first / second latency.
    """

    count: int
    only_first: int
    only_second: int
    first_correct: int
    second_correct: int
    gained: tuple[int, ...]
    lost: tuple[int, ...]
    p_value: float
    speedup: float | None

    @property
    def accuracy_change(self) -> float:
        """Second minus first, as a share of the common images."""
        return (self.second_correct - self.first_correct) / self.count if self.count else 0.0

    def regressed(self, threshold: float) -> bool:
        """Whether the second variant lost more than ``threshold`` (a share) of accuracy."""
        # 7 of 1000 images are not more than 0.7 %, whatever binary fractions make of both.
        return self.accuracy_change < -threshold - _ROUNDING

    def to_json(self) -> dict[str, Any]:
        """Plain objects for reports."""
        return {**asdict(self), "accuracy_change": round(self.accuracy_change, 6)}


def compare(first: Mapping[int, Answer], second: Mapping[int, Answer]) -> Comparison:
    """Compare two variants' answers by sample id."""
    common = sorted(first.keys() & second.keys())
    gained = tuple(i for i in common if second[i].correct and not first[i].correct)
    lost = tuple(i for i in common if first[i].correct and not second[i].correct)
    ratios = [
        first[i].latency_ms / second[i].latency_ms for i in common if second[i].latency_ms > 0
    ]
    return Comparison(
        count=len(common),
        only_first=len(first) - len(common),
        only_second=len(second) - len(common),
        first_correct=sum(first[i].correct for i in common),
        second_correct=sum(second[i].correct for i in common),
        gained=gained,
        lost=lost,
        p_value=_mcnemar(len(gained), len(lost)),
        speedup=median(ratios) if ratios else None,
    )


def _mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided binomial test of ``gained`` against ``lost`` at one half."""
    changed, fewer = gained + lost, min(gained, lost)
    if not changed:
        return 1.0
    ways = tail = 1
    for k in range(fewer):
        ways = ways * (changed - k) // (k + 1)
        tail += ways
    return min(1.0, float(2 * tail / (1 << changed)))
