"""What a board tells while it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoardProgress:
    """One report.

    Attributes:
        board: whose.
        phase: ``start``, ``golden``, ``compute``, ``check``, ``wait``, ``recover`` or
            ``done``.
        done: samples with an outcome in the whole run, this board's running ones included.
        total: samples of the run.
        mine: samples this board has computed in this session.
        rate: its samples per second.
        eta_s: seconds until the run's end at the present speed of all boards; None: unknown.
        top1: share of this board's samples whose first class was right; None: none yet.
        text: what happened, for phases that need words.
    """

    board: str
    phase: str
    done: int
    total: int
    mine: int = 0
    rate: float = 0.0
    eta_s: float | None = None
    top1: float | None = None
    text: str = ""

    def line(self) -> str:
        """For people: one short line without the board's name."""
        words = [f"{self.phase}: {self.done}/{self.total}"]
        if self.mine:
            words.append(f"{self.mine} here")
        if self.rate > 0:
            words.append(f"{self.rate:.2f}/s")
        if self.eta_s is not None:
            words.append(f"{_duration(self.eta_s)} left")
        if self.top1 is not None:
            words.append(f"top-1 {100 * self.top1:.1f} %")
        if self.text:
            words.append(self.text)
        return ", ".join(words)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
