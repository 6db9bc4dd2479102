"""Resize and centre crop as torchvision's evaluation transform does on PIL images, bit for bit.

Pillow resizes whole pictures, though a crop keeps half of the pixels. ``resample.c``, compiled when
the package is installed, computes those alone with the same weights and roundings. It is used
where it is known to give the same bits, and after it has done so once in this process; anything
else, and an installation without a C compiler, takes Pillow itself and is only slower.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

Pixels = npt.NDArray[np.uint8]

_FILTERS = {Image.Resampling.BILINEAR: 0, Image.Resampling.BICUBIC: 1}
# Beyond this ratio of height to width Pillow may resample rows before columns.
_TALLEST = 2
# Beyond so many pixels Pillow is as fast: what the crop keeps is found among more that it drops.
_LARGE = 800_000
# Pixels of a resized picture (1 GiB); more only come from one that is a line.
_LARGEST_RESIZED = 1 << 28
# width, height, resized shorter side, cropped side
_CHECKED = (
    (500, 375, 256, 224),
    (61, 47, 32, 27),
    (47, 61, 32, 27),
    (40, 80, 32, 27),
    (33, 20, 32, 32),
    (90, 32, 32, 31),
)


def resize_and_crop(
    image: Image.Image, shorter: int, side: int, method: Image.Resampling
) -> Pixels:
    """Resize the shorter side to ``shorter`` pixels, keep ``side`` x ``side`` of the middle.

    Args:
        image: 8-bit RGB.
        shorter: size of the shorter side after the resize.
        side: of the square that is kept; black is added where the resized image is smaller.
        method: Pillow's filter.

    Returns:
        uint8, planar: [3, side, side]; not writable.

    Raises:
        MemoryError: the resized image would be larger than 2**28 pixels.
    """
    if math.prod(resized(image.size, shorter)) > _LARGEST_RESIZED:
        raise MemoryError
    function = _proved()
    if (
        function is not None
        and method in _FILTERS
        and image.mode == "RGB"
        and side <= shorter
        and image.height <= _TALLEST * image.width
        and image.width * image.height <= _LARGE
    ):
        return function(image, shorter, side, method)
    return _by_pillow(image, shorter, side, method)


def resized(size: tuple[int, int], shorter: int) -> tuple[int, int]:
    """(width, height) after the shorter side became ``shorter``; the longer is cut to an int."""
    width, height = size
    if width <= height:
        return shorter, int(shorter * height / width)
    return int(shorter * width / height), shorter


def compiled() -> bool:
    """Is the compiled resampling in use?"""
    return _proved() is not None


_Resize = Callable[[Image.Image, int, int, Image.Resampling], Pixels]


@cache
def _proved() -> _Resize | None:
    """The compiled function, if it is there and gives the bits of this very Pillow."""
    function = _load()
    if function is None:
        return None
    source = np.random.default_rng(0)
    for width, height, shorter, side in _CHECKED:
        image = Image.fromarray(source.integers(0, 256, (height, width, 3), np.uint8))
        for method in _FILTERS:
            wanted = _by_pillow(image, shorter, side, method)
            if not np.array_equal(function(image, shorter, side, method), wanted):
                return None
    return function


def _load() -> _Resize | None:
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_resample{suffix}")
        if path.is_file():
            break
    else:
        return None
    try:
        call = ctypes.CDLL(str(path)).k230_resize_and_crop
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_char_p, *[ctypes.c_int] * 8, ctypes.c_void_p]
    call.restype = ctypes.c_int

    def function(image: Image.Image, shorter: int, side: int, method: Image.Resampling) -> Pixels:
        width, height = resized(image.size, shorter)
        planes = np.empty((3, side, side), np.uint8)
        failed = call(
            image.tobytes("raw", "RGBX"),
            image.width,
            image.height,
            width,
            height,
            _start(width, side),
            _start(height, side),
            side,
            _FILTERS[method],
            planes.ctypes.data,
        )
        if failed:
            raise MemoryError
        planes.flags.writeable = False
        return planes

    return function


def _by_pillow(image: Image.Image, shorter: int, side: int, method: Image.Resampling) -> Pixels:
    image = image.resize(resized(image.size, shorter), method)
    wide, high = max(side - image.width, 0), max(side - image.height, 0)
    if wide or high:
        borders = (wide // 2, high // 2, (wide + 1) // 2, (high + 1) // 2)
        image = ImageOps.expand(image, borders, fill=0)
    left, top = _start(image.width, side), _start(image.height, side)
    kept = image.crop((left, top, left + side, top + side))
    planes = b"".join(plane.tobytes() for plane in kept.split())
    return np.frombuffer(planes, np.uint8).reshape(-1, side, side)


def _start(length: int, side: int) -> int:
    # round() to even, as torchvision does
    return round((length - side) / 2.0)
