"""Reads what the QEMU plugin wrote and sums the model's costs per phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from .core import BlockCost, block_cost

CLOCK_HZ = 1.6e9


@dataclass(frozen=True)
class Cost:
    """Sums over executed blocks. `l1` and `l2` are missing 64-byte lines, loads and stores."""

    instructions: float = 0.0
    cycles: float = 0.0
    valu: float = 0.0
    fma: float = 0.0
    lsu: float = 0.0
    l1: float = 0.0
    l2: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Cost)))

    @property
    def ms(self) -> float:
        """Modelled milliseconds at the board's clock."""
        return self.cycles / CLOCK_HZ * 1e3


@dataclass(frozen=True)
class Block:
    """A translated block: where it is and what it holds."""

    pc: int
    symbol: str
    vtype: int
    words: tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """How often one block ran in one phase, and the lines it missed."""

    block: int
    count: int
    l1: int
    l2: int


@dataclass(frozen=True)
class Profile:
    """A whole run: phases in order, each a list of block executions."""

    phases: tuple[tuple[Run, ...], ...]
    blocks: dict[int, Block]

    def costs(self) -> list[Cost]:
        """One cost per phase."""
        price = _pricing(self.blocks)
        return [
            sum((_cost(run, price(run.block)) for run in phase), Cost()) for phase in self.phases
        ]

    def costs_by_symbol(self) -> dict[str, Cost]:
        """One cost per function over all phases."""
        price = _pricing(self.blocks)
        total: dict[str, Cost] = defaultdict(Cost)
        for phase in self.phases:
            for run in phase:
                total[self.blocks[run.block].symbol] += _cost(run, price(run.block))
        return dict(total)


def parse_profile(path: Path) -> Profile:
    """Reads a plugin profile.

    Raises:
        ValueError: the file has no blocks, as when the program died under the emulator.
    """
    phases: list[list[Run]] = []
    blocks: dict[int, Block] = {}
    for line in path.read_text().splitlines():
        kind, *rest = line.split()
        if kind == "phase":
            phases.append([])
        elif kind == "run":
            block, count, l1_loads, l1_stores, l2_loads, l2_stores = map(int, rest)
            phases[-1].append(Run(block, count, l1_loads + l1_stores, l2_loads + l2_stores))
        elif kind == "block":
            number, pc, vtype, symbol, *words = rest
            blocks[int(number)] = Block(
                int(pc, 16), symbol, int(vtype, 16), tuple(int(w, 16) for w in words)
            )
    if not blocks:
        raise ValueError(f"{path}: no blocks: the program did not end normally")
    return join_split_blocks(Profile(tuple(map(tuple, phases)), blocks))


_BRANCHES = {0x63, 0x67, 0x6F}


def _falls_through(words: tuple[int, ...]) -> bool:
    w = words[-1]
    if w & 3 == 3:
        return w & 0x7F not in _BRANCHES and w != 0x73  # ecall
    quadrant, f3 = w & 3, (w >> 13) & 7
    jumps = quadrant == 2 and f3 == 4 and (w >> 2) & 31 == 0
    return not (quadrant == 1 and f3 >= 5) and not jumps


def join_split_blocks(profile: Profile) -> Profile:
    """Puts together what the emulator cut: it ends blocks at page borders and at vset* as well.

    A block without a branch at its end is always followed by the block behind it, so its
    executions are taken from that one's.
    """
    blocks = dict(profile.blocks)
    joined: dict[tuple[int, int], int] = {}
    phases = []
    for phase in profile.phases:
        runs = {r.block: r for r in phase}
        starts = {blocks[number].pc: number for number in runs}
        for number in sorted(runs, key=lambda n: blocks[n].pc, reverse=True):
            first, run = blocks[number], runs[number]
            size = sum(4 if w & 3 == 3 else 2 for w in first.words)
            after = starts.get(first.pc + size)
            if not _falls_through(first.words) or after is None or after == number:
                continue
            rest = runs.get(after)
            if rest is None or rest.count < run.count:
                continue
            key = (number, after)
            if key not in joined:
                joined[key] = len(blocks)
                words = first.words + blocks[after].words
                blocks[joined[key]] = Block(first.pc, first.symbol, first.vtype, words)
            del runs[number]
            runs[joined[key]] = Run(joined[key], run.count, run.l1, run.l2)
            starts[first.pc] = joined[key]
            runs[after] = Run(after, rest.count - run.count, rest.l1, rest.l2)
        phases.append(tuple(runs.values()))
    return Profile(tuple(phases), blocks)


def _pricing(blocks: dict[int, Block]) -> Callable[[int], BlockCost]:
    known: dict[tuple[tuple[int, ...], int], BlockCost] = {}

    def price(number: int) -> BlockCost:
        key = (blocks[number].words, blocks[number].vtype)
        if key not in known:
            known[key] = block_cost(*key)
        return known[key]

    return price


def _cost(run: Run, block: BlockCost) -> Cost:
    n = run.count
    return Cost(
        block.instructions * n, block.cycles * n, block.valu * n, block.fma * n, block.lsu * n,
        run.l1, run.l2,
    )  # fmt: skip
