"""Builds of the kernels, once in a session, and a caller of ExecuTorch operators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
ROOT = KERNELS.parent
TOOLCHAIN = KERNELS / "toolchains" / "riscv64_linux_gnu.cmake"


def tool(name: str) -> str:
    """A program of the virtual environment (cmake, ninja), else of the system."""
    return shutil.which(name, path=f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}") or name


def build_project(source: Path, folder: Path, *options: str) -> Path:
    """Configures and builds; the build's own output is the failure message."""
    ninja = shutil.which("ninja", path=f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    generator = [f"-DCMAKE_MAKE_PROGRAM={ninja}", "-G", "Ninja"] if ninja else []
    configure = [tool("cmake"), "-S", str(source), "-B", str(folder), *generator, *options]
    for command in (configure, [tool("cmake"), "--build", str(folder), "--parallel", "2"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr}"
    return folder


def run_ctest(folder: Path, *options: str) -> str:
    """Runs the tests of a build folder; what failed is the failure message."""
    command = [tool("ctest"), "--test-dir", str(folder), "--output-on-failure", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def build() -> Callable[..., Path]:
    """build(source, folder, *options): a CMake project, configured and built."""
    return build_project


@pytest.fixture(scope="session")
def ctest() -> Callable[..., str]:
    """ctest(folder, *options): runs tests of a build folder, returns what they printed."""
    return run_ctest


@pytest.fixture(scope="session")
def riscv() -> list[str]:
    """CMake options of a riscv64 build with vector intrinsics."""
    missing = [
        name
        for name in ("riscv64-linux-gnu-g++", "qemu-riscv64", "clang-19")
        if shutil.which(name) is None
    ]
    if missing:
        pytest.skip(
            f"{', '.join(missing)} not installed: "
            "apt-get install clang-19 llvm-19 g++-riscv64-linux-gnu qemu-user"
        )
    return [f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}", "-DK230_RISCV_COMPILER=clang"]


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The pip package of ExecuTorch, which holds the C++ SDK for this machine."""
    spec = find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the pip package executorch is not installed")
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="session")
def wheel_build(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runner and operator tests with our kernels, against the wheel."""
    return build_project(
        KERNELS,
        tmp_path_factory.mktemp("wheel"),
        f"-DCMAKE_PREFIX_PATH={wheel}",
        "-DK230_KERNEL_LIBRARIES=k230_kernels_executorch",
        "-DK230_BUILD_TESTS=ON",
    )


@pytest.fixture(scope="session")
def prefix_build(riscv: list[str], wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner with our kernels for riscv64, and the operator tests."""
    prefix = os.environ.get("K230_EXECUTORCH_PREFIX")
    if not prefix:
        pytest.skip("no ExecuTorch for riscv64: K230_EXECUTORCH_PREFIX names an installed one")
    return build_project(
        KERNELS, tmp_path_factory.mktemp("prefix"), *riscv, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DK230_ETDUMP_HEADERS={wheel / 'include'}", "-DK230_STATIC=ON",
        "-DK230_KERNEL_LIBRARIES=k230_kernels_executorch", "-DK230_BUILD_TESTS=ON",
    )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a call gave: ExecuTorch's error code, who served it, and the output if it succeeded."""

    error: int
    kernel: str
    value: np.ndarray[Any, np.dtype[np.float32]] | None


@dataclass
class Calls:
    """Operator calls, collected and made by one run of ``op_cases``.

    Arguments are torch tensors (float32 or others, contiguous or channels last), numbers, booleans,
    lists of integers or None; the output is a tensor of the largest size it may get.
    """

    program: Path
    folder: Path
    emulator: Sequence[str] = ()
    lines: list[str] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)

    def add(self, op: str, *arguments: Any, out: Any, more: Sequence[Any] = ()) -> None:
        """Appends one call; `more` are outputs behind the first."""
        self.lines.append(f"op {op}")
        for argument in arguments:
            self._argument(argument)
        self.lines += [f"o {_meta(tensor)}" for tensor in (out, *more)]
        self.lines.append("end")

    def temp(self, size: int) -> None:
        """Temporary memory of the calls that follow, in bytes."""
        self.lines.append(f"temp {size}")

    def run(self) -> tuple[list[Outcome], str]:
        """Makes all calls; also returns the log."""
        cases, blob, results = (self.folder / n for n in ("cases.txt", "blob.bin", "results.bin"))
        cases.write_text("\n".join(self.lines) + "\n")
        blob.write_bytes(bytes(self.blob))
        command = [*self.emulator, self.program, cases, blob, results]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"died with {done.returncode}: {done.stderr[-2000:]}"
        data = np.frombuffer(results.read_bytes(), np.float32)
        outcomes = []
        for line in done.stdout.splitlines():
            if not line.startswith("result "):
                continue
            _, error, kernel, _, *sizes = line.split()
            value = None
            if error == "0" and kernel != "missing":
                shape = tuple(map(int, sizes))
                count = int(np.prod(shape, dtype=np.int64))
                value, data = data[:count].reshape(shape), data[count:]
            outcomes.append(Outcome(int(error), kernel, value))
        return outcomes, done.stderr

    def _argument(self, argument: Any) -> None:
        if argument is None:
            self.lines.append("n")
        elif isinstance(argument, bool):
            self.lines.append(f"b {int(argument)}")
        elif isinstance(argument, int):
            self.lines.append(f"i {argument}")
        elif isinstance(argument, float):
            self.lines.append(f"d {argument!r}")
        elif isinstance(argument, list):
            self.lines.append(f"l {len(argument)} {' '.join(map(str, argument))}")
        else:
            offset = len(self.blob)
            order = argument.dim_order()
            memory = argument.permute(order).contiguous()
            self.blob += memory.view(-1).numpy().tobytes() if memory.numel() else b""
            self.lines.append(f"t {_meta(argument)} {offset}")


_TYPES = {"torch.float32": 6, "torch.float16": 5, "torch.float64": 7, "torch.int32": 3}


def _meta(tensor: Any) -> str:
    words = [_TYPES[str(tensor.dtype)], tensor.dim(), *tensor.shape, *tensor.dim_order()]
    return " ".join(map(str, words))


@pytest.fixture(params=["native", "riscv64"])
def calls(request: pytest.FixtureRequest, tmp_path: Path) -> Calls:
    """An empty list of operator calls: natively with scalar kernels, under qemu with vectors."""
    if request.param == "native":
        folder, emulator = request.getfixturevalue("wheel_build"), []
    else:
        folder = request.getfixturevalue("prefix_build")
        emulator = ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,elen=64,vext_spec=v1.0"]
    return Calls(folder / "tests" / "k230_op_cases", tmp_path, emulator)
