from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from k230_lib.dataset.commands import app
from k230_lib.dataset.manifest import load
from k230_lib.errors import K230Error
from k230_lib.model.contract import ModelContract, save

MakeContract = Callable[..., ModelContract]
MakeTree = Callable[..., Path]


@pytest.fixture
def model(tmp_path: Path, make_contract: MakeContract) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    save(make_contract(), folder)
    return folder


@pytest.fixture
def prepare(tmp_path: Path, model: Path) -> Callable[..., Result]:
    def run(*arguments: str) -> Result:
        out = tmp_path / "artifacts" / "datasets"
        fixed = ["prepare", "--model", str(model), "--name", "set", "--out", str(out)]
        return CliRunner().invoke(app, [*fixed, *arguments])

    return run


def _answer(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    answer: dict[str, object] = json.loads(result.stdout)
    return answer


def test_json_is_all_that_standard_output_has(
    make_tree: MakeTree, prepare: Callable[..., Result], tmp_path: Path
) -> None:
    images = str(make_tree())
    foreseen = _answer(prepare(images, "--json", "--check"))
    assert (foreseen["changed"], foreseen["images"]) == (True, 6)
    assert not (tmp_path / "artifacts").exists()
    done = _answer(prepare(images, "--json"))
    assert (done["changed"], done["images"], done["classes"]) == (True, 6, 3)
    assert load(Path(str(done["folder"]))).dtype == "uint8"
    again = _answer(prepare(images, "--json"))
    assert again["changed"] is False
    assert _answer(prepare(images, "--json", "--check"))["changed"] is False


def test_people_get_a_sentence(make_tree: MakeTree, prepare: Callable[..., Result]) -> None:
    result = prepare(str(make_tree()), "--limit", "3", "--dtype", "float32")
    assert "set: prepared, 3 images in 1 shards, 0 skipped" in result.stdout


def test_check_mode_works_before_the_model_exists(
    make_tree: MakeTree, prepare: Callable[..., Result], model: Path
) -> None:
    (model / "model.json").unlink()
    assert _answer(prepare(str(make_tree()), "--json", "--check"))["changed"] is True


def test_digits_are_written_beside_the_datasets(
    prepare: Callable[..., Result], tmp_path: Path, make_contract: MakeContract, model: Path
) -> None:
    save(make_contract(names=[str(k) for k in range(10)]), model)
    assert _answer(prepare("--digits", "--json", "--check"))["changed"] is True
    assert not (tmp_path / "artifacts").exists()
    done = _answer(prepare("--digits", "--json"))
    assert (done["images"], done["classes"]) == (397, 10)
    assert (tmp_path / "artifacts" / "images" / "digits" / "digit-7").is_dir()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/nowhere"], "image folder /nowhere does not exist"),
        ([], "an image folder or --digits expected"),
        (["/", "--digits"], "found both or none"),
        (["/", "--layout", "heap"], "layout 'heap' is unknown"),
        (["/", "--dtype", "int4"], "dtype 'int4' is unknown"),
    ],
)
def test_mistakes_are_told_in_one_line(
    prepare: Callable[..., Result], arguments: list[str], words: str
) -> None:
    result = prepare(*arguments)
    assert isinstance(result.exception, K230Error)
    assert words in str(result.exception)
    assert "\n" not in str(result.exception)
