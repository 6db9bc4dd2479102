"""The role and the commands as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.board
NUMBER = 239
_ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    file = tmp_path / "hosts.yml"
    hosts = {
        f"vb{number}": {"virtual_board": {"number": number, "card_size": "700MB"}}
        for number in (NUMBER, NUMBER + 1)
    }
    file.write_text(json.dumps({"k230": {"hosts": hosts}}))
    return file


def _boards(command: str, inventory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "k230_lib.virtual.commands", command),
            *("--inventory", str(inventory), "--state-root", str(inventory.parent / "boards")),
            *more,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
    )


def test_commands(inventory: Path) -> None:
    try:
        up = _boards("up", inventory)
        assert up.returncode == 0, up.stderr
        assert up.stdout.count("running") == up.stdout.count("(changed)") == 2
        assert f"ssh root@10.230.{NUMBER}.2" in up.stdout
        assert "(changed)" not in _boards("up", inventory).stdout
        assert json.loads(_boards("up", inventory, "--json").stdout)["changed"] is False
        assert _boards("status", inventory, f"vb{NUMBER}").stdout.count("running") == 1
        wrong = _boards("up", inventory, "vb7")
        assert wrong.returncode == 1
        assert wrong.stderr.startswith("error: ")
        assert f"it has vb{NUMBER}, vb{NUMBER + 1}" in wrong.stderr
        assert len(wrong.stderr.splitlines()) == 1
    finally:
        down = _boards("down", inventory)
    assert down.stdout.count("absent   (changed)") == 2
    card = inventory.parent / f"boards/vb{NUMBER}/card.img"
    assert card.exists()
    assert json.loads(_boards("down", inventory, "--fresh", "--json").stdout)["changed"]
    assert not card.exists()


def _play(inventory: Path, state: str, *more: str) -> str:
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("ansible-playbook"), "playbooks/virtual_boards.yml"),
            *("-i", str(inventory), "-e", f"virtual_boards_state={state}"),
            *("-e", f"virtual_boards_state_root={inventory.parent / 'boards'}"),
            *more,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_role_tells_changes_truly(inventory: Path) -> None:
    try:
        assert "changed=1" in _play(inventory, "present", "--check")
        assert "changed=1" in _play(inventory, "present")
        assert "changed=0" in _play(inventory, "present", "--check")
        again = _play(inventory, "present")
        assert "changed=0" in again
        assert f"ssh root@10.230.{NUMBER}.2" in again
    finally:
        first = _play(inventory, "absent")
    assert "changed=1" in first
    assert "changed=0" in _play(inventory, "absent")
