"""scikit-learn's handwritten digits: the labelled pictures that need no network.

1797 grey pictures of 8x8 pixels, of which 397 are held out for testing; they are written as PNG
files in a folder per class and from then on treated like anybody's images.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from ..model.contract import Preprocessing

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TRAIN_COUNT = 1400
PREPROCESSING = Preprocessing(
    resize_size=64, crop_size=64, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)
)
MAPPING_FILE = "LOC_synset_mapping.txt"
_SPLIT_SEED = 0


@dataclass(frozen=True)
class Digits:
    """Pictures uint8 [N, 8, 8] with their digits int64 [N], and their place in scikit-learn's."""

    pictures: npt.NDArray[np.uint8]
    digits: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]


def folder_name(digit: int) -> str:
    """The id that stands for a wnid: ``digit-3``."""
    return f"digit-{digit}"


def split() -> tuple[Digits, Digits]:
    """(train, test), shuffled once and for all: 1400 and 397 pictures without overlap."""
    from sklearn.datasets import load_digits

    data = load_digits()
    # scikit-learn counts grey from 0 to 16
    pictures = np.round(data.images * (255 / 16)).astype(np.uint8)
    order = np.random.Generator(np.random.PCG64(_SPLIT_SEED)).permutation(len(pictures))

    def part(positions: npt.NDArray[np.int64]) -> Digits:
        return Digits(pictures[positions], data.target[positions].astype(np.int64), positions)

    return part(order[:TRAIN_COUNT]), part(order[TRAIN_COUNT:])


def write_test_images(folder: Path) -> bool:
    """Write the test split as ``<folder>/digit-3/0123.png`` with its label mapping.

    Returns:
        Whether anything had to be written.
    """
    mapping = "".join(f"{folder_name(d)} {name}\n" for d, name in enumerate(NAMES))
    changed = _write(folder / MAPPING_FILE, mapping.encode())
    _, test = split()
    for picture, digit, position in zip(test.pictures, test.digits, test.positions, strict=True):
        path = folder / folder_name(int(digit)) / f"{position:04d}.png"
        changed |= _write(path, _png(picture))
    return changed


def fingerprint(part: Digits) -> str:
    """SHA-256 over pictures and digits: changes when scikit-learn's data do."""
    return hashlib.sha256(part.pictures.tobytes() + part.digits.tobytes()).hexdigest()


def _png(picture: npt.NDArray[np.uint8]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, "PNG")
    return stream.getvalue()


def _write(path: Path, content: bytes) -> bool:
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True
