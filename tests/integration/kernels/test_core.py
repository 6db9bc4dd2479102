"""The kernels by themselves: against float64 natively and under qemu, sanitised, and as code."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
RVV = sorted((KERNELS / "src" / "rvv").glob("*.cpp"))
Build = Callable[..., Path]
Ctest = Callable[..., str]


@pytest.fixture(scope="module")
def riscv_build(riscv: list[str], build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(KERNELS / "tests", tmp_path_factory.mktemp("riscv"), *riscv)


def test_native(build: Build, ctest: Ctest, tmp_path: Path) -> None:
    build(KERNELS / "tests", tmp_path)
    assert "100% tests passed" in ctest(tmp_path, "-L", "core", "-LE", "long")


def test_sanitised(build: Build, ctest: Ctest, tmp_path: Path) -> None:
    build(KERNELS / "tests", tmp_path, "-DK230_SANITIZE=ON")
    assert "100% tests passed" in ctest(tmp_path, "-L", "core")


def test_three_vector_lengths_and_none(riscv_build: Path, ctest: Ctest) -> None:
    out = ctest(riscv_build, "-L", "core", "-LE", "long", "--parallel", "2")
    assert "100% tests passed" in out
    for name in ("conv2d.vlen128", "special_values.vlen256", "dense.vlen512", "conv2d.no_vectors"):
        assert f"core.{name} ." in out


@pytest.mark.fault
def test_long_grids(riscv_build: Path, ctest: Ctest) -> None:
    assert "100% tests passed" in ctest(riscv_build, "-L", "long", "--parallel", "2")


@pytest.mark.parametrize("compiler", ["clang++-14", "clang++-15", "clang++-19"])
def test_both_spellings_of_the_intrinsics_compile(compiler: str, tmp_path: Path) -> None:
    """Up to clang 15 (and the board's gcc 12.0.1) without `__riscv_`, since then with it."""
    if shutil.which(compiler) is None or shutil.which("riscv64-linux-gnu-g++") is None:
        pytest.skip(f"{compiler} or g++-riscv64-linux-gnu is not installed")
    for source in RVV:
        done = subprocess.run(
            [compiler, "--target=riscv64-linux-gnu", "-march=rv64gcv", "-O2", "-std=c++17",
             "-Wall", "-Wextra", "-Werror", "-I", KERNELS / "include", "-c", source,
             "-o", tmp_path / "x.o"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]


@dataclass(frozen=True)
class Line:
    """One disassembled instruction."""

    address: int
    name: str
    operands: str


def disassemble(program: Path) -> dict[str, list[Line]]:
    """Instructions by function of a linked program: in a library branches have no targets yet."""
    objdump = shutil.which("llvm-objdump-19")
    if objdump is None:
        pytest.skip("llvm-objdump-19 is not installed: apt-get install llvm-19")
    text = subprocess.run(
        [objdump, "-d", "-C", "--no-show-raw-insn", "--mattr=+v", program],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    functions: dict[str, list[Line]] = {}
    lines: list[Line] = []
    for raw in text.splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(.*)>:", raw):
            lines = functions.setdefault(head[1], [])
        elif match := re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)", raw):
            lines.append(Line(int(match[1], 16), match[2], match[3].replace(" ", "")))
    return functions


def innermost_loops(lines: list[Line]) -> Iterator[list[Line]]:
    """Instructions between a backward branch and its target, where no other such branch is."""
    spans = []
    for line in lines:
        target = re.search(r"0x([0-9a-f]+)<", line.operands)
        if line.name.startswith(("b", "j")) and target and int(target[1], 16) <= line.address:
            spans.append((int(target[1], 16), line.address))
    for start, end in spans:
        if not any((s, e) != (start, end) and start <= s and e <= end for s, e in spans):
            yield [line for line in lines if start <= line.address <= end]


def strides_are_8(loop: list[Line], function: list[Line]) -> bool:
    """Whether every strided access takes its stride from a register that is only ever 8."""
    registers = {line.operands.split(",")[-1] for line in loop if line.name.startswith("vlse")}
    for register in registers:
        writes = [
            line for line in function
            if line.operands.split(",")[0] == register and not line.name.startswith(("s", "b"))
        ]  # fmt: skip
        if not any((w.name, w.operands) == ("li", f"{register},0x8") for w in writes):
            return False
    return True


def test_hot_loops_hold_nothing_slow(riscv_build: Path) -> None:
    """No gather, masked multiply-add, far stride or spill where the time goes."""
    functions = disassemble(riscv_build / "k230_core_test")
    hot = {
        name: [loop for loop in innermost_loops(lines)
               if sum(line.name.startswith("vfmacc") for line in loop) >= 4]
        for name, lines in functions.items() if "k230::rvv::" in name
    }  # fmt: skip
    short = re.compile(r"(\w+)(<\d+>)?\((?!anonymous)")
    counts: Counter[str] = Counter()
    for name, loops in hot.items():
        counts[short.search(name)[1]] += len(loops)
    # six heights of tiles in three widths; both strides, edges and clamps of the depthwise kernel
    assert counts["strip"] >= 10, counts
    assert counts["depthwise3x3"] >= 10, counts
    for name, loops in hot.items():
        for loop in loops:
            text = "\n".join(f"{line.name} {line.operands}" for line in loop)
            assert "vrgather" not in text, name
            assert not re.search(r"vfn?m(acc|sac|add|sub)\S* .*v0\.t", text), name
            assert not re.search(r"\b(vs[1248]r|vl[1248]re\d+)\.v", text), f"{name} spills:\n{text}"
            assert not re.search(r"\bv[ls]s?[ou]x", text), f"{name} has indexed accesses"
            assert strides_are_8(loop, functions[name]), f"{name}:\n{text}"
