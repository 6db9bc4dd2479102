"""``ansible -c k230.executorch.msh -m raw``: the RT-Smart core as an Ansible host."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.board, pytest.mark.slow]

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def raw(make_rack: Callable[[int], Any], tmp_path: Path) -> Callable[..., str]:
    """Run a raw command on both boards and return Ansible's output."""
    rack = make_rack(2)
    inventory = tmp_path / "hosts.ini"
    hosts = "".join(f"{b.name} k230_console={b.settings.console}\n" for b in rack.boards)
    inventory.write_text(
        f"[rt_boards]\n{hosts}[rt_boards:vars]\nansible_connection=k230.executorch.msh\n"
    )

    def run(command: str, **variables: str) -> str:
        words = [word for item in variables.items() for word in ("-e", "=".join(item))]
        done = subprocess.run(
            [
                *(
                    str(Path(sys.executable).with_name("ansible")),
                    "rt_boards",
                    "-i",
                    str(inventory),
                ),
                *("-m", "raw", "-a", command, *words),
            ],
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr

    return run


def test_command_on_every_board(raw: Callable[..., str], tmp_path: Path) -> None:
    output = raw("free", ansible_msh_log=str(tmp_path / "logs"))
    assert output.count("CHANGED | rc=0") == 2
    assert output.count("total memory: ") == 2
    assert len(list((tmp_path / "logs").glob("*.log"))) == 2


def test_return_codes_made_from_the_text(raw: Callable[..., str]) -> None:
    assert raw("nosuch --flag").count("FAILED | rc=127") == 2
    assert "1024" in raw("echo " + "x" * 1100)


def test_busy_console_is_unreachable_with_the_reason(
    raw: Callable[..., str], make_rack: Callable[[int], Any]
) -> None:
    port = int(make_rack(2).boards[0].settings.console.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)):
        output = raw("pwd")
    assert output.count("UNREACHABLE!") == 1
    assert "serves another client" in output
    assert output.count("CHANGED | rc=0") == 1
