"""From an image file to the bytes a model computes on.

The arithmetic is torchvision's evaluation transform on PIL images, restated on PIL and numpy so
that worker processes need not import torch; tests hold the two equal bit for bit.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from ..errors import DatasetError
from ..model.contract import Preprocessing
from .resampling import Pixels, resize_and_crop

Tensor = npt.NDArray[np.float32]
Dtype = Literal["float32", "uint8"]

_EXIF_ORIENTATION = 0x0112

_INTERPOLATION: Mapping[str, Image.Resampling] = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def decode(data: bytes) -> tuple[Image.Image, tuple[str, ...]]:
    """Decode a whole image file to 8-bit RGB.

    EXIF orientation is not applied, as in every published ImageNet figure.

    Returns:
        The image, and what is unusual about the file (for the dataset's summary).

    Raises:
        DatasetError: empty, truncated, or no image.
    """
    if not data:
        raise DatasetError("empty file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
            odd = _odd(image)
            image.load()
            return _to_rgb(image), odd
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as problem:
        raise DatasetError(_reason(problem)) from None


def _reason(problem: Exception) -> str:
    text = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
    if isinstance(problem, UnidentifiedImageError):
        return "not an image"
    if "truncated" in text or "unrecognized data stream" in text or "broken data" in text:
        return f"truncated or damaged image: {text}"
    return f"image cannot be decoded: {text}"


def _odd(image: Image.Image) -> tuple[str, ...]:
    found = []
    if image.mode != "RGB":
        found.append(f"mode {image.mode}")
    if image.getexif().get(_EXIF_ORIENTATION, 1) not in (0, 1):
        found.append("exif orientation ignored")
    if min(image.size) == 1 or max(image.size) > 10 * min(image.size):
        found.append("extreme aspect")
    return tuple(found)


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        # PIL clips 16-bit grey to 255, which turns a picture white; the high byte keeps it, as
        # PIL itself does for 16-bit RGB.
        high = np.asarray(image).astype(np.uint16) >> 8
        image = Image.fromarray(high.astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise ValueError(f"pixels of mode {image.mode} have no defined range")
    # a conversion to the same mode would copy
    return image if image.mode == "RGB" else image.convert("RGB")


def pixels_of(image: Image.Image, preprocessing: Preprocessing) -> Pixels:
    """Resize and crop.

    Returns:
        uint8, planar: [3, crop_size, crop_size]; not writable.
    """
    try:
        method = _INTERPOLATION[preprocessing.interpolation]
    except KeyError:
        raise DatasetError(
            f"interpolation {preprocessing.interpolation!r} is not one of "
            f"{', '.join(_INTERPOLATION)}"
        ) from None
    try:
        return resize_and_crop(image, preprocessing.resize_size, preprocessing.crop_size, method)
    except MemoryError:
        raise DatasetError(f"image of {image.size} is too elongated to resize") from None


def normalise(pixels: Pixels, preprocessing: Preprocessing) -> Tensor:
    """``(pixel / 255 - mean) / std`` per channel in float32, one operation after the other.

    Args:
        pixels: uint8 [3, H, W], or a batch of them [N, 3, H, W].

    Returns:
        float32 of the same shape.
    """
    shape = (len(preprocessing.mean), 1, 1)
    values = pixels.astype(np.float32)
    values /= np.float32(255)
    values -= np.array(preprocessing.mean, np.float32).reshape(shape)
    values /= np.array(preprocessing.std, np.float32).reshape(shape)
    return values


def sample_bytes(data: bytes, preprocessing: Preprocessing, dtype: Dtype) -> bytes:
    """The bytes stored in a shard for one image file: decode, resize, crop, maybe normalise."""
    return encode(decode(data)[0], preprocessing, dtype)


def encode(image: Image.Image, preprocessing: Preprocessing, dtype: Dtype) -> bytes:
    """The bytes stored in a shard for a decoded image, little-endian."""
    pixels = pixels_of(image, preprocessing)
    if dtype == "uint8":
        return pixels.tobytes()
    return normalise(pixels, preprocessing).astype("<f4", copy=False).tobytes()
