"""A small real model, exported and run here with the wheel's runtime."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_MAKE = Path(__file__).with_name("make_real_model.py")


@dataclass(frozen=True)
class RealModel:
    """Files of the model, of a wider one, and traces of 1, 5 and 50 executions of the first."""

    folder: Path

    @property
    def pte(self) -> Path:
        return self.folder / "model.pte"

    @property
    def etrecord(self) -> Path:
        return self.folder / "model.etrecord"

    def etdump(self, executions: int) -> Path:
        return self.folder / f"model{executions}.etdump"


@pytest.fixture(scope="session")
def real_model(tmp_path_factory: pytest.TempPathFactory) -> RealModel:
    """Made in a process of its own: torch stays out of pytest's."""
    folder = tmp_path_factory.mktemp("real-model")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(_MAKE), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return RealModel(folder)
