"""The host runtime as the reference: cached by content, whole after any interruption."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from k230_lib.dataset.build import Settings, plan, prepare
from k230_lib.dataset.layouts import Request
from k230_lib.dataset.manifest import load, shard_paths
from k230_lib.dataset.shards import read_samples
from k230_lib.errors import DatasetError, ModelError
from k230_lib.model import host
from k230_lib.model.contract import load as load_contract
from k230_lib.model.export import export
from k230_lib.model.export import plan as plan_export
from k230_lib.model.host import missing_samples, run_dataset, save_logits, tensor_of
from k230_lib.model.zoo import ModelRequest

COUNT = 12

MODEL = """
import torch
from k230_lib.model.bundle import ModelBundle, numbered, state_sha256
from k230_lib.model.contract import Preprocessing, Source

def make(seed="0"):
    torch.manual_seed(int(seed))
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(196, 5)
    )
    source = Source("user", seed, state_sha256(net))
    return ModelBundle(net, Preprocessing(16, 16), numbered(list("abcde")), source)
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models ``0`` and ``1``, and datasets ``uint8`` and ``float32``."""
    root = tmp_path_factory.mktemp("host")
    (root / "k230_host_model.py").write_text(MODEL)
    sys.path.insert(0, str(root))
    try:
        for seed in ("0", "1"):
            export(plan_export(ModelRequest("k230_host_model:make", seed), root, seed))
    finally:
        sys.path.remove(str(root))
    source = np.random.default_rng(0)
    for number in range(COUNT):
        path = root / "images" / str(number % 5) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(source.integers(0, 256, (20, 20, 3), np.uint8)).save(path)
    request = Request(root / "images", label_base=0)
    for dtype in ("uint8", "float32"):
        settings = Settings(dtype, root, dtype=dtype, shard_size=5)
        prepare(plan(request, load_contract(root / "0"), settings))
    return root


def _eager(work: Path, seed: str) -> np.ndarray:
    dataset = load(work / "float32")
    tensors = [
        tensor_of(data, dataset)
        for shard in dataset.shards
        for _, data in read_samples(shard_paths(work / "float32", shard)[1])
    ]
    with torch.no_grad():
        module = sys.modules["k230_host_model"].make(seed).module.eval()
        return module(torch.from_numpy(np.concatenate(tensors))).numpy()


@pytest.mark.parametrize(
    ("dtype", "workers"),
    [
        ("uint8", "one process"),
        ("float32", "one process"),
        pytest.param("uint8", "several processes", marks=pytest.mark.slow),
    ],
)
def test_scores_are_those_of_the_model(
    work: Path, tmp_path: Path, dtype: str, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workers == "several processes":
        monkeypatch.setattr(host, "_WORTH_WORKERS", 0.0)
    seen: list[tuple[int, int]] = []
    results = run_dataset(
        work / "0", work / dtype, tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert results.indices == tuple(range(COUNT))
    np.testing.assert_allclose(results.logits, _eager(work, "0"), rtol=1e-4, atol=1e-5)
    assert seen == [(done, COUNT) for done in range(COUNT + 1)]


def test_only_what_is_new_is_computed(work: Path, tmp_path: Path) -> None:
    few = run_dataset(work / "0", work / "uint8", tmp_path, [3, 7])
    assert (few.indices, few.computed) == ((3, 7), 2)
    assert missing_samples(work / "0", work / "uint8", tmp_path, [3, 4]) == (4,)
    every = run_dataset(work / "0", work / "uint8", tmp_path)
    assert every.computed == COUNT - 2
    np.testing.assert_array_equal(every.logits[[3, 7]], few.logits)
    assert run_dataset(work / "0", work / "uint8", tmp_path).computed == 0
    # another program, another type: nothing in common
    assert run_dataset(work / "1", work / "uint8", tmp_path).computed == COUNT
    assert run_dataset(work / "0", work / "float32", tmp_path).computed == COUNT


def test_an_interrupted_reference_keeps_what_it_had(work: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_dataset(work / "0", work / "uint8", tmp_path, progress=stop)
    assert run_dataset(work / "0", work / "uint8", tmp_path).computed == COUNT - 5


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_a_damaged_cache_is_computed_again(work: Path, tmp_path: Path, suffix: str) -> None:
    before = run_dataset(work / "0", work / "uint8", tmp_path)
    for part in tmp_path.rglob(f"*{suffix}"):
        part.write_bytes(part.read_bytes()[:-9])
    again = run_dataset(work / "0", work / "uint8", tmp_path)
    assert again.computed == COUNT
    np.testing.assert_array_equal(again.logits, before.logits)


def test_saved_logits_are_read_again(work: Path, tmp_path: Path) -> None:
    results = run_dataset(work / "0", work / "uint8", tmp_path, [1, 2])
    assert save_logits(results, tmp_path / "out" / "l.npz")
    assert not save_logits(results, tmp_path / "out" / "l.npz")
    with np.load(tmp_path / "out" / "l.npz", allow_pickle=False) as saved:
        assert saved["indices"].tolist() == [1, 2]
        np.testing.assert_array_equal(saved["logits"], results.logits)


def test_what_does_not_fit_is_refused(work: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"sample 99 is not in"):
        run_dataset(work / "0", work / "uint8", tmp_path, [99])
    contract = load_contract(work / "0")
    assert contract.class_count == 5
    with pytest.raises(ModelError, match="no model contract"):
        run_dataset(tmp_path, work / "uint8", tmp_path)
    with pytest.raises(DatasetError, match="no dataset in"):
        run_dataset(work / "0", tmp_path, tmp_path)
