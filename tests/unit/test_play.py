"""What ``k230 play`` reads from Ansible's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.errors import InputError
from k230_lib.play import BoardProgress, find_playbook, parse_progress

REPOSITORY = Path(__file__).resolve().parents[2]


def test_progress_lines_are_told_from_others() -> None:
    line = (
        'K230PROGRESS {"board":"vb1","done":41,"event":"inference","rate":12.34,"top1":0.95,'
        '"total":397}'
    )
    assert parse_progress(line) == BoardProgress("vb1", 41, 397, "12.3/s top-1 95.0 %")
    assert parse_progress("ok: [vb1]") is None
    assert parse_progress('K230PROGRESS {"board":"vb1"') is None
    assert parse_progress('K230PROGRESS {"board":"vb1"}') is None


def test_playbooks_are_found_by_name_and_by_file() -> None:
    assert find_playbook("evaluate", REPOSITORY) == REPOSITORY / "evaluate.yml"
    assert find_playbook("playbooks/virtual_boards.yml", REPOSITORY).name == "virtual_boards.yml"
    with pytest.raises(InputError, match="there is no playbook evalute.*evaluate"):
        find_playbook("evalute", REPOSITORY)
