"""Peak memory of preparing few and many images: only the list of files may grow.

    python tests/benchmarks/memory.py [--counts 5000 50000]

Each count runs in a process of its own on tiny pictures; prints one table. A worker's peak
includes that of the process it was forked from, before it became a worker.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 10
ALLOWED_KIB = 1.0
"""For an entry of the list of files: its path and label."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[5000, 50000])
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.prepare:
        return _prepare(options.prepare)
    rows = []
    for count in options.counts:
        with tempfile.TemporaryDirectory(prefix="k230-bench-") as scratch:
            _write_images(Path(scratch) / "images", count)
            command = [sys.executable, __file__, "--prepare", scratch]
            rows.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    print(f"{'images':>8}{'seconds':>9}{'main MiB':>10}{'worker MiB':>12}")
    for row in rows:
        print(f"{row['images']:>8}{row['seconds']:>9.1f}{row['main']:>10.0f}{row['worker']:>12.0f}")
    per_image = (rows[-1]["main"] - rows[0]["main"]) / (rows[-1]["images"] - rows[0]["images"])
    print(f"{per_image * 1024:.2f} KiB for each further image, {ALLOWED_KIB} KiB allowed")
    return int(per_image * 1024 > ALLOWED_KIB)


def _write_images(root: Path, count: int) -> None:
    source = np.random.default_rng(0)
    for number in range(count):
        folder = root / str(number % CLASSES)
        folder.mkdir(parents=True, exist_ok=True)
        stream = io.BytesIO()
        pixels = source.integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(stream, "PNG")
        (folder / f"{number:06d}.png").write_bytes(stream.getvalue())


def _prepare(folder: Path) -> int:
    from k230_lib.dataset.build import Settings, plan, prepare
    from k230_lib.dataset.layouts import Request
    from k230_lib.model.contract import (
        FileRef,
        InputSpec,
        ModelClass,
        ModelContract,
        OutputSpec,
        Preprocessing,
        Source,
    )

    contract = ModelContract(
        name="bench",
        source=Source("random", "none", "0"),
        input=InputSpec((1, 3, 32, 32), Preprocessing(32, 32)),
        output=OutputSpec((1, CLASSES)),
        classes=tuple(ModelClass(k, str(k)) for k in range(CLASSES)),
        operators=(),
        planned_buffers=(),
        pte=FileRef("", "", 0),
        etrecord=FileRef("", "", 0),
        versions={},
    )
    start = time.perf_counter()
    request = Request(folder / "images", label_base=0)
    done = prepare(plan(request, contract, Settings("bench", folder / "out", workers=2)))
    usage = [resource.getrusage(who).ru_maxrss / 1024 for who in (0, resource.RUSAGE_CHILDREN)]
    row = {"images": done.dataset.counts["images"], "seconds": time.perf_counter() - start}
    print(json.dumps({**row, "main": usage[0], "worker": usage[1]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
