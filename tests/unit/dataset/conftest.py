from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from k230_lib.model.contract import (
    FileRef,
    InputSpec,
    ModelClass,
    ModelContract,
    OutputSpec,
    Preprocessing,
    Source,
)

MakeContract = Callable[..., ModelContract]
MakeImage = Callable[..., Path]
MakeTree = Callable[..., Path]


@pytest.fixture
def make_contract() -> MakeContract:
    """A contract of a model for 16x16 pictures."""

    def make(
        names: Sequence[str] = ("tench", "goldfish", "shark"),
        label_offset: int = 0,
        mean: tuple[float, ...] = (0.485, 0.456, 0.406),
    ) -> ModelContract:
        preprocessing = Preprocessing(resize_size=20, crop_size=16, mean=mean)
        return ModelContract(
            name="small",
            source=Source("random", "random:0", "0" * 64),
            input=InputSpec((1, 3, 16, 16), preprocessing),
            output=OutputSpec((1, len(names))),
            classes=tuple(ModelClass(k, name) for k, name in enumerate(names)),
            operators=("aten::convolution.out",),
            planned_buffers=(1024,),
            pte=FileRef("model.pte", "0" * 64, 1),
            etrecord=FileRef("model.etrecord", "0" * 64, 1),
            versions={},
            label_offset=label_offset,
        )

    return make


@pytest.fixture
def make_image() -> MakeImage:
    """Write a picture of noise; the same seed gives the same pixels."""

    def make(
        path: Path, size: tuple[int, int] = (30, 24), seed: int = 0, **options: object
    ) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
        Image.fromarray(noise).save(path, **options)
        return path

    return make


@pytest.fixture
def make_tree(tmp_path: Path, make_image: MakeImage) -> MakeTree:
    """Image folders by wnid with a mapping beside the pictures."""

    def make(per_class: int = 2, wnids: Sequence[str] = ("n01", "n02", "n03")) -> Path:
        root = tmp_path / "images"
        root.mkdir()
        for position, wnid in enumerate(wnids):
            for number in range(per_class):
                make_image(root / wnid / f"{wnid}_{number}.png", seed=100 * position + number)
        (root / "LOC_synset_mapping.txt").write_text(
            "n01 tench, Tinca tinca\nn02 goldfish\nn03 shark, white shark\n"
        )
        return root

    return make
