"""Mistakes at the command line are told in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def k230(*words: str, module: str = "k230_lib") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *words], capture_output=True, text=True, check=False
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


@pytest.mark.parametrize(
    ("module", "words"), [("k230_lib", ["boards"]), ("k230_lib.virtual.commands", [])]
)
def test_boards_tell_the_same_with_and_without_the_other_rooms(
    tmp_path: Path, module: str, words: list[str]
) -> None:
    missing = tmp_path / "hosts.yml"
    done = k230(*words, "status", "--inventory", str(missing), module=module)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: inventory {missing}: No such file or directory. Next: give one with --inventory.\n"
    )
