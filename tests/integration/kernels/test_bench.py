"""The bench: its limits hold, its bundle runs, and what comes back from a board is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parents[3] / "kernels" / "bench" / "k230_bench.py"
MACS = 300_774_272


def bench(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does."""
    return subprocess.run(
        [sys.executable, BENCH, *words], capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture(scope="module")
def folder(riscv: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the builds are kept between the tests."""
    assert riscv
    return tmp_path_factory.mktemp("bench")


def test_limits_hold_for_mobilenet_v2(folder: Path) -> None:
    figures = folder / "figures.json"
    done = bench("--build", folder, "--json", figures)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing here was measured on hardware" in done.stdout
    found = json.loads(figures.read_text())
    assert found["origin"] == "modelled"
    assert len(found["gates"]) == 7
    assert all(gate["kept"] for gate in found["gates"])
    layers = found["layers"]
    assert sum(layer["macs"] for layer in layers) == MACS
    kinds = [layer["kind"] for layer in layers]
    assert (kinds.count("conv"), kinds.count("add"), kinds.count("linear")) == (52, 10, 1)
    # no layer is faster than the multipliers allow, and each did its work: the first product of
    # a sum is no fused one, and depthwise layers skip what is outside the image
    for layer in layers:
        assert layer["cycles"] >= layer["macs"] / 4
        assert layer["fma"] * 4 >= layer["macs"] * 0.7


def test_bundle_runs_and_is_judged(folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    done = bench("--build", folder, "--on-board", bundle)
    assert done.returncode == 0, done.stderr
    names = {file.name for file in bundle.iterdir()}
    assert names == {"k230_bench", "run.sh", "run.msh", "expected.txt", "README.txt"}
    # in place of a board: the emulator with other vectors, one repeat
    output = bundle / "output.txt"
    lines = ["some console noise"]
    for form in ("fused", "separate"):
        ran = subprocess.run(
            ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,elen=64,vext_spec=v1.0",
             bundle / "k230_bench", "--clamp", form],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines.append(ran.stdout)
    output.write_text("\n".join(lines))
    done = bench("--from-board", output)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VLEN 256" in done.stdout
    assert done.stdout.count("whole graph") == 2

    wrong = output.read_text().splitlines()
    at = next(i for i, line in enumerate(wrong) if line.startswith("op 3 "))
    words = wrong[at].split()
    words[-2] = "1.0e+00"
    wrong[at] = " ".join(words)
    output.write_text("\n".join(wrong))
    done = bench("--from-board", output)
    assert done.returncode == 1
    assert "WRONG features.2.expand" in done.stdout

    output.write_text("\n".join(wrong[: at + 1]))  # the console was cut off
    done = bench("--from-board", output)
    assert done.returncode == 1
    assert "no expected run has these layers" in done.stdout
    output.write_text("nothing of ours")
    done = bench("--from-board", output)
    assert done.returncode == 2
    assert "its first line is missing" in done.stderr


def test_a_core_without_vectors_runs_the_scalar_kernels(folder: Path) -> None:
    program = folder / "riscv64" / "k230_bench"
    if not program.exists():
        assert bench("--build", folder).returncode == 0
    command = ["qemu-riscv64", "-cpu", "rv64,v=false", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("k230_bench 1 isa=scalar vlen=0")
    asked = subprocess.run([*command, "--isa", "rvv"], capture_output=True, text=True, check=False)
    assert asked.returncode == 2
    assert "no vector unit" in asked.stderr
