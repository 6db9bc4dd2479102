"""Our tensors against torchvision's own transforms, bit for bit."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from k230_lib.dataset.preprocess import sample_bytes
from k230_lib.model.contract import Preprocessing

torchvision = pytest.importorskip("torchvision")

SIZES = [
    (500, 375),
    (375, 500),
    (333, 333),
    (256, 256),
    (224, 224),
    (1, 1),
    (1, 90),
    (150, 10),
    (10, 150),
    (257, 300),
    (97, 211),
    (1200, 801),
]


def _preset(preprocessing: Preprocessing) -> object:
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms._presets import ImageClassification

    return ImageClassification(
        crop_size=preprocessing.crop_size,
        resize_size=preprocessing.resize_size,
        mean=preprocessing.mean,
        std=preprocessing.std,
        interpolation=InterpolationMode(preprocessing.interpolation),
        antialias=preprocessing.antialias,
    )


def _assert_equal(data: bytes, preprocessing: Preprocessing) -> None:
    with Image.open(io.BytesIO(data)) as image:
        wanted = _preset(preprocessing)(image.convert("RGB")).numpy()
    side = preprocessing.crop_size
    ours = np.frombuffer(sample_bytes(data, preprocessing, "float32"), "<f4")
    np.testing.assert_array_equal(
        ours.reshape(3, side, side).view(np.uint32), wanted.view(np.uint32)
    )


def _noise(size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    shape = (size[1], size[0], 3)
    noise = np.random.default_rng(sum(size)).integers(0, 256, shape, np.uint8)
    return Image.fromarray(noise).convert(mode)


def _bytes(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("sides", [(256, 224), (232, 224), (224, 224), (64, 64), (200, 224)])
def test_every_shape_of_picture(sides: tuple[int, int], interpolation: str) -> None:
    preprocessing = Preprocessing(*sides, interpolation=interpolation)
    for size in SIZES:
        _assert_equal(_bytes(_noise(size), "PNG"), preprocessing)


@pytest.mark.parametrize(
    ("mode", "kind", "options"),
    [
        ("L", "JPEG", {}),
        ("CMYK", "JPEG", {}),
        ("RGB", "JPEG", {"progressive": True}),
        ("RGB", "JPEG", {"subsampling": 0, "quality": 100}),
        ("P", "PNG", {}),
        ("RGBA", "PNG", {}),
        ("LA", "PNG", {}),
        ("1", "PNG", {}),
        ("P", "GIF", {}),
        ("RGB", "WEBP", {}),
        ("RGB", "BMP", {}),
    ],
)
def test_every_kind_of_file(mode: str, kind: str, options: dict[str, object]) -> None:
    _assert_equal(_bytes(_noise((300, 200), mode), kind, **options), Preprocessing(256, 224))


def test_exif_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    _assert_equal(_bytes(_noise((300, 200)), "JPEG", exif=exif), Preprocessing(256, 224))


def test_a_palette_with_transparency() -> None:
    image = _noise((120, 90)).quantize(16)
    data = _bytes(image, "PNG", transparency=bytes([0, 128] * 8))
    _assert_equal(data, Preprocessing(64, 64))


@pytest.mark.slow
def test_real_pictures(imagenet_sample: Path) -> None:
    for file in sorted((imagenet_sample / "images").rglob("*.JPEG")):
        _assert_equal(file.read_bytes(), Preprocessing(256, 224))
