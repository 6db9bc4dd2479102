"""Recorded answers of boards, as facts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from k230_lib.board.facts import parse_facts
from k230_lib.board.gpt import GptTable
from k230_lib.board.records import BoardFacts, Disk

_TRANSCRIPTS = Path(__file__).parents[2] / "transcripts"


@pytest.fixture
def transcript() -> Callable[[str], str]:
    """The recorded answer of that name."""
    return lambda name: (_TRANSCRIPTS / f"facts-{name}.txt").read_text()


@pytest.fixture
def board_facts(transcript: Callable[[str], str]) -> Callable[..., BoardFacts]:
    """Facts of a recorded board, with fields replaced."""

    def make(name: str = "sdk19-stock", **changes: object) -> BoardFacts:
        facts = parse_facts(transcript(name), board="b1", now=0.0)
        return dataclasses.replace(facts, **changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def changed_table() -> Callable[..., BoardFacts]:
    """Facts with another state of the partition table, or of its fields."""

    def change(facts: BoardFacts, *, table: dict[str, object] | None = None, **state: object):
        disk = facts.disk
        assert isinstance(disk, Disk) and isinstance(disk.gpt.table, GptTable)
        fresh = dataclasses.replace(disk.gpt.table, **(table or {}))  # type: ignore[arg-type]
        gpt = dataclasses.replace(disk.gpt, **{"table": fresh, **state})  # type: ignore[arg-type]
        return dataclasses.replace(facts, disk=dataclasses.replace(disk, gpt=gpt))

    return change
