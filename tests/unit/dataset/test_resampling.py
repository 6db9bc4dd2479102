"""The compiled resampling against Pillow itself, bit for bit."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from k230_lib.dataset.resampling import compiled, resize_and_crop, resized

BILINEAR, BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC


def _noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3))
    return Image.fromarray(pixels.astype(np.uint8))


def _wanted(image: Image.Image, shorter: int, side: int, method: Image.Resampling) -> np.ndarray:
    width, height = resized(image.size, shorter)
    left, top = round((width - side) / 2), round((height - side) / 2)
    whole = np.asarray(image.resize((width, height), method))
    return whole[top : top + side, left : left + side].transpose(2, 0, 1)


def test_it_is_compiled_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler here: Pillow itself resizes")
    assert compiled()


@given(
    width=st.integers(1, 700),
    height=st.integers(1, 700),
    shorter=st.integers(1, 96),
    cut=st.integers(0, 40),
    method=st.sampled_from([BILINEAR, BICUBIC]),
)
def test_every_size_gives_pillows_bits(
    width: int, height: int, shorter: int, cut: int, method: Image.Resampling
) -> None:
    image = _noise(width, height)
    side = max(1, shorter - cut)
    got = resize_and_crop(image, shorter, side, method)
    np.testing.assert_array_equal(got, _wanted(image, shorter, side, method))


@pytest.mark.parametrize("method", [BILINEAR, BICUBIC])
@pytest.mark.parametrize("shorter", [224, 232, 256])
@pytest.mark.parametrize(
    "size", [(500, 375), (375, 500), (256, 256), (300, 256), (232, 400), (640, 481), (300, 601)]
)
def test_the_usual_sizes(size: tuple[int, int], shorter: int, method: Image.Resampling) -> None:
    image = _noise(*size)
    got = resize_and_crop(image, shorter, 224, method)
    np.testing.assert_array_equal(got, _wanted(image, shorter, 224, method))


@pytest.mark.parametrize("value", [0, 255])
def test_flat_and_striped_pictures_do_not_overflow(value: int) -> None:
    stripes = np.full((90, 120, 3), value, np.uint8)
    stripes[::2] = 255 - value
    for image in (Image.new("RGB", (120, 90), (value,) * 3), Image.fromarray(stripes)):
        got = resize_and_crop(image, 64, 64, BICUBIC)
        np.testing.assert_array_equal(got, _wanted(image, 64, 64, BICUBIC))


@pytest.mark.parametrize("size", [(3_000_000, 1), (1, 3_000_000)])
def test_a_line_is_refused_before_memory_is_asked_for(size: tuple[int, int]) -> None:
    with pytest.raises(MemoryError):
        resize_and_crop(Image.new("RGB", size), 256, 224, BILINEAR)
