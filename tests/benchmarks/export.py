"""Export of MobileNetV2 from a cold start against the bare ExecuTorch calls.

    python tests/benchmarks/export.py [--rounds 2]

Both in fresh processes, in turn; prints one table of the best rounds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ALLOWED = 1.3

BARE = """
import sys
import torch
from torchvision.models import mobilenet_v2
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

model = mobilenet_v2(weights=None)
model.load_state_dict(torch.load(sys.argv[1], weights_only=True))
model.eval()
program = torch.export.export(model, (torch.randn(1, 3, 224, 224),), strict=True)
edge = to_edge_transform_and_lower(
    program, compile_config=EdgeCompileConfig(_check_ir_validity=False), generate_etrecord=True
)
lowered = edge.to_executorch()
with open(sys.argv[2] + "/bare.pte", "wb") as stream:
    lowered.write_to_file(stream)
lowered.get_etrecord().save(sys.argv[2] + "/bare.etrecord")
"""

OURS = """
import sys
from pathlib import Path
from k230_lib.model.export import export, plan
from k230_lib.model.zoo import ModelRequest

assert export(plan(ModelRequest("mobilenet_v2", sys.argv[1]), Path(sys.argv[2]))).changed
"""

WEIGHTS = """
import sys
import torch
from torchvision.models import mobilenet_v2

torch.manual_seed(0)
torch.save(mobilenet_v2(weights=None).state_dict(), sys.argv[1])
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    best: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="k230-bench-") as scratch:
        weights = Path(scratch) / "w.pth"
        _run(WEIGHTS, str(weights))
        for number in range(options.rounds):
            for name, code in (("bare", BARE), ("k230_lib", OURS)):
                folder = Path(scratch) / f"{name}-{number}"
                folder.mkdir()
                seconds, peak = _run(code, str(weights), str(folder))
                before = best.get(name, (seconds, peak))
                best[name] = min(before[0], seconds), min(before[1], peak)
    print(f"{'way':<10}{'seconds':>9}{'peak MiB':>10}")
    for name, (seconds, peak) in best.items():
        print(f"{name:<10}{seconds:>9.1f}{peak:>10.0f}")
    ratios = [ours / bare for ours, bare in zip(best["k230_lib"], best["bare"], strict=True)]
    print(f"{'ratio':<10}{ratios[0]:>9.2f}{ratios[1]:>10.2f}   allowed {ALLOWED}")
    return int(max(ratios) > ALLOWED)


def _run(code: str, *arguments: str) -> tuple[float, float]:
    """Wall seconds and peak MiB of a fresh Python."""
    start = time.perf_counter()
    process = os.posix_spawn(
        sys.executable, [sys.executable, "-W", "ignore", "-c", code, *arguments], os.environ
    )
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit("the export failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
