"""How much work a board gets: a simulated rack, and the rules one by one."""

from __future__ import annotations

import heapq

import pytest

from k230_lib.inference.schedule import Pace, chunk_size, time_to_send

OVERHEAD = 0.4


def simulate(rates: list[float], samples: int, maximum: int = 64) -> tuple[float, int]:
    """Boards of these speeds work a queue off; returns wall time and samples computed."""
    left, done = samples, 0
    known = {str(n): 0.0 for n in range(len(rates))}
    free = [(0.0, n) for n in range(len(rates))]
    heapq.heapify(free)
    end = 0.0
    while left:
        now, board = heapq.heappop(free)
        count = min(left, chunk_size(left, known, str(board), maximum))
        left -= count
        done += count
        known[str(board)] = rates[board]
        finish = now + OVERHEAD + count / rates[board]
        end = max(end, finish)
        heapq.heappush(free, (finish, board))
    return end, done


@pytest.mark.parametrize("boards", [1, 2, 4, 8])
@pytest.mark.parametrize("slow", [1.0, 0.2])
def test_boards_of_different_speed_end_together(boards: int, slow: float) -> None:
    rates = [13.3] * (boards - 1) + [13.3 * slow]
    samples = 512 * boards
    end, done = simulate(rates, samples)
    ideal = samples / sum(rates)
    assert done == samples
    assert end <= 1.15 * ideal + 1.0


def test_unknown_speed_gets_little() -> None:
    assert chunk_size(1000, {"a": 0.0, "b": 5.0}, "a", 64) == 16
    assert chunk_size(8, {"a": 0.0, "b": 0.0}, "a", 64) == 4
    assert chunk_size(0, {}, "a", 64) == 1


def test_known_speed_gets_its_share() -> None:
    rates = {"fast": 10.0, "slow": 2.0}
    assert chunk_size(10_000, rates, "fast", 64) == 64
    assert chunk_size(60, rates, "fast", 64) == 25
    assert chunk_size(60, rates, "slow", 64) == 5
    assert chunk_size(3, rates, "fast", 64) == 10


def test_speed_is_learned_from_large_chunks() -> None:
    pace = Pace()
    pace.begin()
    pace.at(1, 100.0)
    assert pace.rate == 0.0
    pace.at(5, 100.4)
    assert pace.rate == pytest.approx(10.0)
    pace.at(30, 100.5)
    assert pace.rate == pytest.approx(10.0)
    pace.add(64, 3.2)
    assert pace.rate == pytest.approx(15.0)
    pace.add(1, 1.0)
    assert pace.rate > 14.5


def test_next_chunk_is_taken_as_late_as_sending_allows() -> None:
    assert not time_to_send(60, 13.3, 0.1)
    assert time_to_send(15, 13.3, 0.1)
    assert time_to_send(60, 13.3, 4.0)
    assert time_to_send(2, 0.03, 0.1)
    assert not time_to_send(3, 0.03, 0.1)
    assert not time_to_send(1, 0.0, 9.0)
