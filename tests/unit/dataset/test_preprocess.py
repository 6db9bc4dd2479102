from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from k230_lib.dataset.preprocess import decode, encode, normalise, pixels_of
from k230_lib.dataset.resampling import resized
from k230_lib.errors import DatasetError
from k230_lib.model.contract import Preprocessing

SMALL = Preprocessing(resize_size=20, crop_size=16)


def _bytes(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def _noise(size: tuple[int, int] = (30, 24)) -> Image.Image:
    shape = (size[1], size[0], 3)
    return Image.fromarray(np.random.default_rng(1).integers(0, 256, shape, np.uint8))


def test_normalisation_is_the_runners_arithmetic_bit_for_bit() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 5, 7), np.uint8)
    mean = np.array(SMALL.mean, np.float32)[:, None, None]
    std = np.array(SMALL.std, np.float32)[:, None, None]
    wanted = (pixels.astype(np.float32) / np.float32(255) - mean) / std
    np.testing.assert_array_equal(normalise(pixels, SMALL), wanted, strict=True)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        ((500, 375), (341, 256)),
        ((375, 500), (256, 341)),
        ((1, 15), (256, 3840)),
        ((9, 9), (256, 256)),
    ],
)
def test_the_longer_side_is_cut_to_an_integer(
    size: tuple[int, int], wanted: tuple[int, int]
) -> None:
    assert resized(size, 256) == wanted


def test_the_middle_is_cropped_and_channels_are_planar() -> None:
    image = _noise((20, 24))
    pixels = pixels_of(image, SMALL)
    # 20 wide already: only the crop is left, (24 - 16) / 2 = 4 from above and 2 from the left
    np.testing.assert_array_equal(pixels, np.asarray(image)[4:20, 2:18].transpose(2, 0, 1))


def test_a_crop_wider_than_the_picture_is_filled_with_black() -> None:
    wide = Preprocessing(resize_size=8, crop_size=10)
    pixels = pixels_of(Image.new("RGB", (8, 8), (9, 9, 9)), wide)
    assert pixels.shape == (3, 10, 10)
    assert pixels[:, 1:9, 1:9].min() == 9
    assert pixels[:, 0, :].max() == 0
    assert pixels[:, :, 9].max() == 0


def test_uint8_and_float32_samples_hold_the_same_picture() -> None:
    image = _noise()
    pixels = np.frombuffer(encode(image, SMALL, "uint8"), np.uint8).reshape(3, 16, 16)
    floats = np.frombuffer(encode(image, SMALL, "float32"), "<f4").reshape(3, 16, 16)
    np.testing.assert_array_equal(normalise(pixels, SMALL), floats)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("L", "JPEG"), ("CMYK", "JPEG"), ("P", "PNG"), ("RGBA", "PNG"), ("LA", "PNG"), ("1", "PNG")],
)
def test_every_colour_mode_becomes_rgb_and_is_noted(mode: str, kind: str) -> None:
    image, odd = decode(
        _bytes(_noise().convert("L" if mode in "LA1" else "RGB").convert(mode), kind)
    )
    assert image.mode == "RGB"
    assert odd == (f"mode {mode}",)


def test_sixteen_bit_grey_keeps_its_picture() -> None:
    ramp = np.arange(0, 65536, 256, np.uint16).reshape(16, 16)
    image, odd = decode(_bytes(Image.fromarray(ramp)))
    np.testing.assert_array_equal(np.asarray(image)[..., 0], np.arange(256).reshape(16, 16))
    assert odd == ("mode I;16",)


def test_exif_orientation_is_noted_but_not_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    plain = decode(_bytes(_noise(), "JPEG", quality=95))[0]
    turned, odd = decode(_bytes(_noise(), "JPEG", quality=95, exif=exif))
    assert turned.size == (30, 24)
    np.testing.assert_array_equal(np.asarray(plain), np.asarray(turned))
    assert odd == ("exif orientation ignored",)


def test_progressive_jpeg_is_plain() -> None:
    _, odd = decode(_bytes(_noise(), "JPEG", progressive=True))
    assert odd == ()


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (60, 4), (4, 60)])
def test_tiny_and_elongated_pictures_give_a_whole_sample(size: tuple[int, int]) -> None:
    image, odd = decode(_bytes(_noise(size)))
    assert pixels_of(image, SMALL).shape == (3, 16, 16)
    assert odd == ("extreme aspect",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"this is a text", "not an image"),
        (_bytes(_noise(), "JPEG")[:-200], "truncated or damaged image"),
        (_bytes(_noise((90, 90)))[:9000], "truncated or damaged image"),
    ],
)
def test_what_is_no_image_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DatasetError, match=reason):
        decode(data)


def test_an_unknown_interpolation_is_refused() -> None:
    with pytest.raises(DatasetError, match="interpolation 'magic'"):
        pixels_of(_noise(), Preprocessing(20, 16, "magic"))
