#!/usr/bin/env python3
"""What MobileNetV2's layers cost on a C908: modelled here, or measured on a board that you have.

k230_bench.py                        table of every layer and the limits; exit 1 if one is broken
k230_bench.py --variants             beside it: scalar loops, naive vector code, the limit
k230_bench.py --on-board DIR         writes a bundle to run on a board
k230_bench.py --from-board FILE      checks and prints what the bundle printed there
k230_bench.py --count PROGRAM ARG... instructions a riscv64 program retires, start to end
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from c908 import emulate, onboard, table
from c908.profile import parse_profile


def profiled(built: emulate.Built, folder: Path, *words: str, cache: bool) -> list[table.Row]:
    """Rows of one run of the bench under the emulator."""
    profile = folder / "profile.txt"
    text = emulate.run_profiled([built.program, *words], built.plugin, profile, cache=cache)
    return table.rows_of(table.parse_layers(text), parse_profile(profile).costs())


def show_table(folder: Path, *, variants: bool, as_json: Path | None) -> int:
    """Builds, runs, prints; 1 when a limit is broken."""
    built = emulate.build_all(folder)
    fused = profiled(built, folder, "--clamp", "fused", cache=True)
    separate = profiled(built, folder, "--clamp", "separate", cache=False)
    gates = [*table.fused_gates(fused), *table.separate_gates(separate)]
    print(table.format_table(fused))
    if variants:
        portable = profiled(built, folder, "--variant", "portable", cache=False)
        naive = profiled(built, folder, "--variant", "naive", cache=True)
        side = {
            "scalar, portable's shape": portable,
            "naive vectors over columns": naive,
            "these kernels": fused,
        }
        print(f"\n{table.format_variants(side)}")
    print(f"\n{table.format_gates(gates)}")
    if as_json is not None:
        figures = {
            "origin": "modelled",
            "layers": [{**asdict(row.layer), **asdict(row.cost)} for row in fused],
            "gates": [{**asdict(gate), "kept": gate.kept} for gate in gates],
        }
        as_json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(gate.kept for gate in gates) else 1


def make_bundle(target: Path, folder: Path, toolchain: Path) -> int:
    """Writes the bundle; expected outputs come from the emulator."""
    program = emulate.build_bench(folder / "bundle", toolchain)
    reference = program
    if toolchain != emulate.TOOLCHAIN:  # made for another system than the emulator runs
        reference = emulate.build_bench(folder / "riscv64")
    expected = {
        form: emulate.run_plain([reference, "--clamp", form]) for form in ("fused", "separate")
    }
    for file in onboard.write_bundle(target, program, expected):
        print(file)
    return 0


def read_back(file: Path, expected_file: Path) -> int:
    """Prints the tables of a board's output; 1 when results differ."""
    expected = onboard.parse_runs(expected_file.read_text())
    code = 0
    for run in onboard.parse_runs(file.read_text(errors="replace")):
        print(onboard.format_measured(run))
        wrong = onboard.disagreements(run, expected)
        for line in wrong:
            print(f"WRONG {line}")
        code = code or int(bool(wrong))
        print()
    return code


def count(program: Sequence[str], folder: Path) -> int:
    """Prints the program's retired instructions."""
    plugin = emulate.build_plugin(folder)
    profile = folder / "profile.txt"
    emulate.run_profiled(program, plugin, profile)
    phases = parse_profile(profile).costs()
    print(f"instructions {sum(phase.instructions for phase in phases):.0f}")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", action="store_true", help="compare with simpler kernels")
    parser.add_argument("--json", type=Path, help="also write the figures")
    parser.add_argument("--build", type=Path, help="folder for builds, kept (default: temporary)")
    parser.add_argument("--on-board", type=Path, metavar="DIR", help="write the bundle there")
    parser.add_argument("--toolchain", type=Path, default=emulate.TOOLCHAIN, help="of the bundle")
    parser.add_argument("--from-board", type=Path, metavar="FILE", help="output of the bundle")
    parser.add_argument("--expected", type=Path, help="default: expected.txt beside that FILE")
    parser.add_argument("--count", nargs=argparse.REMAINDER, metavar="PROGRAM")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.build or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if given.count:
                return count(given.count, folder)
            if given.on_board:
                return make_bundle(given.on_board, folder, given.toolchain)
            if given.from_board:
                expected = given.expected or given.from_board.with_name("expected.txt")
                return read_back(given.from_board, expected)
            return show_table(folder, variants=given.variants, as_json=given.json)
        except (emulate.ToolError, OSError, ValueError) as problem:
            print(f"k230_bench: {problem}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
