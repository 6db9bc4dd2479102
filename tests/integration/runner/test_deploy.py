"""deploy.yml on two virtual boards: both variants, idempotent, refused when unfit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from k230_lib.virtual.testing import virtual_board

pytestmark = [pytest.mark.board, pytest.mark.slow]

REPOSITORY = Path(__file__).resolve().parents[3]
NUMBERS = (121, 122)

Deploy = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("rack") / "hosts.yml"
    common = {
        "ansible_user": "root",
        "ansible_ssh_common_args": (
            "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR"
        ),
        "k230_target": "host",
        "k230_virtual": True,
        "k230_wait_timeout": 15,
    }
    with ExitStack() as stack:
        hosts = {}
        for number in NUMBERS:
            board = stack.enter_context(virtual_board(number))
            settings = board.settings
            hosts[f"vb{number}"] = {
                "ansible_host": settings.address,
                "k230_console": settings.console,
            }
        path.write_text(yaml.safe_dump({"k230": {"hosts": hosts, "vars": common}}))
        yield path


@pytest.fixture
def deploy(inventory: Path, tmp_path: Path) -> Deploy:
    def run(*words: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        values = {"deploy_runs": str(tmp_path / "deployed"), **variables}
        tool = Path(sys.executable).with_name("ansible-playbook")
        return subprocess.run(
            [tool, "-i", inventory, "-e", json.dumps(values), "deploy.yml", *words],
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


def changed(output: str) -> dict[str, int]:
    """How many tasks changed something, by board."""
    found = re.findall(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", output, re.MULTILINE)
    return {board: int(count) for board, count in found}


@pytest.mark.parametrize("variant", ["portable", "rvv"])
def test_both_variants_are_deployed_proved_and_not_deployed_twice(
    deploy: Deploy, variant: str
) -> None:
    first = deploy(runner_variant=variant)
    assert first.returncode == 0, first.stdout + first.stderr
    for number in NUMBERS:
        assert changed(first.stdout)[f"vb{number}"] >= 1
    assert first.stdout.count(f"/sharefs/k230/bin/k230_runner-{variant}-") >= len(NUMBERS)
    assert first.stdout.count("computes as the host does") == len(NUMBERS)
    second = deploy(runner_variant=variant)
    assert second.returncode == 0, second.stdout + second.stderr
    assert changed(second.stdout) == {f"vb{number}": 0 for number in NUMBERS}
    assert "compiling" not in second.stdout


def test_a_runner_that_is_no_runner_reaches_no_board(deploy: Deploy, tmp_path: Path) -> None:
    (tmp_path / "runner").write_bytes(b"#!/bin/sh\necho no\n")
    for path, reason in (
        (tmp_path / "runner", "is no ELF file"),
        (Path("/bin/true"), "is neither k230_runner nor executor_runner"),
    ):
        done = deploy(runner_prebuilt=str(path))
        assert done.returncode != 0
        told = " ".join((done.stdout + done.stderr).split())  # long messages are folded
        assert told.count(reason) >= len(NUMBERS), told


def test_check_mode_changes_nothing(deploy: Deploy) -> None:
    done = deploy("--check", runner_variant="portable", runner_tracer=False)
    assert done.returncode == 0, done.stdout + done.stderr
