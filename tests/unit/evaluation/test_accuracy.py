from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.evaluation.accuracy import margins, rank, score, suspect_convention


def _logits(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def test_equal_scores_rank_by_class_index() -> None:
    assert rank(_logits([1, 3, 3, 0, 3, 2])).tolist() == [[1, 2, 4, 5, 0]]


def test_nan_is_worse_than_any_number() -> None:
    assert rank(_logits([np.nan, -np.inf, 5.0])).tolist() == [[2, 1, 0]]


def test_a_tie_is_right_only_for_the_lower_index() -> None:
    logits = _logits([2, 2, 0, 0, 0, 0])
    assert score(logits, [0]).top1_correct == 1
    assert score(logits, [1]).top1_correct == 0
    # five of the six share the last places: class 5 is the one left out
    assert [score(logits, [label]).top5_correct for label in (4, 5)] == [1, 0]


def test_counts_and_shares() -> None:
    figures = score(_logits([0, 1, 0], [1, 0, 0], [1, 2, 3]), [1, 1, 2])
    assert (figures.count, figures.top1_correct, figures.top5_correct) == (3, 2, 3)
    assert figures.top1 == pytest.approx(2 / 3)
    assert str(figures) == "top-1 66.7% (2/3), top-5 100.0% (3/3)"


def test_no_images_are_no_accuracy() -> None:
    figures = score(np.empty((0, 10), np.float32), [])
    assert (figures.count, figures.top1, figures.suspect) == (0, 0.0, None)


def test_results_and_labels_must_be_of_one_number() -> None:
    with pytest.raises(ValueError, match="1 results for 2 labels"):
        score(_logits([0, 1]), [0, 1])


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_ranking_is_that_of_sorting_by_score_then_index(rows: int, classes: int, seed: int) -> None:
    # few different values, so that ties are common
    logits = np.random.default_rng(seed).integers(0, 4, (rows, classes)).astype(np.float32)
    wanted = [sorted(range(classes), key=lambda c, r=row: (-r[c], c))[:5] for row in logits]
    assert rank(logits).tolist() == wanted


def test_margins() -> None:
    logits = _logits([5, 1, 4, 3, 2, 0.5, 0])
    assert margins(logits, 1).tolist() == [1.0]
    assert margins(logits, 5).tolist() == [0.5]
    assert margins(_logits([1, 2]), 5).tolist() == [np.inf]


@pytest.mark.parametrize("shift", [1, -1])
def test_labels_that_are_off_by_one_are_named(shift: int) -> None:
    labels = np.arange(10, 60)
    predicted = labels + shift
    predicted[:2] = labels[:2]
    sentence = suspect_convention(predicted, labels)
    assert sentence is not None
    assert f"2 of 50 right as labelled, 48 with {shift:+d} added" in sentence


def test_a_factor_of_ten_is_not_more_than_ten_times() -> None:
    labels = np.arange(0, 100, 2)
    predicted = labels.copy() + 40
    predicted[:10] = labels[:10] + 1
    predicted[10] = labels[10]
    assert suspect_convention(predicted, labels) is None


def test_a_model_that_guesses_is_not_suspected() -> None:
    source = np.random.default_rng(0)
    for classes, count in ((10, 397), (1000, 100), (1000, 50000)):
        predicted, labels = source.integers(0, classes, (2, count))
        assert suspect_convention(predicted, labels) is None
