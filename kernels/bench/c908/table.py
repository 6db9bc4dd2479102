"""The table of the bench: modelled cost of every layer, totals, and the limits they must keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .profile import Cost

FMA_PER_CYCLE = 4.0
"""fp32 multiply-adds of a C908 with both 64-bit units busy."""


@dataclass(frozen=True)
class Layer:
    """What the bench program says about one call of the graph."""

    index: int
    kind: str
    name: str
    macs: int
    elements: int
    nanoseconds: int
    total: float
    largest: float

    @property
    def is_product(self) -> bool:
        """Convolution or linear, for which there is a bound."""
        return self.macs > 0


@dataclass(frozen=True)
class Row:
    """A layer and its modelled cost."""

    layer: Layer
    cost: Cost


@dataclass(frozen=True)
class Gate:
    """A limit that the modelled figures must keep."""

    what: str
    found: float
    limit: float
    unit: str

    @property
    def kept(self) -> bool:
        """Whether the figure is within the limit."""
        return self.found <= self.limit


def parse_layers(text: str) -> list[Layer]:
    """The `op` lines of k230_bench's output, in order.

    Raises:
        ValueError: the output holds none, or one that is not as expected.
    """
    layers = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] != "op":
            continue
        if len(words) != 9:
            raise ValueError(f"not a line of k230_bench: {line!r}")
        index, kind, name, macs, elements, ns, total, largest = words[1:]
        layers.append(
            Layer(
                int(index), kind, name, int(macs), int(elements), int(ns), float(total),
                float(largest),
            )
        )  # fmt: skip
    if not layers:
        raise ValueError("no lines of k230_bench in this text")
    return layers


def rows_of(layers: Sequence[Layer], phases: Sequence[Cost]) -> list[Row]:
    """Pairs layers with phases: phase 0 is the start, then layer and rest take turns."""
    return [Row(layer, phases[1 + 2 * i]) for i, layer in enumerate(layers)]


def total(rows: Iterable[Row]) -> Cost:
    """The sum of the rows' costs."""
    return sum((row.cost for row in rows), Cost())


def products(rows: Iterable[Row]) -> list[Row]:
    """Convolutions and the linear layer."""
    return [row for row in rows if row.layer.is_product]


def bound_cycles(rows: Iterable[Row]) -> float:
    """Cycles if every one of them did four useful multiply-adds."""
    return sum(row.layer.macs for row in rows) / FMA_PER_CYCLE


def fused_gates(rows: Sequence[Row]) -> list[Gate]:
    """The limits of a network whose clamps are part of the convolutions."""
    dense, whole = total(products(rows)), total(rows)
    return [
        Gate("convolution + linear, instructions", dense.instructions / 1e6, 80, "M"),
        Gate("convolution + linear, modelled cycles", dense.cycles / 1e6, 105, "M"),
        Gate("convolution + linear, VALU register operations", dense.valu / 1e6, 85, "M"),
        Gate("whole graph, modelled cycles", whole.cycles / 1e6, 112, "M"),
        Gate("whole graph, lines missing in L1", whole.l1 / 1e6, 2.0, "M"),
        Gate("whole graph, lines missing in L2", whole.l2 / 1e6, 1.25, "M"),
    ]


def separate_gates(rows: Sequence[Row]) -> list[Gate]:
    """The limit of a network whose clamps are operators of their own."""
    cycles = total(rows).cycles / 1e6
    return [Gate("whole graph with separate hardtanh, modelled cycles", cycles, 120, "M")]


_HEAD = (
    f"{'layer':24s} {'MMAC':>7s} {'Minsn':>7s} {'Mcycles':>8s} {'ms':>7s} {'VALU':>5s} {'LSU':>5s} "
    f"{'L1 K':>7s} {'L2 K':>7s} {'of bound':>8s}"
)


def _line(name: str, macs: float, cost: Cost) -> str:
    bound = macs / FMA_PER_CYCLE
    share = f"{bound / cost.cycles:8.0%}" if bound and cost.cycles else f"{'':8s}"
    cycles = max(cost.cycles, 1.0)
    return (
        f"{name:24s} {macs / 1e6:7.2f} {cost.instructions / 1e6:7.2f} {cost.cycles / 1e6:8.2f} "
        f"{cost.ms:7.2f} {cost.valu / cycles:5.0%} {cost.lsu / cycles:5.0%} {cost.l1 / 1e3:7.1f} "
        f"{cost.l2 / 1e3:7.1f} {share}"
    )


def format_table(rows: Sequence[Row]) -> str:
    """Modelled figures of every layer, by kind, and in total."""
    lines = ["modelled for a C908 at 1.6 GHz; nothing here was measured on hardware", _HEAD]
    lines += (_line(row.layer.name, row.layer.macs, row.cost) for row in rows)
    lines.append("-" * len(_HEAD))
    for kind in dict.fromkeys(row.layer.kind for row in rows):
        chosen = [row for row in rows if row.layer.kind == kind]
        lines.append(_line(f"all {kind}", sum(r.layer.macs for r in chosen), total(chosen)))
    dense = products(rows)
    macs = sum(row.layer.macs for row in dense)
    lines.append(_line("convolution + linear", macs, total(dense)))
    lines.append(_line("whole graph", macs, total(rows)))
    return "\n".join(lines)


def format_variants(variants: Mapping[str, Sequence[Row]]) -> str:
    """Totals of convolution and linear side by side, best last, and the limit."""
    lines = [
        f"{'convolution + linear':28s} {'Minsn':>9s} {'Mcycles':>9s} {'ms':>9s} "
        f"{'L1 M':>6s} {'L2 M':>6s}"
    ]
    for name, rows in variants.items():
        cost = total(products(rows))
        known = cost.l1 > 0
        lines.append(
            f"{name:28s} {cost.instructions / 1e6:9.1f} {cost.cycles / 1e6:9.1f} {cost.ms:9.1f} "
            + (f"{cost.l1 / 1e6:6.2f} {cost.l2 / 1e6:6.2f}" if known else f"{'-':>6s} {'-':>6s}")
        )
    limit = Cost(cycles=bound_cycles(next(iter(variants.values()))))
    lines.append(f"{'limit: 4 MAC a cycle':28s} {'':9s} {limit.cycles / 1e6:9.1f} {limit.ms:9.1f}")
    return "\n".join(lines)


def format_gates(gates: Sequence[Gate]) -> str:
    """One line per limit."""
    return "\n".join(
        f"{'ok  ' if gate.kept else 'OVER'} {gate.what}: {gate.found:.2f} {gate.unit} "
        f"(limit {gate.limit:g} {gate.unit})"
        for gate in gates
    )
