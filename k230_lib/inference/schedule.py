"""How much work a board gets at a time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

FIRST_PART = 4
"""A board of unknown speed gets so small a part of a full chunk."""

_LEAST_SECONDS = 1.0


def chunk_size(open_samples: int, rates: Mapping[str, float], board: str, maximum: int) -> int:
    """Samples for the board's next chunk: half its fair share of what is open.

    The shares shrink towards the end, so all boards end at about the same time; they do not
    shrink below a second of work, which would cost more in starting than it evens out.

    Args:
        open_samples: samples that no board has.
        rates: samples per second of the working boards, 0 where unknown.
        board: whose chunk it is.
        maximum: samples of a full chunk.
    """
    mine = rates.get(board, 0.0)
    if mine <= 0:
        even = math.ceil(open_samples / max(1, len(rates)))
        return max(1, min(math.ceil(maximum / FIRST_PART), even))
    known = [rate for rate in rates.values() if rate > 0]
    guess = sum(known) / len(known)
    total = sum(rate if rate > 0 else guess for rate in rates.values())
    fair = math.ceil(open_samples * mine / total / 2)
    return max(1, min(maximum, max(fair, math.ceil(mine * _LEAST_SECONDS))))


_FULL_WEIGHT = 32
_LEAD_SECONDS = 1.5


def time_to_send(left: int, rate: float, send_seconds: float) -> bool:
    """Should the next chunk be leased and sent now?

    As late as the sending allows: what a board has leased early, no faster board can take.

    Args:
        left: samples of the present chunk that are not computed yet.
        rate: samples per second; 0 while unknown.
        send_seconds: how long sending a full chunk takes.
    """
    if rate <= 0:
        return False
    # Two samples ahead at least, for there may be no report in between.
    return left / rate <= max(_LEAD_SECONDS + 2 * send_seconds, 2.0 / rate)


class Pace:
    """A board's speed in samples per second, recent and large chunks counting more."""

    def __init__(self) -> None:
        self.rate = 0.0
        self._first: tuple[int, float] | None = None

    def begin(self) -> None:
        """A chunk begins."""
        self._first = None

    def at(self, done: int, now: float) -> None:
        """So many samples of the chunk are done at this moment: a first guess of the speed.

        Taken between two reports, since loading and starting are not the samples' time.
        """
        if self._first is None:
            self._first = (done, now)
        elif self.rate <= 0 and done > self._first[0] and now > self._first[1]:
            self.rate = (done - self._first[0]) / (now - self._first[1])

    def add(self, samples: int, seconds: float) -> None:
        """A chunk has been computed."""
        if samples > 0 and seconds > 0:
            weight = 0.5 * min(1.0, samples / _FULL_WEIGHT) if self.rate > 0 else 1.0
            self.rate += weight * (samples / seconds - self.rate)
