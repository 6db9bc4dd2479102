"""The modules and roles in a real play on the controller; no board is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

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

ROOT = Path(__file__).resolve().parents[3]

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: Prepare
      ansible.builtin.import_role:
        name: k230.executorch.dataset
        tasks_from: prepare
"""


@pytest.fixture
def play(tmp_path: Path) -> Path:
    (tmp_path / "play.yml").write_text(PLAY)
    for name in ("one", "two"):
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        Image.new("RGB", (20, 20), "red").save(folder / f"it's {name}.png")
    (tmp_path / "images" / "LOC_synset_mapping.txt").write_text("one 1st\ntwo 2nd\n")
    (tmp_path / "model").mkdir()
    contract = ModelContract(
        name="small",
        source=Source("random", "random:0", "0" * 64),
        input=InputSpec((1, 3, 16, 16), Preprocessing(16, 16)),
        output=OutputSpec((1, 2)),
        classes=(ModelClass(0, "1st"), ModelClass(1, "2nd")),
        operators=(),
        planned_buffers=(),
        pte=FileRef("model.pte", "0", 0),
        etrecord=FileRef("model.etrecord", "0", 0),
        versions={},
    )
    save(contract, tmp_path / "model")
    return tmp_path


def _run(play: Path, *arguments: str) -> tuple[int, str]:
    variables = {
        "dataset_artifacts": str(play / "artifacts"),
        "dataset_images": str(play / "images"),
        "dataset_model_folder": str(play / "model"),
    }
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"),
        *("-i", "localhost,", "-e", json.dumps(variables), *arguments, str(play / "play.yml")),
    ]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_check_run_and_run_again(play: Path) -> None:
    status, output = _run(play, "--check")
    assert (status, "changed=1" in output) == (0, True), output
    assert not (play / "artifacts").exists()
    status, output = _run(play)
    assert (status, "changed=1" in output) == (0, True), output
    dataset = json.loads((play / "artifacts/datasets/images/dataset.json").read_text())
    assert dataset["counts"]["images"] == 2
    status, output = _run(play)
    assert (status, "changed=0" in output) == (0, True), output


def test_a_file_that_is_no_image_fails_the_task_with_one_line(play: Path) -> None:
    (play / "images" / "one" / "notes.txt").write_text("no picture")
    status, output = _run(play)
    assert status != 0
    assert "1 of 3 files cannot be used (allowed: 0), the first is one/notes.txt: not an" in output
    assert "Traceback" not in output
    status, output = _run(play, "-e", "dataset_max_skipped=1")
    assert status == 0, output


def test_an_unknown_folder_is_named(play: Path) -> None:
    (play / "images" / "three").mkdir()
    status, output = _run(play)
    assert status != 0
    assert "folder three is of class three" in output
