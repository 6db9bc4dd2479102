"""What goes wrong is told in one line that names the board or file and what to do next."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

pytestmark = [pytest.mark.board, pytest.mark.slow]

Evaluate = Callable[..., subprocess.CompletedProcess[str]]
REPOSITORY = Path(__file__).resolve().parents[3]
FEW = {"dataset_limit": 30, "dataset_name": "digits-30"}


def told(output: str) -> list[str]:
    """The messages of failed tasks as Ansible's YAML output has them, unfolded."""
    messages = []
    for block in re.findall(r"^fatal: .*?(?=^\S|\Z)", output, re.MULTILINE | re.DOTALL):
        found = re.search(r"^    msg: (.*?)(?=^    \w+:|\Z)", block, re.MULTILINE | re.DOTALL)
        assert found, block
        messages.append(" ".join(found[1].split()).strip("'").replace("''", "'"))
    return messages


def fails_with(done: subprocess.CompletedProcess[str], *words: str) -> str:
    """The message of a failed task that has all ``words``; no traceback anywhere."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    for message in told(done.stdout):
        if all(word in message for word in words):
            assert "Next:" in message, message
            return message
    raise AssertionError(f"no message with {words} in: {told(done.stdout)}\n{done.stdout}")


@pytest.fixture(scope="module")
def prepared(rack: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Arguments of batch_inference that work on vb101, up to the runner's path."""
    runs = tmp_path_factory.mktemp("prepared")
    done = rack.ansible(
        "ansible-playbook", "evaluate.yml", "--limit", "vb101", inference_runs=str(runs), **FEW
    )
    assert done.returncode == 0, done.stdout + done.stderr
    inputs = json.loads(next(runs.glob("*/inputs.json")).read_text())
    sha256 = inputs["settings"]["runner_sha256"]
    return {
        "model": inputs["model"],
        "dataset": inputs["dataset"],
        "runner": f"/sharefs/k230/bin/k230_runner-portable-{sha256[:12]}",
        "runner_sha256": sha256,
        "console": rack.boards["vb101"].settings.console,
    }


@pytest.fixture
def infer(
    rack: Any, prepared: dict[str, str], runs: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``ansible -m batch_inference`` on vb101, with some arguments replaced."""

    def start(**changed: str) -> subprocess.CompletedProcess[str]:
        arguments = json.dumps({**prepared, "runs": str(runs), **changed})
        module = "k230.executorch.batch_inference"
        return rack.ansible("ansible", "vb101", "-m", module, "-a", arguments)

    return start


def adhoc_message(done: subprocess.CompletedProcess[str], *words: str) -> str:
    """As :func:`fails_with`, for the output of ``ansible``, which is JSON or YAML."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    flat = " ".join((done.stdout + done.stderr).split())
    assert all(word in flat for word in words), flat
    assert "Next:" in flat, flat
    return flat


@pytest.fixture
def model_copy(prepared: dict[str, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared["model"], tmp_path / "model"))


def replace_program(model: Path, content: bytes) -> None:
    """Another ``.pte`` whose size and hash the contract names."""
    (model / "model.pte").write_bytes(content)
    contract = json.loads((model / "model.json").read_text())
    contract["pte"] |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (model / "model.json").write_text(json.dumps(contract))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Ten labelled pictures, two of each of five digits' classes."""
    source = REPOSITORY / "artifacts" / "images" / "digits"
    target = tmp_path / "pictures"
    target.mkdir()
    shutil.copy(source / "LOC_synset_mapping.txt", target)
    for folder in sorted(path for path in source.iterdir() if path.is_dir())[:5]:
        (target / folder.name).mkdir()
        for picture in sorted(folder.iterdir())[:2]:
            shutil.copy(picture, target / folder.name)
    return target


def test_missing_weights(evaluate: Evaluate) -> None:
    fails_with(
        evaluate(model_name="mobilenet_v2", model_weights="/nowhere/mv2.pth"), "/nowhere/mv2.pth"
    )


def test_unknown_model(evaluate: Evaluate) -> None:
    fails_with(evaluate(model_name="mobilnet_v2"), "mobilnet_v2")


def test_model_without_its_program(infer: Evaluate, model_copy: Path) -> None:
    (model_copy / "model.pte").unlink()
    adhoc_message(infer(model=str(model_copy)), "model.pte")


def test_truncated_program(infer: Evaluate, model_copy: Path) -> None:
    program = model_copy / "model.pte"
    program.write_bytes(program.read_bytes()[:10_000])
    adhoc_message(infer(model=str(model_copy)), "model.pte")


def test_program_of_another_model(infer: Evaluate, model_copy: Path) -> None:
    """A file that is a whole .pte in name only, with a contract that agrees with its hash."""
    replace_program(model_copy, b"no program at all" * 1000)
    adhoc_message(infer(model=str(model_copy)), "vb101")


def test_picture_that_is_none(evaluate: Evaluate, images: Path) -> None:
    folder = next(path for path in sorted(images.iterdir()) if path.is_dir())
    (folder / "zz.png").write_bytes(b"this is text")
    fails_with(evaluate(dataset_images=str(images), dataset_name="broken"), "zz.png")


def test_label_file_without_the_class(evaluate: Evaluate, tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / "n01440764"
    folder.mkdir(parents=True)
    Image.new("RGB", (80, 80), "teal").save(folder / "a.png")
    mapping = tmp_path / "LOC_synset_mapping.txt"
    mapping.write_text("n01443537 goldfish\nn01484850 great white shark\n")
    done = evaluate(
        dataset_images=str(folder.parent), dataset_mapping=str(mapping), dataset_name="unlabelled"
    )
    fails_with(done, "n01440764")


@pytest.fixture
def board(rack: Any) -> Iterator[Any]:
    """vb101, mended afterwards."""
    board = rack.boards["vb101"]
    yield board
    board.faults.clear()


def test_full_card(infer: Evaluate, board: Any, model_copy: Path, rack: Any) -> None:
    # Another model, or the file would be there already.
    replace_program(model_copy, (model_copy / "model.pte").read_bytes() + b"\0" * 4096)
    board.faults.fill_card(100_000)
    try:
        adhoc_message(infer(model=str(model_copy)), "vb101", "free")
    finally:
        done = rack.ansible("ansible", "vb101", "-m", "raw", "-a", "rm /sharefs/filler.bin")
        assert done.returncode == 0


def test_busy_console(infer: Evaluate, board: Any) -> None:
    address = urlsplit(board.settings.console)
    with socket.create_connection((address.hostname, address.port)):
        adhoc_message(infer(), "vb101", "console")


def test_linux_answers_instead_of_msh(infer: Evaluate, board: Any) -> None:
    board.faults.wrong_console()
    try:
        adhoc_message(infer(), "vb101", "Linux")
    finally:
        board.faults.wrong_console(False)


def test_console_that_does_not_exist(infer: Evaluate) -> None:
    adhoc_message(infer(console="/dev/serial/by-id/nothing-here"), "nothing-here")


def test_the_board_works_after_all_this(infer: Evaluate) -> None:
    done = infer()
    assert done.returncode == 0, done.stdout + done.stderr
