"""Mistakes at the command line are told in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def k230(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "k230_lib", *words], capture_output=True, text=True, check=False
    )


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    out = tmp_path / "file" / "models"
    done = k230("model", "export", "digits", "--out", str(out))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"error: {out}: Not a directory. Next: check the path, its permissions and the free space."
    )
