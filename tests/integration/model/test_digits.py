"""The demo model from training to accuracy, as the demo does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.dataset.build import Settings, plan, prepare
from k230_lib.dataset.digits import write_test_images
from k230_lib.dataset.layouts import Request
from k230_lib.dataset.manifest import read_manifest
from k230_lib.errors import ModelError
from k230_lib.evaluation.accuracy import score
from k230_lib.model import digits
from k230_lib.model.digits import Training
from k230_lib.model.export import export
from k230_lib.model.export import plan as plan_export
from k230_lib.model.host import run_dataset
from k230_lib.model.zoo import ModelRequest

pytestmark = pytest.mark.slow


def test_the_demo_model_reads_the_held_out_pictures(tmp_path: Path) -> None:
    done = export(plan_export(ModelRequest("digits"), tmp_path / "models"))
    write_test_images(tmp_path / "images")
    settings = Settings("digits", tmp_path / "datasets")
    dataset = prepare(plan(Request(tmp_path / "images"), done.contract, settings))
    results = run_dataset(done.folder, dataset.folder, tmp_path / "host")
    figures = score(results.logits, [s.label for s in read_manifest(dataset.folder)])
    assert figures.count == 397
    # 95 % are required; 98 to 99.5 % were seen with three seeds
    assert figures.top1 >= 0.965
    # a second export reads the weights instead of training
    (done.folder / "model.json").unlink()
    lines: list[str] = []
    again = export(plan_export(ModelRequest("digits"), tmp_path / "models"), lines.append)
    assert again.contract.pte == done.contract.pte
    assert not any("epoch" in line for line in lines)


def test_the_same_seed_gives_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digits, "REQUIRED_ACCURACY", 0.0)

    def weights(folder: str, seed: int) -> str:
        return digits.bundle(tmp_path / folder, Training(seed=seed, epochs=1)).source.sha256

    assert weights("a", 0) == weights("b", 0) != weights("c", 1)


def test_a_model_that_learnt_nothing_is_never_used(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"held-out digits, 95% expected"):
        digits.bundle(tmp_path, Training(epochs=1, peak_rate=1e-7))
    assert not list(tmp_path.glob("*.pth"))
