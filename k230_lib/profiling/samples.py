"""From the blocks of a trace to one matrix: executions by events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .etdump import EtDump, Run

EXECUTE = "Method::execute"
OPERATOR_CALL = "OPERATOR_CALL"
DELEGATE_CALL = "DELEGATE_CALL"
CALLS = (OPERATOR_CALL, DELEGATE_CALL)
FRAMEWORK_EVENTS = frozenset({EXECUTE, "Method::init", "Program::load_method"})
NATIVE_CALL = "native_call_"


@dataclass(frozen=True)
class Clock:
    """The runtime's clock, whose ticks the trace holds.

    ``hz`` is ticks per second: 1e9 where ExecuTorch's platform layer counts nanoseconds.
    """

    hz: float = 1e9

    def __post_init__(self) -> None:
        if not self.hz > 0:
            raise InputError(
                f"the clock's rate is {self.hz:g} ticks per second, expected more than 0.",
                hint="give the rate of the runner's clock, 1e9 for nanoseconds.",
            )

    def milliseconds(self, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Durations in ms."""
        return ticks.astype(np.float64) / (self.hz / 1000)

    def __str__(self) -> str:
        return "1 ns per tick" if self.hz == 1e9 else f"{self.hz:g} ticks per second"


@dataclass(frozen=True)
class EventKey:
    """What makes an event the same in every execution.

    ``instruction`` is None for events that belong to none, ``delegate`` None for events outside
    of delegates.
    """

    name: str
    instruction: int | None
    delegate: str | None


@dataclass(frozen=True, eq=False)
class Samples:
    """Times of all executions that took the same path through the model.

    ``ms[e, k]`` is the time of event ``keys[k]`` in execution ``e``, summed over its ``calls[k]``
    calls; ``start_ms`` is when it first started, on the clock of the trace. ``setup_ms`` holds
    events outside of executions (loading). ``other_paths`` counts executions left out because
    they ran other events.
    """

    keys: tuple[EventKey, ...]
    calls: npt.NDArray[np.int64]
    ms: npt.NDArray[np.float64]
    start_ms: npt.NDArray[np.float64]
    setup_ms: Mapping[str, float]
    other_paths: int

    @property
    def executions(self) -> int:
        """How many executions the figures are from."""
        return int(self.ms.shape[0])

    def column(self, name: str) -> npt.NDArray[np.float64] | None:
        """Times of the framework event ``name`` per execution, None when it was not traced."""
        for index, key in enumerate(self.keys):
            if key.name == name:
                return self.ms[:, index]
        return None


def collect(dump: EtDump, clock: Clock, *, skip: int = 0) -> Samples:
    """Gather the executions of a trace.

    Args:
        dump: the trace.
        clock: the clock that its ticks are of.
        skip: executions at the beginning to leave out (warm-up that was traced too).

    Raises:
        InputError: the trace holds no whole execution, or ``skip`` leaves none.
    """
    setup: dict[str, float] = {}
    paths: list[tuple[tuple[EventKey, ...], npt.NDArray[np.int64]]] = []
    path_of: list[int] = []
    runs: list[Run] = []
    for run in dump.runs:
        names = [dump.texts[index] for index in np.unique(run.name)]
        if EXECUTE not in names:
            for name, ms in zip(run.name, clock.milliseconds(run.ticks), strict=True):
                setup[dump.texts[name]] = setup.get(dump.texts[name], 0.0) + float(ms)
            continue
        runs.append(run)
        path_of.append(_path_number(dump, run, runs, path_of, paths))
    if len(runs) <= skip:
        raise InputError(
            f"{dump.path}: {len(runs)} whole executions in the trace, {skip} of them to be left "
            "out as warm-up; expected at least one to remain.",
            hint="trace more executions, and let the runner end by itself.",
        )
    runs, path_of = runs[skip:], path_of[skip:]
    chosen = Counter(path_of).most_common(1)[0][0]
    keys, inverse = paths[chosen]
    same = [run for run, path in zip(runs, path_of, strict=True) if path == chosen]
    calls = np.bincount(inverse, minlength=len(keys))
    ms = np.empty((len(same), len(keys)))
    start = np.empty_like(ms)
    for row, run in enumerate(same):
        ms[row] = np.bincount(inverse, weights=clock.milliseconds(run.ticks), minlength=len(keys))
        # Written backwards, so that the first call of each event remains.
        start[row, inverse[::-1]] = clock.milliseconds(run.start.astype(np.int64))[::-1]
    return Samples(keys, calls, ms, start, setup, len(runs) - len(same))


def _path_number(
    dump: EtDump,
    run: Run,
    runs: list[Run],
    path_of: list[int],
    paths: list[tuple[tuple[EventKey, ...], npt.NDArray[np.int64]]],
) -> int:
    """Number of the path that ``run`` took, added to ``paths`` when it is a new one."""
    if len(runs) > 1 and _same_events(run, runs[-2]):
        return path_of[-1]
    keys = [
        EventKey(
            name=dump.texts[name],
            instruction=int(instruction) if instruction >= 0 else None,
            delegate=_delegate(int(number), dump.texts[text]),
        )
        for name, instruction, number, text in zip(
            run.name, run.instruction, run.delegate_int, run.delegate_text, strict=True
        )
    ]
    distinct = tuple(dict.fromkeys(keys))
    index = {key: position for position, key in enumerate(distinct)}
    inverse = np.array([index[key] for key in keys], dtype=np.int64)
    for number, (known, known_inverse) in enumerate(paths):
        if known == distinct and np.array_equal(known_inverse, inverse):
            return number
    paths.append((distinct, inverse))
    return len(paths) - 1


def _same_events(one: Run, other: Run) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("name", "instruction", "delegate_int", "delegate_text")
    )


def _delegate(number: int, text: str) -> str | None:
    if text:
        return text
    return str(number) if number >= 0 else None
