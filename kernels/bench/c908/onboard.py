"""From model to measurement: a bundle to run on a board, and what to make of its output."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .table import FMA_PER_CYCLE, Layer, parse_layers

REPEATS = 10
TOLERANCE = 1e-4
"""Sums may differ this much, relative: the order inside vector reductions is not defined."""

_FORMS = ("fused", "separate")
_HEADER = re.compile(r"k230_bench 1 isa=(\w+) vlen=(\d+) repeats=(\d+)")
_README = """\
k230_bench: MobileNetV2's layers on this board

Linux on the core with vectors:   sh run.sh > output.txt
RT-Smart: copy k230_bench to the board's storage, start each line of run.msh in msh, and keep what
the console prints.

Then, where this bundle was made:  k230_bench.py --from-board output.txt
It compares the results with expected.txt and prints the measured table.
"""


@dataclass(frozen=True)
class Measured:
    """One run of the bench on a board."""

    isa: str
    vlen: int
    repeats: int
    layers: tuple[Layer, ...]

    @property
    def ms(self) -> float:
        """Sum of the layers' best times."""
        return sum(layer.nanoseconds for layer in self.layers) / 1e6


def write_bundle(folder: Path, program: Path, expected: Mapping[str, str]) -> list[Path]:
    """Writes program, scripts and expected outputs (by form of the clamp); returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, folder / "k230_bench")
    commands = [f"--clamp {form} --repeats {REPEATS}" for form in _FORMS]
    lines = "".join(f'"$here"/k230_bench {words}\n' for words in commands)
    (folder / "run.sh").write_text(f'#!/bin/sh\nset -e\nhere=$(dirname "$0")\n{lines}')
    (folder / "run.sh").chmod(0o755)
    (folder / "run.msh").write_text("".join(f"./k230_bench {words}\n" for words in commands))
    (folder / "expected.txt").write_text("".join(expected[form] for form in _FORMS))
    (folder / "README.txt").write_text(_README)
    return sorted(folder.iterdir())


def parse_runs(text: str) -> list[Measured]:
    """Every run of k230_bench in a text, as a console or a file gave it.

    Raises:
        ValueError: there is none, or one is incomplete.
    """
    starts = list(_HEADER.finditer(text))
    if not starts:
        raise ValueError("no output of k230_bench: its first line is missing")
    runs = []
    for i, head in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        layers = parse_layers(text[head.end() : end])
        if [layer.index for layer in layers] != list(range(len(layers))):
            raise ValueError(f"run {i + 1}: layers are missing or out of order")
        runs.append(Measured(head[1], int(head[2]), int(head[3]), tuple(layers)))
    return runs


def disagreements(run: Measured, expected: Sequence[Measured]) -> list[str]:
    """Where the results of a run are not those of the expected run of the same layers."""
    names = [layer.name for layer in run.layers]
    same = [e for e in expected if [layer.name for layer in e.layers] == names]
    if not same:
        return ["no expected run has these layers"]
    wrong = []
    for got, want in zip(run.layers, same[0].layers, strict=True):
        scale = max(abs(want.total), abs(want.largest) * math.sqrt(want.elements))
        close = math.isclose(got.largest, want.largest, rel_tol=TOLERANCE)
        if not (abs(got.total - want.total) <= TOLERANCE * scale and close):
            wrong.append(f"{got.name}: sum {got.total:g}, expected {want.total:g}")
    return wrong


def format_measured(run: Measured) -> str:
    """The table of a run. The caller says where it ran."""
    lines = [
        f"kernels {run.isa}, VLEN {run.vlen}, best of {run.repeats}",
        f"{'layer':24s} {'ms':>9s} {'GMAC/s':>8s} {'of bound':>8s}",
    ]
    macs = 0
    for layer in run.layers:
        seconds = max(layer.nanoseconds, 1) / 1e9
        rate = f"{layer.macs / seconds / 1e9:8.2f}" if layer.macs else f"{'':8s}"
        bound = layer.macs / FMA_PER_CYCLE / 1.6e9
        share = f"{bound / seconds:8.0%}" if layer.macs else ""
        lines.append(f"{layer.name:24s} {seconds * 1e3:9.3f} {rate} {share}")
        macs += layer.macs
    lines.append(f"{'whole graph':24s} {run.ms:9.3f} {macs / run.ms / 1e6:8.2f}")
    return "\n".join(lines)
