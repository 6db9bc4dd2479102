"""Time preprocessing against a torchvision DataLoader: same files, transforms and processes.

    python tests/benchmarks/preprocess.py [--images FOLDER] [--count 4000] [--workers 2]

Prints one table; the requirement is on wall time. Times of one machine at one moment: only their
ratios mean anything, and with other work on the cores only those of processor time do.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

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

CLASSES = 10
REQUIRED = {"uint8": 1.5, "float32": 1.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="folder of JPEG files; made up if none")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="k230-bench-") as scratch:
        folder = Path(scratch)
        images = _write_images(folder / "images", options.images, options.count)
        ways: dict[str, Callable[[int], None]] = {
            "DataLoader": lambda _: _data_loader(images, options.workers),
            "uint8": lambda number: _ours(images, folder, "uint8", options.workers, number),
            "float32": lambda number: _ours(images, folder, "float32", options.workers, number),
        }
        best = {name: (float("inf"), float("inf")) for name in ways}
        for number in range(options.rounds):
            for name, way in ways.items():
                start, used = time.perf_counter(), sum(os.times()[:4])
                way(number)
                seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - used
                best[name] = min(best[name][0], seconds), min(best[name][1], cpu)
    return _report(best, options.count, options.workers)


def _write_images(root: Path, source: Path | None, count: int) -> Path:
    """``count`` files that all differ, in folders 0 to 9; bytes after a JPEG's end are ignored."""
    files = sorted(source.rglob("*.JPEG")) if source else []
    pictures = [file.read_bytes() for file in files] or _made_up()
    for number in range(count):
        folder = root / str(number % CLASSES)
        folder.mkdir(parents=True, exist_ok=True)
        data = pictures[number % len(pictures)] + number.to_bytes(4, "little")
        (folder / f"{number:06d}.jpg").write_bytes(data)
    return root


def _made_up() -> list[bytes]:
    """Smoothed noise, of ImageNet's usual 500x375 and about its bytes."""
    source = np.random.default_rng(0)
    pictures = []
    for _ in range(20):
        noise = Image.fromarray(source.integers(0, 256, (375, 500, 3), np.uint8))
        stream = io.BytesIO()
        noise.filter(ImageFilter.GaussianBlur(1.2)).save(stream, "JPEG", quality=92)
        pictures.append(stream.getvalue())
    return pictures


def _data_loader(images: Path, workers: int) -> None:
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms._presets import ImageClassification

    torch.set_num_threads(1)
    data = ImageFolder(str(images), ImageClassification(crop_size=224))
    for _ in DataLoader(data, batch_size=64, num_workers=workers):
        pass


def _ours(images: Path, folder: Path, dtype: str, workers: int, number: int) -> None:
    preprocessing = Preprocessing(256, 224)
    contract = ModelContract(
        name="bench",
        source=Source("random", "none", "0"),
        input=InputSpec((1, 3, 224, 224), preprocessing),
        output=OutputSpec((1, CLASSES)),
        classes=tuple(ModelClass(k, str(k)) for k in range(CLASSES)),
        operators=(),
        planned_buffers=(),
        pte=FileRef("", "", 0),
        etrecord=FileRef("", "", 0),
        versions={},
    )
    out = folder / f"{dtype}-{number}"
    settings = Settings("bench", out, dtype=dtype, workers=workers)  # type: ignore[arg-type]
    done = prepare(plan(Request(images, label_base=0), contract, settings))
    assert done.reused == 0
    # or the disk would still be busy with it in the next round
    shutil.rmtree(out)


def _report(best: dict[str, tuple[float, float]], count: int, workers: int) -> int:
    wall, cpu = best["DataLoader"]
    print(f"{count} images, {workers} processes, best of the rounds")
    print(f"{'way':<12}{'wall s':>8}{'ratio':>7}{'cpu s':>8}{'ratio':>7}{'required':>10}")
    failed = False
    for name, (seconds, used) in best.items():
        required = REQUIRED.get(name, 0.0)
        failed |= wall / seconds < required
        print(
            f"{name:<12}{seconds:>8.2f}{wall / seconds:>7.2f}{used:>8.2f}{cpu / used:>7.2f}"
            f"{required or '-':>10}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
