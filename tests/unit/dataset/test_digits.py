from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from k230_lib.dataset.digits import split, write_test_images
from k230_lib.dataset.layouts import Request, list_images


def test_train_and_test_have_no_picture_in_common() -> None:
    train, test = split()
    assert (len(train.digits), len(test.digits)) == (1400, 397)
    assert not set(train.positions) & set(test.positions)
    assert set(test.digits) == set(range(10))


def test_the_test_split_is_a_user_dataset_on_disk(tmp_path: Path) -> None:
    assert write_test_images(tmp_path)
    _, test = split()
    truth = dict(zip(test.positions, test.digits, strict=True))
    listing = list_images(Request(tmp_path))
    entries = [e for e in listing.entries if e.path.endswith(".png")]
    assert len(entries) == len(listing.entries) == 397
    assert all(entry.label == truth[int(Path(entry.path).stem)] for entry in entries)
    position = int(test.positions[0])
    picture = np.asarray(Image.open(tmp_path / f"digit-{test.digits[0]}" / f"{position:04d}.png"))
    np.testing.assert_array_equal(picture, test.pictures[0])


def test_only_what_is_missing_is_written(tmp_path: Path) -> None:
    write_test_images(tmp_path)
    assert not write_test_images(tmp_path)
    next(tmp_path.glob("digit-3/*.png")).unlink()
    assert write_test_images(tmp_path)
    assert len(list(tmp_path.glob("*/*.png"))) == 397
