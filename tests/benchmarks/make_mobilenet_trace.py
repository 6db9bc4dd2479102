"""Script: MobileNetV2 (width 0.35, 64x64) with its ETRecord and a trace of 50 executions.

Usage: make_mobilenet_trace.py FOLDER. It has as many operators as the model of width 1.0.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from executorch.devtools import generate_etrecord
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.extension.pybindings.portable_lib import _load_for_executorch
from torchvision.models import MobileNetV2

EXECUTIONS = 50


def main() -> None:
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    x = torch.randn(1, 3, 64, 64)
    model = MobileNetV2(num_classes=10, width_mult=0.35).eval()
    exported = torch.export.export(model, (x,), strict=True)
    edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    kept = copy.deepcopy(edge)
    program = edge.to_executorch()
    (folder / "model.pte").write_bytes(program.buffer)
    generate_etrecord(str(folder / "model.etrecord"), kept, program)
    module = _load_for_executorch(
        str(folder / "model.pte"), enable_etdump=True, debug_buffer_size=0
    )
    for _ in range(EXECUTIONS):
        module.forward([x])
    module.write_etdump_result_to_file(str(folder / "model.etdump"))


if __name__ == "__main__":
    main()
