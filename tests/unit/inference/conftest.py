"""A small model and dataset on disk, made without torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from k230_lib.inference.results import ResultRecord
from k230_lib.inference.run import Run, RunSettings, open_run
from k230_lib.model.contract import Preprocessing

from ...inputs import write_dataset, write_model

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
        write_model(model, bytes(range(256)) * 40, PREPROCESSING, CLASSES)
        pixels = np.random.default_rng(0).integers(0, 256, (count, NBYTES), dtype=np.uint8)
        labels = [n % CLASSES for n in range(count)]
        write_dataset(dataset, pixels, labels, shard_size, preprocessing)
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
