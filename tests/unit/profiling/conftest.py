"""Files of a small made-up model, written afresh for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.profiling.capture import Capture
from k230_lib.profiling.profile import ModelFiles, Profile, load_profile
from k230_lib.profiling.testing import TIMES_NS, write_etdump, write_etrecord, write_pte

FASTER_NS = (90_000, 40_000, 60_000, 100_000, 30_000, 10_000, 20_000)
"""Times of a variant that speeds up convolutions only."""


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    return ModelFiles(
        etrecord=write_etrecord(tmp_path / "model.etrecord"), pte=write_pte(tmp_path / "model.pte")
    )


@pytest.fixture
def portable(tmp_path: Path, files: ModelFiles) -> Profile:
    """Three executions, the third disturbed."""
    times = [TIMES_NS, TIMES_NS, [4 * ns for ns in TIMES_NS]]
    dump = write_etdump(tmp_path / "portable.etdump", times=times)
    return load_profile(dump, Capture("portable", "board1", wall_ms=(2.014, 2.014)), files)


@pytest.fixture
def faster(tmp_path: Path, files: ModelFiles) -> Profile:
    dump = write_etdump(tmp_path / "faster.etdump", times=[FASTER_NS] * 3)
    return load_profile(dump, Capture("rvv", "board1"), files)
