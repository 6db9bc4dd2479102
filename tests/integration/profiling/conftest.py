"""A small real model, exported and run here with the wheel's runtime."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_MAKE = """
import copy, pathlib, sys, torch
from executorch.devtools import generate_etrecord
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.extension.pybindings.portable_lib import _load_for_executorch
from torch import nn

class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
            nn.BatchNorm2d(channels), nn.ReLU6(), nn.Conv2d(channels, channels, 1, bias=False),
        )
    def forward(self, x):
        return x + self.conv(x)

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, channels, 3, stride=2), nn.ReLU6(), Block(channels), Block(channels)
        )
        self.classifier = nn.Linear(channels, 10)
    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))

folder = pathlib.Path(sys.argv[1])
torch.manual_seed(0)
x = torch.randn(1, 3, 32, 32)
for name, channels, new in (("model", 8, False), ("wider", 16, True)):
    exported = torch.export.export(Model(channels).eval(), (x,), strict=True)
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(exported, compile_config=config, generate_etrecord=new)
    kept = None if new else copy.deepcopy(edge)
    program = edge.to_executorch()
    (folder / f"{name}.pte").write_bytes(program.buffer)
    record = str(folder / f"{name}.etrecord")
    program.get_etrecord().save(record) if new else generate_etrecord(record, kept, program)
for count in (1, 5, 50):
    module = _load_for_executorch(
        str(folder / "model.pte"), enable_etdump=True, debug_buffer_size=0
    )
    for _ in range(count):
        module.forward([x])
    module.write_etdump_result_to_file(str(folder / f"model{count}.etdump"))
"""


@dataclass(frozen=True)
class RealModel:
    """Files of the model, of a wider one, and traces of 1, 5 and 50 executions of the first."""

    folder: Path

    @property
    def pte(self) -> Path:
        return self.folder / "model.pte"

    @property
    def etrecord(self) -> Path:
        return self.folder / "model.etrecord"

    def etdump(self, executions: int) -> Path:
        return self.folder / f"model{executions}.etdump"


@pytest.fixture(scope="session")
def real_model(tmp_path_factory: pytest.TempPathFactory) -> RealModel:
    """Made in a process of its own: torch stays out of pytest's."""
    folder = tmp_path_factory.mktemp("real-model")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _MAKE, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return RealModel(folder)
