"""``kill -9`` of ansible-playbook, again and again: the run still ends complete, nothing twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.board, pytest.mark.fault, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).resolve().parents[3]
KILLS = 20


def test_killed_twenty_times(
    make_rack: Callable[[int], Any],
    make_world: Callable[..., Any],
    check_complete: Callable[..., None],
    tmp_path: Path,
) -> None:
    rack, world = make_rack(2), make_world(1300)
    hosts = {
        board.name: {"ansible_host": board.settings.address, "console": board.settings.console}
        for board in rack.boards
    }
    variables = {
        "ansible_user": "root",
        "ansible_ssh_common_args": "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no",
    }
    task = {
        "model": str(world.model),
        "dataset": str(world.dataset),
        "host_logits": str(world.host),
        "runner": rack.runner_path,
        "runner_sha256": rack.runner.sha256,
        "console": "{{ console }}",
        "runs": str(rack.runs),
        "cross_check": 0,
        "pace_ms": 100,
        "chunk": 16,
    }
    play = [
        {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"k230.executorch.batch_inference": task}],
        }
    ]
    (tmp_path / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts, "vars": variables}})
    )
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    tool = Path(sys.executable).with_name("ansible-playbook")
    command = [str(tool), "-i", str(tmp_path / "hosts.yml"), str(tmp_path / "play.yml")]
    source = random.Random(2)
    run = rack.open(world)
    done = [0]
    for _ in range(KILLS):
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            time.sleep(source.uniform(1.0, 9.0))
            os.kill(process.pid, signal.SIGKILL)
        time.sleep(1.0)
        queue = run.queue()
        done.append(queue.counts().done)
        queue.close()
    assert done == sorted(done)
    assert done[-1] > 0
    last = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False
    )
    assert last.returncode == 0, last.stdout
    check_complete(run, world)
    db = sqlite3.connect(run.database)
    computed = db.execute("SELECT SUM(computed) FROM chunks").fetchone()[0]
    failures = db.execute("SELECT COUNT(*) FROM failures").fetchone()[0]
    db.close()
    assert (computed, failures) == (world.count, 0)
    print(f"\ndone after each kill: {done}")
