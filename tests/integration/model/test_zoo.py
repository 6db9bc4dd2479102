"""torchvision models of very different build, by the same command."""

from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.errors import InputError, ModelError
from k230_lib.model.export import export, plan
from k230_lib.model.zoo import ModelRequest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "folds"),
    [
        ("resnet18", 20),
        ("mobilenet_v3_small", 34),
        ("efficientnet_b0", 49),
        ("squeezenet1_1", 0),
    ],
)
def test_models_export_and_run_on_the_host(tmp_path: Path, name: str, folds: int) -> None:
    done = export(plan(ModelRequest(name, "random:0"), tmp_path))
    # the export itself compared the host runtime's scores with the eager ones
    assert done.contract.export["error_to_eager"] < 1e-4
    assert done.contract.export["passes"]["folded"] == folds
    assert "aten::_native_batch_norm_legit_no_training.out" not in done.contract.operators
    assert done.contract.class_count == 1000
    assert done.contract.published is None


def test_random_weights_are_those_of_the_seed(tmp_path: Path) -> None:
    def weights(seed: int, folder: str) -> str:
        request = ModelRequest("squeezenet1_1", f"random:{seed}")
        return export(plan(request, tmp_path / folder)).contract.source.sha256

    assert weights(0, "a") == weights(0, "b") != weights(1, "c")


def test_a_model_that_does_not_fit_the_board_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"needs 98 MiB .* has about 78 MiB"):
        export(plan(ModelRequest("resnet50", "random:0"), tmp_path))


def test_an_unknown_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model named mobilenet_v9"):
        export(plan(ModelRequest("mobilenet_v9", "random:0"), tmp_path))
    with pytest.raises(InputError, match=r"has no weights 'NOPE'.*IMAGENET1K_V1"):
        export(plan(ModelRequest("mobilenet_v2", "NOPE"), tmp_path))
