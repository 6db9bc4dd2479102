from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def imagenet_sample() -> Path:
    """The private acceptance set; its pictures may not be part of this repository."""
    default = ROOT.parent / "shared" / "data" / "imagenet-sample"
    folder = Path(os.environ.get("K230_IMAGENET_SAMPLE", default))
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no imagenet-sample at {folder}; set K230_IMAGENET_SAMPLE to its folder")
    return folder
