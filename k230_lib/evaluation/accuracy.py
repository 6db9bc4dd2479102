"""Top-1 and top-5 of a classifier. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

_ROWS = 4096
"""Rows ranked at a time, which bounds the memory for large runs."""

_SUSPICIOUS_FACTOR = 10
_SUSPICIOUS_HITS = 3


@dataclass(frozen=True)
class Accuracy:
    """Right answers of ``count``; ``suspect`` names a label convention that seems to be wrong."""

    count: int
    top1_correct: int
    top5_correct: int
    suspect: str | None = None

    @property
    def top1(self) -> float:
        """Share of images whose best class is the label; 0 without images."""
        return self.top1_correct / self.count if self.count else 0.0

    @property
    def top5(self) -> float:
        """Share of images whose label is among the five best classes."""
        return self.top5_correct / self.count if self.count else 0.0

    def __str__(self) -> str:
        return (
            f"top-1 {self.top1:.1%} ({self.top1_correct}/{self.count}), "
            f"top-5 {self.top5:.1%} ({self.top5_correct}/{self.count})"
        )

    def to_json(self) -> dict[str, Any]:
        """Counts and shares."""
        return {
            "count": self.count,
            "top1_correct": self.top1_correct,
            "top5_correct": self.top5_correct,
            "top1": round(self.top1, 6),
            "top5": round(self.top5, 6),
            "suspect": self.suspect,
        }


def rank(logits: Logits, k: int = 5) -> Indices:
    """The ``k`` best classes of each row, best first.

    Equal scores: the lower class index is better, so that the order is defined. NaN is worse
    than every number.

    Args:
        logits: [N, classes].

    Returns:
        int64 [N, min(k, classes)].
    """
    kept = min(k, logits.shape[1])
    best = np.empty((len(logits), kept), np.int64)
    for start in range(0, len(logits), _ROWS):
        rows = logits[start : start + _ROWS]
        best[start : start + _ROWS] = np.argsort(-rows, axis=1, kind="stable")[:, :kept]
    return best


def margins(logits: Logits, k: int) -> npt.NDArray[np.float64]:
    """Difference between the ``k``-th and the next best score of each row, float64 [N].

    Infinite where there is no next one.
    """
    if logits.shape[1] <= k:
        return np.full(len(logits), np.inf)
    ordered = np.sort(logits.astype(np.float64), axis=1)
    return ordered[:, -k] - ordered[:, -k - 1]


def score(logits: Logits, labels: Sequence[int]) -> Accuracy:
    """Accuracy of scores [N, classes] against N class indices.

    Raises:
        ValueError: the numbers of rows and labels differ.
    """
    return score_ranked(rank(logits), labels)


def score_ranked(best: Indices, labels: Sequence[int]) -> Accuracy:
    """Accuracy of ranked classes [N, up to 5] against N class indices.

    Raises:
        ValueError: the numbers of rows and labels differ.
    """
    if len(best) != len(labels):
        raise ValueError(f"{len(best)} results for {len(labels)} labels")
    truth = np.asarray(labels, np.int64)
    if not len(truth):
        return Accuracy(0, 0, 0)
    hits = best == truth[:, None]
    return Accuracy(
        count=len(truth),
        top1_correct=int(hits[:, 0].sum()),
        top5_correct=int(hits.any(axis=1).sum()),
        suspect=suspect_convention(best[:, 0], truth),
    )


def suspect_convention(predicted: Indices, labels: Indices) -> str | None:
    """A sentence, if the predictions fit the labels much better when these are shifted by one.

    Args:
        predicted: best class of each image.
        labels: class index of each image.
    """
    hits = {shift: int((predicted == labels + shift).sum()) for shift in (-1, 0, 1)}
    for shift in (1, -1):
        if hits[shift] >= _SUSPICIOUS_HITS and hits[shift] > _SUSPICIOUS_FACTOR * hits[0]:
            return (
                f"labels seem to be off by one: {hits[0]} of {len(labels)} right as labelled, "
                f"{hits[shift]} with {shift:+d} added to each label; check label_base, "
                "label_offset and the mapping"
            )
    return None
