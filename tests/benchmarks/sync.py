"""Time ``dataset_sync`` against one raw ``ssh board 'cat > file'`` of the same bytes.

    python -m tests.benchmarks.sync [--shards 16] [--rate 12000000] [--rounds 2]

Needs root (a virtual board, provisioned first). The link is as fast as the board's Ethernet (a
100 Mbit/s USB adapter) unless ``--rate 0`` lifts the limit; then the processors of this machine
are what limits both, and whatever verifies a byte costs some of its speed. Prints one table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from k230_lib.model.contract import Preprocessing
from k230_lib.virtual.faults import Faults
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

from ..inputs import write_dataset

REPOSITORY = Path(__file__).resolve().parents[2]
BOARD = 199
IMAGE_BYTES, SHARD_IMAGES = 3 * 224 * 224, 64
REQUIRED = 0.9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--rate", type=int, default=12_000_000, help="bytes per second")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    best = {"ssh cat": float("inf"), "dataset_sync": float("inf")}
    with (
        tempfile.TemporaryDirectory(prefix="k230-bench-") as scratch,
        virtual_board(BOARD) as board,
    ):
        folder = Path(scratch)
        # SSH does not compress, so the content does not matter
        shape = (options.shards * SHARD_IMAGES, IMAGE_BYTES)
        pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        write_dataset(
            folder / "dataset", pixels, [0] * len(pixels), SHARD_IMAGES, Preprocessing(256, 224)
        )
        whole = pixels.tobytes()
        inventory = _write_inventory(folder, board)
        _ansible(folder, "ansible-playbook", "provision.yml", "-i", inventory)
        if options.rate:
            Faults(BOARD).ssh_slow(options.rate)
        for _ in range(options.rounds):
            best["ssh cat"] = min(best["ssh cat"], _raw(folder, board, whole))
            best["dataset_sync"] = min(best["dataset_sync"], _sync(folder, inventory, board))
    size = len(whole)
    link = f"{options.rate / 1e6:g} MB/s" if options.rate else "not limited"
    print(f"{size / 1e6:.0f} MB in {options.shards} shards, link {link}, best of the rounds")
    print(f"{'way':<14}{'seconds':>9}{'MB/s':>8}{'ratio':>7}{'required':>10}")
    raw = best["ssh cat"]
    for name, seconds in best.items():
        required = "-" if name == "ssh cat" else REQUIRED
        rate = size / seconds / 1e6
        print(f"{name:<14}{seconds:>9.2f}{rate:>8.1f}{raw / seconds:>7.2f}{required:>10}")
    return int(raw / best["dataset_sync"] < REQUIRED)


def _write_inventory(folder: Path, board: LightBoard) -> str:
    values = {
        "ansible_host": board.settings.address,
        "ansible_user": "root",
        "ansible_ssh_common_args": " ".join(board.ssh_options()),
        "k230_console": board.settings.console,
        "k230_virtual": True,
        "k230_target": "host",
    }
    path = folder / "hosts.json"
    path.write_text(json.dumps({"k230": {"hosts": {board.name: values}}}))
    return str(path)


def _ansible(folder: Path, program: str, *words: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *words],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout


def _sync(folder: Path, inventory: str, board: LightBoard) -> float:
    _ssh(folder, board, "rm -rf /sharefs/k230")
    module = ["-m", "k230.executorch.dataset_sync", "-a", f"dataset={folder / 'dataset'}"]
    text = _ansible(folder, "ansible", board.name, "-i", inventory, *module)
    return float(json.loads(text[text.index("{") : text.rindex("}") + 1])["seconds"])


def _raw(folder: Path, board: LightBoard, content: bytes) -> float:
    _ssh(folder, board, "true")
    started = time.perf_counter()
    _ssh(folder, board, "cat >/sharefs/raw.bin", content)
    seconds = time.perf_counter() - started
    _ssh(folder, board, "rm /sharefs/raw.bin")
    return seconds


def _ssh(folder: Path, board: LightBoard, script: str, content: bytes = b"") -> None:
    """Over a connection that is open already, as Ansible's is."""
    shared = ["-o", "ControlMaster=auto", "-o", f"ControlPath={folder}/raw"]
    command = ["ssh", "-T", *board.ssh_options(), *shared, "-o", "ControlPersist=60"]
    subprocess.run([*command, f"root@{board.settings.address}", script], input=content, check=True)


if __name__ == "__main__":
    sys.exit(main())
