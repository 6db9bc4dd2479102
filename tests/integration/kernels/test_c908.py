"""The timing model against what was published about the K230's core."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "kernels" / "bench"))

from c908.core import BlockCost, block_cost
from c908.profile import Block, Profile, Run, join_split_blocks, parse_profile

E32 = 0b010_000  # vtype: 32-bit elements, lmul in the low bits
LMUL = {1: 0, 2: 1, 4: 2, 8: 3}
Assemble = Callable[[str], tuple[int, ...]]


@pytest.fixture
def assemble(tmp_path: Path) -> Assemble:
    """Instruction words of some assembly."""
    for name in ("clang-19", "llvm-objcopy-19"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed: apt-get install clang-19 llvm-19")

    def words(text: str) -> tuple[int, ...]:
        source, binary = tmp_path / "x.s", tmp_path / "x.bin"
        source.write_text(f".option norvc\n{text}\n")
        target = ["--target=riscv64", "-march=rv64gcv"]
        subprocess.run(["clang-19", *target, "-c", source, "-o", tmp_path / "x.o"], check=True)
        copy = ["llvm-objcopy-19", "-O", "binary", "-j", ".text", tmp_path / "x.o", binary]
        subprocess.run(copy, check=True)
        data = binary.read_bytes()
        return tuple(int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4))

    return words


def cost(assemble: Assemble, lmul: int, *lines: str) -> BlockCost:
    """Cost of lines with 32-bit elements and this LMUL."""
    return block_cost(assemble("\n".join(lines)), E32 | LMUL[lmul])


@pytest.mark.parametrize(("lmul", "published"), [(1, 1.87), (2, 2.63), (4, 3.0), (8, 3.2)])
def test_memcpy_comes_close_to_the_published_curve(
    assemble: Assemble, lmul: int, published: float
) -> None:
    """Bytes a cycle, in the first-level cache."""
    loop = cost(
        assemble, lmul, "1: vsetvli t0, a2, e32, m" + str(lmul) + ", ta, ma", "vle32.v v8, (a1)",
        "add a1, a1, t0", "sub a2, a2, t0", "vse32.v v8, (a0)", "add a0, a0, t0", "bnez a2, 1b",
    )  # fmt: skip
    assert 16 * lmul / loop.cycles == pytest.approx(published, rel=0.15)


@pytest.mark.parametrize("lmul", [1, 2, 4, 8])
def test_throughput_of_vector_arithmetic(assemble: Assemble, lmul: int) -> None:
    """Cycles of independent operations, as in the published table."""
    registers = range(0, 32 - lmul, lmul) if lmul < 8 else range(0, 24, 8)
    fma = [f"vfmacc.vf v{r}, fa0, v{32 - lmul}" for r in registers]
    per_fma = cost(assemble, lmul, *fma).cycles / len(fma)
    # one chain of m8 has to wait for nobody: all the shorter ones are many
    assert per_fma == pytest.approx(lmul, rel=0.05)
    if lmul < 8:
        masked = [f"vfmacc.vf v{r}, fa0, v{32 - lmul}, v0.t" for r in registers if r > 0]
        assert cost(assemble, lmul, *masked).cycles / len(masked) == pytest.approx(
            2 * lmul, rel=0.05
        )
        slides = [f"vfslide1up.vf v{r}, v{32 - lmul}, fa0" for r in registers]
        assert cost(assemble, lmul, *slides).cycles / len(slides) == pytest.approx(
            2 * lmul, rel=0.05
        )


def test_scalar_load_waits_behind_a_vector_load(assemble: Assemble) -> None:
    """Why the product's inner loop puts multiplications between them."""
    multiply = [f"vfmacc.vf v{r}, fa{r // 4}, v28" for r in (4, 8, 12, 16)]
    apart = cost(assemble, 4, "vle32.v v24, (a0)", *multiply[:2], "flw fa6, 0(a1)", *multiply[2:])
    behind = cost(assemble, 4, "vle32.v v24, (a0)", "flw fa6, 0(a1)", *multiply)
    assert apart.cycles == pytest.approx(16, abs=1)
    assert behind.cycles >= apart.cycles + 4


def test_a_dependent_chain_costs_latency(assemble: Assemble) -> None:
    chain = cost(assemble, 1, *["vfmacc.vf v8, fa0, v9"] * 4)
    assert chain.cycles == 4 * 5
    assert (chain.fma, chain.instructions) == (4, 4)


def test_blocks_cut_by_the_emulator_are_joined() -> None:
    """A block that falls through takes its successor's executions with it."""
    nop, jump = 0x13, 0xFF5FF06F
    blocks = {0: Block(0x1000, "f", 0, (nop, nop)), 1: Block(0x1008, "f", 0, (jump,))}
    runs = (Run(0, 10, 1, 0), Run(1, 12, 0, 2))
    joined = join_split_blocks(Profile((runs,), blocks))
    found = {(joined.blocks[r.block].words, r.count) for r in joined.phases[0]}
    assert found == {((nop, nop, jump), 10), ((jump,), 2)}
    assert sum(r.l2 for r in joined.phases[0]) == 2
    # a jump is followed by who knows what
    apart = {0: Block(0x1000, "f", 0, (jump,)), 1: Block(0x1004, "f", 0, (nop,))}
    assert len(join_split_blocks(Profile((runs,), apart)).phases[0]) == 2


def test_a_profile_cut_short_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "profile.txt"
    cut.write_text("phase 0\nrun 0 5 0 0 0 0\n")
    with pytest.raises(ValueError, match="did not end normally"):
        parse_profile(cut)
