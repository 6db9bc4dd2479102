from __future__ import annotations

import pytest

from k230_lib.evaluation.compare import Answer, compare


def test_pairs_are_compared_by_sample() -> None:
    first = {
        1: Answer(True, 10.0),
        2: Answer(False, 10.0),
        3: Answer(True, 30.0),
        9: Answer(True, 1),
    }
    second = {
        1: Answer(True, 5.0),
        2: Answer(True, 2.5),
        3: Answer(False, 10.0),
        8: Answer(True, 1),
    }
    found = compare(first, second)
    assert (found.count, found.only_first, found.only_second) == (3, 1, 1)
    assert (found.gained, found.lost) == ((2,), (3,))
    assert found.speedup == pytest.approx(3.0)
    assert found.accuracy_change == 0.0


def test_a_loss_beyond_the_threshold_is_a_regression() -> None:
    first = {k: Answer(True, 1.0) for k in range(100)}
    second = {k: Answer(k >= 3, 1.0) for k in range(100)}
    found = compare(first, second)
    assert found.accuracy_change == pytest.approx(-0.03)
    assert found.regressed(0.02)
    assert not found.regressed(0.03)


@pytest.mark.parametrize("lost", range(1, 40))
def test_a_loss_of_just_the_threshold_is_none(lost: int) -> None:
    first = {k: Answer(True, 1.0) for k in range(1000)}
    second = {k: Answer(k >= lost, 1.0) for k in range(1000)}
    assert not compare(first, second).regressed(lost / 10 / 100)


def test_chance_is_told_from_change() -> None:
    def flips(gained: int, lost: int) -> float:
        first = {k: Answer(k >= gained, 1.0) for k in range(gained + lost)}
        second = {k: Answer(k < gained, 1.0) for k in range(gained + lost)}
        return compare(first, second).p_value

    assert flips(5, 5) == 1.0
    # two-sided: 2 * (1/2)^10
    assert flips(0, 10) == pytest.approx(2 / 1024)
    assert flips(1, 9) == pytest.approx(2 * 11 / 1024)
    assert flips(3, 9) == pytest.approx(2 * (1 + 12 + 66 + 220) / 4096)


def test_without_common_images_there_is_nothing_to_say() -> None:
    found = compare({1: Answer(True, 1.0)}, {2: Answer(True, 1.0)})
    assert (found.count, found.speedup, found.p_value) == (0, None, 1.0)
    assert not found.regressed(0.0)
