from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from k230_lib.errors import EnvironmentProblemError, InputError
from k230_lib.model.export import Passes, plan, unchanged
from k230_lib.model.versions import EXPECTED, check
from k230_lib.model.zoo import ModelRequest

ROOT = Path(__file__).resolve().parents[3]


def test_the_expected_pair_is_the_one_that_is_installed_by_us() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package, version in EXPECTED.items():
        assert f"{package}=={version}" in project["dependencies"]


def test_a_pair_that_was_never_tried_is_refused() -> None:
    check({**EXPECTED, "torch": EXPECTED["torch"] + "+cpu"})
    with pytest.raises(EnvironmentProblemError, match=r"torch 2\.\S+ expected, found 2\.0\.0"):
        check({**EXPECTED, "torch": "2.0.0"})


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ModelRequest("mobilenet_v2"), "no weights for mobilenet_v2"),
        (ModelRequest("mobilenet_v2", "gone.pth"), r"weights file gone\.pth does not exist"),
        (ModelRequest("mobilenet_v2", "random:x"), "a seed expected"),
        (ModelRequest("digits", "random:0"), "trains its own weights"),
        (ModelRequest("no_such_package:model"), "no such Python module"),
        (ModelRequest("os:getcwd"), "no such Python module"),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    tmp_path: Path, request_: ModelRequest, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        plan(request_, tmp_path)


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be a folder name"):
        plan(ModelRequest("digits"), tmp_path, "../elsewhere")
    assert plan(ModelRequest("json:loads"), tmp_path).folder == tmp_path / "json-loads"


def test_the_key_covers_everything_that_decides_the_result(tmp_path: Path) -> None:
    weights = tmp_path / "w.pth"
    weights.write_bytes(b"1")
    request = ModelRequest("mobilenet_v2", str(weights))
    first = plan(request, tmp_path).key
    assert plan(request, tmp_path).key == first
    assert plan(request, tmp_path, passes=Passes(fold_batch_norm=False)).key != first
    weights.write_bytes(b"2")
    assert plan(request, tmp_path).key != first


def test_an_edited_model_source_is_exported_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "k230_test_model.py"
    source.write_text("def make():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    request = ModelRequest("k230_test_model:make")
    first = plan(request, tmp_path).key
    source.write_text("def make():\n    return 2\n")
    assert plan(request, tmp_path).key != first


def test_without_a_folder_everything_is_to_be_done(tmp_path: Path) -> None:
    todo = plan(ModelRequest("digits"), tmp_path)
    assert unchanged(todo) is None
    assert not todo.folder.exists()


def test_planning_does_not_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "import k230_lib.model.commands, k230_lib.dataset.commands, k230_lib.dataset.chunk\n"
        "from k230_lib.model.export import plan, unchanged\n"
        "from k230_lib.model.zoo import ModelRequest\n"
        f"unchanged(plan(ModelRequest('digits'), pathlib.Path({str(tmp_path)!r})))\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
