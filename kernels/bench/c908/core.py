"""The scoreboard: an in-order core that issues two instructions a cycle.

A block is replayed until it repeats, as if it were a loop; stalls between different blocks are not
seen. Vector operations are chained register by register, loads and stores share one unit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from .decode import Instruction, Register, decode

WIDTH = 2
_REPEATS, _WARM_UP = 12, 3


@dataclass(frozen=True)
class BlockCost:
    """One execution of a block, in the model's cycles; `fma` in register operations."""

    instructions: int
    cycles: float
    valu: float
    fma: float
    lsu: float


class Core:
    """State of the issue logic and units while instructions pass."""

    def __init__(self) -> None:
        self.ready: dict[Register, float] = defaultdict(float)
        self.now = 0
        self._slots = 0
        self._valu_free = 0.0
        self._lsu_free = 0.0
        self._fpu_free = 0.0

    def issue(self, d: Instruction) -> None:
        """Advances time to the issue of `d` and books its unit and results."""
        start = self._take_slot(self._earliest(d))
        if d.unit == "valu":
            self._valu_free = max(self._valu_free, start) + d.busy
            per_register = d.busy / d.groups
            for i, r in enumerate(d.writes):
                self.ready[r] = start + d.latency + per_register * i
        elif d.unit in ("vload", "vstore"):
            self._lsu_free = max(self._lsu_free, start) + d.busy
            for i, r in enumerate(d.writes):
                self.ready[r] = start + d.latency + d.busy / d.groups * (i + 1) - 1
        else:
            if d.unit in ("load", "store"):
                self._lsu_free = max(self._lsu_free, start) + 1
            elif d.unit == "float":
                self._fpu_free = start + 1
            for r in d.writes:
                self.ready[r] = start + d.latency
        if d.unit == "branch":
            self._slots = WIDTH  # a taken branch ends the issue group

    def _earliest(self, d: Instruction) -> float:
        t = max([float(self.now), *(self.ready[r] for r in d.reads if r != ("x", 0))])
        if d.unit == "valu":
            # register i of an operand is needed i steps after the first
            per_register = d.busy / d.groups
            operands = (
                self.ready["v", r] - per_register * (i % d.groups)
                for i, r in enumerate(d.vector_reads)
            )
            return max([t, self._valu_free, *operands])
        if d.unit in ("vload", "vstore"):
            return max([t, self._lsu_free, *(self.ready["v", r] for r in d.vector_reads)])
        if d.unit in ("load", "store"):
            return max(t, self._lsu_free)
        return max(t, self._fpu_free) if d.unit == "float" else t

    def _take_slot(self, earliest: float) -> float:
        cycle = math.ceil(earliest - 1e-4)
        if cycle > self.now:
            self.now, self._slots = cycle, 0
        if self._slots >= WIDTH:
            self.now, self._slots = self.now + 1, 0
        self._slots += 1
        return max(earliest, float(self.now))


def block_cost(words: tuple[int, ...], vtype: int) -> BlockCost:
    """Cost of one execution of a block entered with `vtype`."""
    decoded: list[Instruction] = []
    groups = vtype
    for w in words:
        decoded.append(decode(w, groups))
        if w & 0x707F == 0x7057 and w >> 30 != 2:  # vsetvli, vsetivli
            groups = (w >> 20) & (0x3FF if w >> 30 == 3 else 0x7FF)
    core = Core()
    marks: list[int] = []
    for _ in range(_REPEATS):
        for d in decoded:
            core.issue(d)
        marks.append(core.now)
    cycles = (marks[-1] - marks[_WARM_UP]) / (_REPEATS - _WARM_UP - 1)
    lsu = sum(
        d.busy if d.unit in ("vload", "vstore") else 1.0
        for d in decoded
        if d.unit in ("vload", "vstore", "load", "store")
    )
    return BlockCost(
        len(words),
        cycles,
        sum(d.busy for d in decoded if d.unit == "valu"),
        sum(d.groups for d in decoded if d.fma),
        lsu,
    )
