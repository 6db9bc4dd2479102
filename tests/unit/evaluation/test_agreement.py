from __future__ import annotations

import numpy as np
import pytest

from k230_lib.evaluation.agreement import compare, joined


def _reference() -> np.ndarray:
    return np.array([[9, 8, 7, 6, 5, 4, 3], [1, 2, 3, 4, 5, 6, 10]], np.float32)


def test_equal_scores_agree() -> None:
    found = compare(_reference(), _reference(), [11, 12])
    assert (found.count, found.top1_equal, found.top5_equal) == (2, 2, 2)
    assert (found.max_abs, found.max_rel) == (0.0, 0.0)
    assert found.agrees


def test_the_worst_image_is_named() -> None:
    other = _reference()
    other[1, 6] += 0.5
    found = compare(_reference(), other, [11, 12])
    assert found.worst_index == 12
    assert found.max_abs == 0.5
    assert found.max_rel == pytest.approx(0.05)
    assert found.agrees


def test_another_best_class_is_a_disagreement() -> None:
    other = _reference()
    other[0, 1] = 9.5
    found = compare(_reference(), other, [11, 12])
    assert (found.top1_equal, found.top5_equal) == (1, 2)
    (difference,) = found.differences
    assert (difference.index, difference.kind, difference.margin) == (11, "top1", 1.0)
    assert difference.reference[0] == 0
    assert difference.found[0] == 1
    assert not found.agrees


def test_a_swap_between_nearly_equal_scores_is_a_close_call() -> None:
    reference, other = _reference(), _reference()
    reference[0, 1] = 8.995
    other[0, 0], other[0, 1] = 8.995, 9.0
    found = compare(reference, other, [11, 12])
    assert found.top1_equal == 1
    assert found.agrees


def test_a_close_best_class_does_not_excuse_another_set_of_five() -> None:
    reference, other = _reference(), _reference()
    reference[0, 1] = 8.995
    other[0, 0], other[0, 1], other[0, 5] = 8.995, 9.0, 5.5
    assert not compare(reference, other, [11, 12]).agrees


def test_the_set_of_five_may_change_only_at_its_border() -> None:
    reference, other = _reference(), _reference()
    reference[0, 5] = 4.995
    other[0, 5] = 5.001
    found = compare(reference, other, [11, 12])
    assert (found.top1_equal, found.top5_equal) == (2, 1)
    assert found.differences[0].kind == "top5"
    assert found.agrees


def test_nan_on_one_side_is_an_infinite_difference() -> None:
    other = _reference()
    other[0] = np.nan
    found = compare(_reference(), other, [11, 12])
    assert found.max_abs == np.inf
    assert found.worst_index == 11


def test_results_of_other_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="names"):
        compare(_reference(), _reference()[:1], [11, 12])


def test_nothing_agrees_with_nothing() -> None:
    empty = np.empty((0, 5), np.float32)
    assert compare(empty, empty, []).agrees


def test_parts_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(3)
    reference = rng.normal(size=(60, 9)).astype(np.float32)
    other = (reference + rng.normal(scale=0.1, size=reference.shape)).astype(np.float32)
    whole = compare(reference, other, range(60))
    assert whole.differences
    parts = [
        compare(reference[start : start + 25], other[start : start + 25], names)
        for start, names in ((0, range(25)), (25, range(25, 50)), (50, range(50, 60)))
    ]
    assert joined([compare(reference[:0], other[:0], []), *parts]) == whole
    assert joined([]).count == 0
