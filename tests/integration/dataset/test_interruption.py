"""A prepare that is killed leaves no process behind, and the next one continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
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
SHARDS = 60


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """``k230 dataset prepare`` on enough pictures for two seconds of work."""
    folder = tmp_path / "images" / "one"
    folder.mkdir(parents=True)
    source = np.random.default_rng(0)
    for number in range(SHARDS * 4):
        pixels = source.integers(0, 256, (400, 400, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:04d}.jpg", quality=95)
    (tmp_path / "images" / "LOC_synset_mapping.txt").write_text("one 1st\n")
    contract = ModelContract(
        name="small",
        source=Source("random", "random:0", "0" * 64),
        input=InputSpec((1, 3, 224, 224), Preprocessing(256, 224)),
        output=OutputSpec((1, 1)),
        classes=(ModelClass(0, "1st"),),
        operators=(),
        planned_buffers=(),
        pte=FileRef("model.pte", "0", 0),
        etrecord=FileRef("model.etrecord", "0", 0),
        versions={},
    )
    (tmp_path / "model").mkdir()
    save(contract, tmp_path / "model")
    return [
        *(sys.executable, "-c", "from k230_lib.dataset.commands import app; app()"),
        *("prepare", str(tmp_path / "images"), "--model", str(tmp_path / "model")),
        *("--name", "set", "--out", str(tmp_path / "out"), "--shard-size", "4"),
        *("--workers", "2", "--json"),
    ]


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found |= {child, *_descendants(child)}
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_and_continued(command: list[str], tmp_path: Path, how: signal.Signals) -> None:
    store = tmp_path / "out" / ".store"
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(list(store.glob("*/*.json"))) < 5:
        assert process.poll() is None, "ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = _descendants(process.pid)
    assert workers
    if how is signal.SIGINT:
        # as a terminal does: to every process of the group
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    try:
        process.wait(30)
        while any(_alive(pid) for pid in workers):
            assert time.monotonic() < deadline, "a worker outlived its parent"
            time.sleep(0.05)
    finally:
        for pid in filter(_alive, workers):
            os.kill(pid, signal.SIGKILL)
    told = process.stderr.read() if process.stderr else b""
    assert b"Traceback" not in told
    assert not (tmp_path / "out" / "set").exists()

    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["images"] == SHARDS * 4
    assert 5 <= answer["reused_shards"] < SHARDS
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".store", ".set.lock", "set"}
    assert not list((tmp_path / "out").rglob("*.tmp"))
