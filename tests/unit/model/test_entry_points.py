from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.errors import InputError
from k230_lib.model.export import plan
from k230_lib.model.zoo import ModelRequest, user_function


def _install(site: Path, entry: str) -> None:
    """A package that offers a model, as pip would leave it."""
    info = site / "k230_offered-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: k230-offered\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[k230.models]\n{entry}\n")
    (site / "k230_offered.py").write_text("def make():\n    raise NotImplementedError\n")


def test_an_installed_package_adds_a_model_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert user_function("my_net") is None
    _install(tmp_path, "my_net = k230_offered:make")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert user_function("my_net") == "k230_offered:make"
    # no weights are needed: the function knows its own
    assert plan(ModelRequest("my_net"), tmp_path).folder == tmp_path / "my_net"


def test_an_entry_point_into_nowhere_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, "my_net = k230_not_there:make")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="k230_not_there:make: no such Python module"):
        plan(ModelRequest("my_net"), tmp_path)
