"""A real model on real pictures: the figures that were measured with torchvision alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.dataset.build import Outcome, Settings, plan, prepare
from k230_lib.dataset.layouts import Request
from k230_lib.dataset.manifest import read_manifest, shard_paths
from k230_lib.dataset.shards import read_samples
from k230_lib.evaluation.accuracy import rank, score
from k230_lib.model.contract import ModelContract
from k230_lib.model.export import ExportPlan, export
from k230_lib.model.export import plan as plan_export
from k230_lib.model.host import run_dataset, tensor_of
from k230_lib.model.zoo import ModelRequest, build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="module")
def exported(imagenet_sample: Path, artifacts: Path) -> ExportPlan:
    weights = imagenet_sample / "weights" / "mobilenet_v2_real.pth"
    todo = plan_export(ModelRequest("mobilenet_v2", str(weights)), artifacts / "models")
    export(todo)
    return todo


@pytest.fixture(scope="module")
def contract(exported: ExportPlan) -> ModelContract:
    return export(exported).contract


def _prepared(sample: Path, contract: ModelContract, out: Path, dtype: str) -> Outcome:
    request = Request(sample / "images", mapping=sample / "mapping" / "LOC_synset_mapping.txt")
    settings = Settings(name=f"sample-{dtype}", out=out, dtype=dtype)  # type: ignore[arg-type]
    return prepare(plan(request, contract, settings))


def _tensors(done: Outcome) -> np.ndarray:
    return np.concatenate(
        [
            tensor_of(data, done.dataset)
            for shard in done.dataset.shards
            for _, data in read_samples(shard_paths(done.folder, shard)[1])
        ]
    )


def _expected(sample: Path) -> dict[str, Any]:
    data = json.loads((sample / "expected.json").read_text())
    return {Path(entry["file"]).name: entry for entry in data["files"]}


@pytest.fixture(scope="module")
def eager(
    imagenet_sample: Path, contract: ModelContract, artifacts: Path
) -> dict[str, tuple[Outcome, np.ndarray]]:
    """Scores of the eager model on our tensors, by dtype of the shards."""
    import torch

    weights = imagenet_sample / "weights" / "mobilenet_v2_real.pth"
    module = build(ModelRequest("mobilenet_v2", str(weights)), artifacts).module
    results = {}
    for dtype in ("float32", "uint8"):
        done = _prepared(imagenet_sample, contract, artifacts / "datasets", dtype)
        with torch.no_grad():
            batches = torch.from_numpy(_tensors(done)).split(20)
            results[dtype] = done, torch.cat([module(batch) for batch in batches]).numpy()
    return results


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_every_picture_gets_the_expected_classes(
    imagenet_sample: Path, eager: dict[str, tuple[Outcome, np.ndarray]], dtype: str
) -> None:
    done, logits = eager[dtype]
    expected = _expected(imagenet_sample)
    samples = list(read_manifest(done.folder))
    assert len(samples) == 100
    for sample, best in zip(samples, rank(logits), strict=True):
        wanted = expected[Path(sample.path).name]
        assert sample.label == wanted["label"]
        assert sample.image_sha256 == wanted["sha256"]
        if wanted["margin_5_6"] >= 0.01:
            assert set(best) == set(wanted["top5"]), sample.path
    figures = score(logits, [sample.label for sample in samples])
    assert (figures.top1_correct, figures.top5_correct) == (69, 93)
    assert figures.suspect is None


def test_the_uint8_path_gives_the_same_scores(
    eager: dict[str, tuple[Outcome, np.ndarray]],
) -> None:
    floats, bytes_ = eager["float32"][1], eager["uint8"][1]
    scale = np.abs(floats).max(axis=1, keepdims=True)
    assert (np.abs(floats - bytes_) / scale).max() < 1e-4


def test_labels_shifted_by_one_are_named(
    eager: dict[str, tuple[Outcome, np.ndarray]],
) -> None:
    done, logits = eager["uint8"]
    labels = [sample.label - 1 for sample in read_manifest(done.folder)]
    figures = score(logits, labels)
    assert figures.top1_correct < 7
    assert "69 with +1 added" in (figures.suspect or "")


def test_the_host_runtime_agrees_on_a_few(
    imagenet_sample: Path,
    exported: ExportPlan,
    eager: dict[str, tuple[Outcome, np.ndarray]],
    artifacts: Path,
) -> None:
    done, logits = eager["uint8"]
    chosen = [0, 40, 99]
    results = run_dataset(exported.folder, done.folder, artifacts / "host", chosen)
    scale = np.abs(logits[chosen]).max()
    assert np.abs(results.logits - logits[chosen]).max() / scale < 1e-4
    again = run_dataset(exported.folder, done.folder, artifacts / "host", chosen)
    assert (results.computed, again.computed) == (3, 0)
    np.testing.assert_array_equal(again.logits, results.logits)


def test_a_model_with_a_background_class_is_judged_alike(
    imagenet_sample: Path,
    contract: ModelContract,
    eager: dict[str, tuple[Outcome, np.ndarray]],
    artifacts: Path,
) -> None:
    _, logits = eager["uint8"]
    background = replace(contract.classes[0], name="background")
    shifted = replace(
        contract,
        classes=(
            background,
            *(replace(entry, index=entry.index + 1) for entry in contract.classes),
        ),
        output=replace(contract.output, shape=(1, 1001)),
        label_offset=1,
    )
    done = _prepared(imagenet_sample, shifted, artifacts / "shifted", "uint8")
    padded = np.concatenate([np.full((100, 1), -1e9, np.float32), logits], axis=1)
    figures = score(padded, [sample.label for sample in read_manifest(done.folder)])
    assert (figures.top1_correct, figures.top5_correct) == (69, 93)
