"""Whether two runs of the same program say the same, image by image. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .accuracy import Logits, margins, rank

CLOSE_CALL = 0.01
"""A changed rank counts as a disagreement only where the reference's margin is at least this."""


@dataclass(frozen=True)
class Difference:
    """One image on which the two differ; ``margin`` is the reference's."""

    index: int
    kind: str
    reference: tuple[int, ...]
    found: tuple[int, ...]
    margin: float
    close_call: bool


@dataclass(frozen=True)
class Agreement:
    """How far ``found`` is from ``reference``.

    ``top1_equal`` and ``top5_equal`` count images with the same best class and the same set of
    five; ``max_abs`` is the largest difference of a score, ``max_rel`` the same in units of the
    largest score of its image, ``worst_index`` the image where that is.
    """

    count: int
    top1_equal: int
    top5_equal: int
    max_abs: float
    max_rel: float
    worst_index: int | None
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """Whether every difference of rank is a close call."""
        return all(difference.close_call for difference in self.differences)

    def to_json(self) -> dict[str, Any]:
        """Plain objects for ``run.json``."""
        return {**asdict(self), "agrees": self.agrees}


def compare(
    reference: Logits, found: Logits, indices: Sequence[int], close_call: float = CLOSE_CALL
) -> Agreement:
    """Compare scores [N, classes] row by row; ``indices`` names the rows.

    Raises:
        ValueError: the shapes differ, or the number of names.
    """
    if reference.shape != found.shape or len(indices) != len(reference):
        raise ValueError(f"{reference.shape} against {found.shape}, {len(indices)} names")
    if not len(reference):
        return Agreement(0, 0, 0, 0.0, 0.0, None, ())
    # NaN on one side only is an infinite difference
    gap = np.abs(found.astype(np.float64) - reference.astype(np.float64))
    gap = np.where(np.isnan(gap), np.inf, gap).max(axis=1)
    size = np.maximum(np.abs(reference.astype(np.float64)).max(axis=1), np.finfo(np.float32).tiny)
    relative = gap / size
    ranked_reference, ranked_found = rank(reference), rank(found)
    same_best = ranked_reference[:, 0] == ranked_found[:, 0]
    same_five = (np.sort(ranked_reference, axis=1) == np.sort(ranked_found, axis=1)).all(axis=1)
    first, fifth = margins(reference, 1), margins(reference, 5)
    differences = []
    for row in map(int, np.flatnonzero(~(same_best & same_five))):
        kind = "top5" if same_best[row] else "top1"
        margin = float((first if kind == "top1" else fifth)[row])
        # a changed best class excuses a changed set only if that is close as well
        excused = margin < close_call and (same_five[row] or fifth[row] < close_call)
        differences.append(
            Difference(
                index=indices[row],
                kind=kind,
                reference=tuple(int(c) for c in ranked_reference[row]),
                found=tuple(int(c) for c in ranked_found[row]),
                margin=margin,
                close_call=bool(excused),
            )
        )
    worst = int(relative.argmax())
    return Agreement(
        count=len(reference),
        top1_equal=int(same_best.sum()),
        top5_equal=int(same_five.sum()),
        max_abs=float(gap.max()),
        max_rel=float(relative[worst]),
        worst_index=indices[worst],
        differences=tuple(differences),
    )


def joined(parts: Iterable[Agreement]) -> Agreement:
    """The agreement over the images of all ``parts``, which have none in common."""
    given = [part for part in parts if part.count]
    if not given:
        return Agreement(0, 0, 0, 0.0, 0.0, None, ())
    worst = max(given, key=lambda part: part.max_rel)
    return Agreement(
        count=sum(part.count for part in given),
        top1_equal=sum(part.top1_equal for part in given),
        top5_equal=sum(part.top5_equal for part in given),
        max_abs=max(part.max_abs for part in given),
        max_rel=worst.max_rel,
        worst_index=worst.worst_index,
        differences=tuple(difference for part in given for difference in part.differences),
    )
