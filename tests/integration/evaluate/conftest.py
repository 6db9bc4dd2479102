"""Two virtual boards, an inventory with them, and the playbook as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

REPOSITORY = Path(__file__).resolve().parents[3]
NUMBERS = (101, 102)


@dataclass(frozen=True)
class Rack:
    """Running boards by name, and the inventory that names them."""

    boards: dict[str, LightBoard]
    inventory: Path
    variables: dict[str, Any] = field(default_factory=dict)

    def ansible(self, program: str, *words: str, **extra: Any) -> subprocess.CompletedProcess[str]:
        """Run ``ansible`` or ``ansible-playbook`` on the rack; extra variables as keywords."""
        return subprocess.run(
            self.command(program, *words, **extra),
            cwd=REPOSITORY,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def command(self, program: str, *words: str, **extra: Any) -> list[str]:
        """The command line, for tests that have to interrupt it."""
        values = json.dumps({**self.variables, **extra})
        tool = Path(sys.executable).with_name(program)
        return [str(tool), "-i", str(self.inventory), "-e", values, *words]


def environment() -> dict[str, str]:
    """As in a user's shell, without colours that tests would have to strip."""
    return {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}


def host_variables(board: LightBoard) -> dict[str, Any]:
    """What the inventory says of a virtual board."""
    return {"ansible_host": board.settings.address, "k230_console": board.settings.console}


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two boards for all tests of this folder; tests that break one mend it."""
    folder = tmp_path_factory.mktemp("rack")
    inventory = folder / "hosts.yml"
    with ExitStack() as stack:
        boards = {f"vb{n}": stack.enter_context(virtual_board(n)) for n in NUMBERS}
        hosts = {name: host_variables(board) for name, board in boards.items()}
        common = {
            "ansible_user": "root",
            "ansible_ssh_common_args": (
                "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR"
            ),
            "k230_target": "host",
            "k230_virtual": True,
        }
        inventory.write_text(yaml.safe_dump({"k230": {"hosts": hosts, "vars": common}}))
        yield Rack(boards, inventory, {"k230_wait_timeout": 15})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of runs of its own, so that nothing of another test is resumed."""
    return tmp_path / "runs"


@pytest.fixture
def evaluate(rack: Rack, runs: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``ansible-playbook evaluate.yml`` on the rack; further words, variables as keywords."""

    def start(*words: str, **extra: Any) -> subprocess.CompletedProcess[str]:
        values = {"inference_runs": str(runs), **extra}
        return rack.ansible("ansible-playbook", "evaluate.yml", *words, **values)

    return start
