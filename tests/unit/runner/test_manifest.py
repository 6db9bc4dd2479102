from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k230_lib.runner.manifest import git_revision, source_digest


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A repository with a folder ``kernels``, committed."""
    for name in ("runner/main.cpp", "tests/test.cpp", "CMakeLists.txt"):
        path = tmp_path / "kernels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "-m", "one"],
    ):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    return tmp_path / "kernels"


def test_the_revision_tells_sources_that_differ_from_it(kernels: Path) -> None:
    clean = git_revision(kernels)
    assert clean.isalnum()
    (kernels / "tests" / "test.cpp").write_text("changed")
    assert git_revision(kernels) == clean
    (kernels / "runner" / "main.cpp").write_text("changed")
    assert git_revision(kernels) == f"{clean}-dirty"


def test_without_a_repository_there_is_no_revision(tmp_path: Path) -> None:
    assert git_revision(tmp_path) == "none"


def test_the_digest_sees_names_and_contents_of_sources_only(kernels: Path, tmp_path: Path) -> None:
    first = source_digest(kernels)
    for name in ("tests/test.cpp", "tests/more.cpp", "build-x/a.o", "runner/__pycache__/a.pyc"):
        (kernels / name).parent.mkdir(parents=True, exist_ok=True)
        (kernels / name).write_text("other")
    assert source_digest(kernels) == first
    (kernels / "runner" / "main.cpp").write_text("changed")
    changed = source_digest(kernels)
    assert changed != first
    (kernels / "runner" / "main.cpp").rename(kernels / "runner" / "start.cpp")
    assert source_digest(kernels) not in (first, changed)
    own = tmp_path / "relu.cpp"
    own.write_text("")
    assert source_digest(kernels, [own]) != source_digest(kernels)
