"""What a board is asked to do in a run, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..board.power import PowerCommand
from ..board.shell import BoardShell
from .run import Golden, Run


@dataclass(frozen=True)
class Limits:
    """Times in seconds and numbers at which a board's work is judged.

    Attributes:
        sample: longest silence while samples are computed, loading the model included. Once the
            board's speed is known, twenty times its time per sample is enough, at least
            ``sample_least``.
        sample_least: see ``sample``.
        reboot: for a restart of the board, until ``/sharefs`` is there.
        fruitless: chunks in a row that brought nothing, before the board is given up.
        recoveries: restarts of the board, before it is given up.
        reserve: bytes that stay free on ``/sharefs``.
    """

    sample: float = 300.0
    sample_least: float = 20.0
    reboot: float = 120.0
    fruitless: int = 3
    recoveries: int = 5
    reserve: int = 8 << 20

    def silence(self, rate: float, repeats: int) -> float:
        """The longest silence allowed at so many samples per second."""
        if rate <= 0:
            return self.sample
        return min(self.sample, max(self.sample_least, 20.0 / rate * max(1, repeats)))


@dataclass(frozen=True)
class BoardJob:
    """One board's part of a run.

    Attributes:
        board: inventory name.
        shell: its Linux.
        console: device path or pyserial URL of its RT-Smart console.
        runner: path of the runner on the board.
        golden: sample with known logits, computed first.
        power: command that cuts the board's power, if the user has one.
        upstream: the runner is upstream's ``executor_runner``, one process per image.
        end_with_parent: end this process when the one that started it has ended, so that a killed
            ``ansible-playbook`` leaves no worker that holds the console.
    """

    board: str
    shell: BoardShell
    console: str
    run: Run
    runner: str
    golden: Golden | None = None
    limits: Limits = field(default_factory=Limits)
    power: PowerCommand | None = None
    baudrate: int = 115200
    upstream: bool = False
    end_with_parent: bool = False


@dataclass(frozen=True)
class BoardOutcome:
    """What a board did in one session.

    Attributes:
        computed: samples that got their result here.
        checked: samples computed here to compare with another board's result.
        failed: failures entered for samples.
        seconds: from the first to the last moment of the session.
        rate: samples per second while computing.
        bytes_sent: to the board, model included.
        golden_difference: largest difference of the golden sample's logits.
        recoveries: how often the board had to be helped.
        left: samples of the whole run without an outcome at the end.
        quarantined: samples given up in the whole run.
    """

    board: str
    computed: int
    checked: int
    failed: int
    seconds: float
    rate: float
    bytes_sent: int
    golden_difference: float | None
    recoveries: int
    left: int
    quarantined: int
