from __future__ import annotations

from collections import Counter

import pytest

from k230_lib.dataset.layouts import Entry
from k230_lib.dataset.subset import stratified
from k230_lib.errors import DatasetError

ENTRIES = tuple(
    Entry(f"{label}/{number:03d}", label, None)
    for label, count in ((0, 60), (1, 30), (2, 10))
    for number in range(count)
)


def test_each_class_keeps_its_share() -> None:
    chosen = stratified(ENTRIES, 20, seed=1)
    assert Counter(entry.label for entry in chosen) == {0: 12, 1: 6, 2: 2}


def test_the_choice_depends_on_the_seed_only_and_keeps_the_order() -> None:
    first = stratified(ENTRIES, 20, seed=1)
    assert first == stratified(ENTRIES, 20, seed=1)
    assert first != stratified(ENTRIES, 20, seed=2)
    assert list(first) == sorted(first, key=lambda entry: entry.path)


def test_a_smaller_choice_is_part_of_a_larger_one() -> None:
    assert set(stratified(ENTRIES, 10, seed=3)) <= set(stratified(ENTRIES, 40, seed=3))


def test_more_than_there_are_gives_all() -> None:
    assert stratified(ENTRIES, 1000, seed=0) == ENTRIES


def test_nothing_is_no_subset() -> None:
    with pytest.raises(DatasetError, match="subset of 0 images"):
        stratified(ENTRIES, 0, seed=0)
