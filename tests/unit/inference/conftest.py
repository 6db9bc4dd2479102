"""A small model and dataset on disk, made without torch."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from k230_lib.dataset.manifest import Dataset, Sample, ShardInfo
from k230_lib.dataset.shards import build_list, format_list
from k230_lib.inference.results import ResultRecord
from k230_lib.inference.run import Run, RunSettings, open_run
from k230_lib.model.contract import (
    FileRef,
    InputSpec,
    ModelClass,
    ModelContract,
    OutputSpec,
    Preprocessing,
    Source,
    save,
)

CLASSES = 10
SIDE = 4
NBYTES = 3 * SIDE * SIDE
PREPROCESSING = Preprocessing(SIDE, SIDE, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
SETTINGS = RunSettings("portable", "ab" * 32, cross_check=0.0)


@dataclass(frozen=True)
class Inputs:
    """Folders of a model and a dataset."""

    model: Path
    dataset: Path
    runs: Path

    def open(self, settings: RunSettings = SETTINGS, **options: object) -> Run:
        return open_run(self.runs, self.model, self.dataset, settings, **options)  # type: ignore[arg-type]


@pytest.fixture
def make_inputs(tmp_path: Path) -> Callable[..., Inputs]:
    """Write a model folder and a dataset folder of ``count`` samples."""

    def make(count: int = 12, shard_size: int = 8, preprocessing: Preprocessing = PREPROCESSING):
        model, dataset = tmp_path / "model", tmp_path / "dataset"
        _write_model(model)
        _write_dataset(dataset, count, shard_size, preprocessing)
        return Inputs(model, dataset, tmp_path / "runs")

    return make


@pytest.fixture
def logits_of() -> Callable[[int, int], np.ndarray]:
    """Scores whose best class is the second argument, a little different for each sample."""

    def make(sample: int, best: int) -> np.ndarray:
        scores = np.linspace(0.0, 0.9, CLASSES, dtype=np.float32) + np.float32(sample / 1000)
        scores[best] += 5
        return scores

    return make


@pytest.fixture
def record_of(logits_of: Callable[[int, int], np.ndarray]) -> Callable[..., ResultRecord]:
    """A good record of a sample with a chosen best class."""

    def make(sample: int, best: int, latency_ms: float = 2.0) -> ResultRecord:
        return ResultRecord(0, sample, 0, int(latency_ms * 1e6), 0, 1, logits_of(sample, best))

    return make


def _write_model(folder: Path) -> None:
    folder.mkdir()
    (folder / "model.pte").write_bytes(bytes(range(256)) * 40)
    (folder / "model.etrecord").write_bytes(b"etrecord")
    contract = ModelContract(
        name="tiny",
        source=Source("trained", "tiny", "0" * 64),
        input=InputSpec((1, 3, SIDE, SIDE), PREPROCESSING),
        output=OutputSpec((1, CLASSES)),
        classes=tuple(ModelClass(n, f"class {n}") for n in range(CLASSES)),
        operators=("aten::addmm.out",),
        planned_buffers=(1024,),
        pte=FileRef.of(folder / "model.pte"),
        etrecord=FileRef.of(folder / "model.etrecord"),
        versions={"torch": "x"},
    )
    save(contract, folder)


def _write_dataset(folder: Path, count: int, shard_size: int, preprocessing: Preprocessing) -> None:
    (folder / "shards").mkdir(parents=True)
    data = np.random.default_rng(0).integers(0, 256, (count, NBYTES), dtype=np.uint8)
    shards, samples = [], []
    for first in range(0, count, shard_size):
        block = data[first : first + shard_size]
        name = f"shard-{first // shard_size:05d}"
        crcs = [zlib.crc32(row.tobytes()) for row in block]
        listing = format_list(
            build_list(
                first,
                crcs,
                bin_file=f"{name}.bin",
                dtype="uint8",
                nbytes=NBYTES,
                mean=preprocessing.mean,
                std=preprocessing.std,
            )
        ).encode()
        (folder / "shards" / f"{name}.bin").write_bytes(block.tobytes())
        (folder / "shards" / f"{name}.list").write_bytes(listing)
        shards.append(
            ShardInfo(name, len(block), first, block.nbytes, _sha(block.tobytes()), _sha(listing))
        )
        samples += [
            Sample(
                first + k,
                f"c{(first + k) % CLASSES}/{first + k}.png",
                (first + k) % CLASSES,
                None,
                "0" * 64,
                _sha(row.tobytes()),
                f"{crcs[k]:08x}",
                name,
                k * NBYTES,
                NBYTES,
            )
            for k, row in enumerate(block)
        ]
    dataset = Dataset(
        name="tiny",
        dtype="uint8",
        shape=(1, 3, SIDE, SIDE),
        preprocessing=preprocessing,
        counts={"images": count, "skipped": 0, "classes": CLASSES},
        labels={"origin": "folders"},
        shards=tuple(shards),
        key="k" * 64,
        images="images",
    )
    (folder / "dataset.json").write_text(json.dumps(dataset.to_json()))
    (folder / "manifest.jsonl").write_text("".join(sample.line() for sample in samples))


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
