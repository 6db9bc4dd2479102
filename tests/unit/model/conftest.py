from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from k230_lib.model.contract import (
    FileRef,
    InputSpec,
    ModelClass,
    ModelContract,
    OutputSpec,
    Preprocessing,
    Source,
    save,
)

MakeFolder = Callable[[], Path]


@pytest.fixture
def contract(tmp_path: Path) -> ModelContract:
    """A contract whose files lie in ``tmp_path``."""
    (tmp_path / "model.pte").write_bytes(b"program")
    (tmp_path / "model.etrecord").write_bytes(b"record")
    return ModelContract(
        name="small",
        source=Source("file", "small.pth", "1" * 64),
        input=InputSpec((1, 3, 8, 8), Preprocessing(8, 8)),
        output=OutputSpec((1, 2)),
        classes=(ModelClass(0, "cat", "n01"), ModelClass(1, "dog")),
        operators=("aten::addmm.out", "aten::convolution.out"),
        planned_buffers=(2048,),
        pte=FileRef.of(tmp_path / "model.pte"),
        etrecord=FileRef.of(tmp_path / "model.etrecord"),
        versions={"torch": "2.14.1"},
        published={"top1": 0.7},
        export={"key": "k"},
    )


@pytest.fixture
def folder(contract: ModelContract, tmp_path: Path) -> Path:
    """The model's folder with its contract written."""
    save(contract, tmp_path)
    return tmp_path
