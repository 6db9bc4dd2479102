"""Script: export a small MobileNet-like model, a wider one, and trace the first.

Usage: make_real_model.py FOLDER. Writes model.pte, model.etrecord (older API), wider.pte,
wider.etrecord (current API) and model<N>.etdump of N executions.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from executorch.devtools import generate_etrecord
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.extension.pybindings.portable_lib import _load_for_executorch
from torch import nn


class Block(nn.Module):
    """Depthwise and pointwise convolution beside a short cut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
            nn.Conv2d(channels, channels, 1, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x)


class Model(nn.Module):
    """A classifier for 32x32 images."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, channels, 3, stride=2), nn.ReLU6(), Block(channels), Block(channels)
        )
        self.classifier = nn.Linear(channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def export(folder: Path, name: str, channels: int, x: torch.Tensor, *, current: bool) -> None:
    """Write ``.pte`` and ETRecord by the current or by the older API."""
    exported = torch.export.export(Model(channels).eval(), (x,), strict=True)
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(exported, compile_config=config, generate_etrecord=current)
    kept = None if current else copy.deepcopy(edge)
    program = edge.to_executorch()
    (folder / f"{name}.pte").write_bytes(program.buffer)
    record = str(folder / f"{name}.etrecord")
    if current:
        program.get_etrecord().save(record)
    else:
        generate_etrecord(record, kept, program)


def trace(folder: Path, executions: int, x: torch.Tensor) -> None:
    """Write an ETDump of that many executions."""
    model = str(folder / "model.pte")
    module = _load_for_executorch(model, enable_etdump=True, debug_buffer_size=0)
    for _ in range(executions):
        module.forward([x])
    module.write_etdump_result_to_file(str(folder / f"model{executions}.etdump"))


def main() -> None:
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    x = torch.randn(1, 3, 32, 32)
    export(folder, "model", 8, x, current=False)
    export(folder, "wider", 16, x, current=True)
    for executions in (1, 5, 50):
        trace(folder, executions, x)


if __name__ == "__main__":
    main()
