"""A smaller, still representative choice of a dataset."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from ..errors import DatasetError
from .layouts import Entry


def stratified(entries: Sequence[Entry], limit: int, seed: int) -> tuple[Entry, ...]:
    """Choose ``limit`` entries, each class in proportion to its share.

    The same seed gives the same choice, and a smaller limit a part of the larger one's choice.

    Returns:
        The chosen entries in their former order.

    Raises:
        DatasetError: ``limit`` is not positive.
    """
    if limit < 1:
        raise DatasetError(
            f"a subset of {limit} images was asked for", hint="set the limit to 1 or more."
        )
    classes: dict[int, list[int]] = defaultdict(list)
    for position, entry in enumerate(entries):
        classes[entry.label].append(position)
    ranked: list[tuple[float, float, int]] = []
    for label in sorted(classes):
        # a text seed is hashed with SHA-512 by random: the same on every machine and run
        source = random.Random(f"{seed}/{label}")
        members = classes[label]
        source.shuffle(members)
        share = len(members)
        ranked += (((k + 0.5) / share, source.random(), p) for k, p in enumerate(members))
    chosen = sorted(position for _, _, position in sorted(ranked)[:limit])
    return tuple(entries[position] for position in chosen)
