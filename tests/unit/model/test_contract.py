from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from k230_lib.errors import ModelError
from k230_lib.model.contract import ModelContract, load


def test_what_is_saved_is_loaded(contract: ModelContract, folder: Path) -> None:
    assert load(folder) == contract
    assert load(folder / "model.json", verify_files=True) == contract
    assert contract.class_count == 2
    assert contract.input.nbytes == 4 * 3 * 8 * 8


def test_the_file_has_the_keys_of_the_format(folder: Path) -> None:
    data = json.loads((folder / "model.json").read_text())
    assert data["schema_version"] == 1
    assert data["input"]["preprocessing"] == {
        "resize_size": 8,
        "crop_size": 8,
        "interpolation": "bilinear",
        "antialias": True,
        "mean": [0.485, 0.456, 0.406],
        "std": [0.229, 0.224, 0.225],
    }
    assert data["classes"] == [
        {"index": 0, "name": "cat", "wnid": "n01"},
        {"index": 1, "name": "dog"},
    ]
    assert data["label_offset"] == 0
    assert data["pte"]["file"] == "model.pte"
    assert not list(folder.glob("*.tmp"))


def _drop(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda data: data.pop(key)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_drop("pte"), "is not a model contract: KeyError 'pte'"),
        (lambda data: data.update(schema_version=2), "schema_version 1 expected"),
        (lambda data: data.update(classes=data["classes"][:1]), "2 classes numbered from 0"),
        (
            lambda data: data["input"].update(shape=[1, 3, 9, 9]),
            "input float32[1, 3, 8, 8] expected",
        ),
        (lambda data: data["source"].update(more=1), "is not a model contract"),
        (lambda data: data.update(output=None), "is not a model contract"),
    ],
)
def test_a_damaged_contract_is_told_in_one_line(
    folder: Path, damage: Callable[[dict[str, Any]], object], words: str
) -> None:
    data = json.loads((folder / "model.json").read_text())
    damage(data)
    (folder / "model.json").write_text(json.dumps(data))
    with pytest.raises(ModelError) as caught:
        load(folder)
    assert words in str(caught.value)
    assert "Next: export the model again" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_contract_is_refused(folder: Path, text: str) -> None:
    (folder / "model.json").write_text(text)
    with pytest.raises(ModelError):
        load(folder)


def test_a_missing_contract_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model contract at .*Next: export the model first"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, r"model\.pte is missing"),
        (b"progra", "7 bytes expected, found 6"),
        (b"Program", "sha256 .* expected"),
    ],
)
def test_a_program_that_is_not_the_contracts_is_refused(
    folder: Path, content: bytes | None, words: str
) -> None:
    program = folder / "model.pte"
    program.unlink()
    if content is not None:
        program.write_bytes(content)
    load(folder)
    with pytest.raises(ModelError, match=words):
        load(folder, verify_files=True)
