"""A runner built once, and a model so small that every test can afford it."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from k230_lib.runner.build import BuildRequest, BuiltRunner, build_runner

REPOSITORY = Path(__file__).resolve().parents[3]
SHAPE = (1, 3, 16, 16)

# In a process of its own: torch takes seconds and memory that the other tests need not pay for.
EXPORT = """
import sys
import torch
from executorch.exir import to_edge

class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 1)
        self.last = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.last(x.mean((2, 3)))

class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.ops.demo.twice(torch.relu(x))

@torch.library.custom_op("demo::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

torch.library.define("demo::twice.out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")

@torch.library.impl("demo::twice.out", "CompositeExplicitAutograd")
def twice_out(x, *, out):
    return out.copy_(x * 2)

def write(module, example, path):
    program = to_edge(torch.export.export(module.eval(), (example,), strict=True))
    with open(path, "wb") as file:
        file.write(program.to_executorch().buffer)

folder = sys.argv[1]
torch.manual_seed(7)
write(Small(), torch.randn(1, 3, 16, 16), f"{folder}/small.pte")
write(Unknown(), torch.randn(1, 3, 16, 16), f"{folder}/unknown.pte")

from executorch.runtime import Runtime
import numpy
inputs = numpy.fromfile(f"{folder}/inputs.bin", "<f4").reshape(-1, 1, 3, 16, 16)
method = Runtime.get().load_program(f"{folder}/small.pte").load_method("forward")
rows = [method.execute([torch.from_numpy(x.copy())])[0].numpy().copy() for x in inputs]
numpy.concatenate(rows).astype("<f4").tofile(f"{folder}/expected.bin")
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltRunner:
    """The portable runner for this machine."""
    output = tmp_path_factory.mktemp("runners")
    return build_runner(BuildRequest("portable", "host", REPOSITORY / "kernels", output))


class Samples:
    """Twelve inputs, the models, and what the host runtime makes of the inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        generator = np.random.default_rng(3)
        self.inputs = generator.standard_normal((12, *SHAPE[1:])).astype("<f4")
        self.bytes = generator.integers(0, 256, (12, *SHAPE[1:]), dtype=np.uint8)
        (folder / "inputs.bin").write_bytes(self.inputs.tobytes())
        (folder / "bytes.bin").write_bytes(self.bytes.tobytes())
        self.model = folder / "small.pte"
        self.unknown_model = folder / "unknown.pte"

    def expected(self) -> npt.NDArray[np.float32]:
        return np.fromfile(self.folder / "expected.bin", "<f4").reshape(-1, 5)

    def list_lines(self) -> list[str]:
        size = self.inputs[0].nbytes
        return [
            f"#k230-inputs 1 dtype=float32 nbytes={size}",
            *(
                f"{100 + i} inputs.bin {i * size} {zlib.crc32(x.tobytes()):08x}"
                for i, x in enumerate(self.inputs)
            ),
        ]

    def byte_list_lines(self) -> list[str]:
        size = self.bytes[0].nbytes
        return [
            f"#k230-inputs 1 dtype=uint8 nbytes={size} "
            "mean=0.485,0.456,0.406 std=0.229,0.224,0.225",
            *(
                f"{i} bytes.bin {i * size} {zlib.crc32(x.tobytes()):08x}"
                for i, x in enumerate(self.bytes)
            ),
        ]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    made = Samples(tmp_path_factory.mktemp("samples"))
    subprocess.run(
        [sys.executable, "-c", EXPORT, str(made.folder)], check=True, capture_output=True
    )
    return made


@pytest.fixture
def work(samples: Samples, tmp_path: Path) -> Path:
    """A folder of its own with the inputs in it, for tests that damage something."""
    for name in ("inputs.bin", "bytes.bin"):
        (tmp_path / name).write_bytes((samples.folder / name).read_bytes())
    return tmp_path


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(built: BuiltRunner, samples: Samples, work: Path) -> Run:
    """Run the runner in ``work`` with the small model."""

    def call(*flags: str, model: Path = samples.model) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [built.path, f"--model_path={model}", *flags],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return call
