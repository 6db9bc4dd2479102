"""Every kind of unusable file gets one clear error, and none can crash the reader."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from k230_lib.errors import InputError
from k230_lib.profiling.etdump import read_etdump
from k230_lib.profiling.etrecord import read_etrecord
from k230_lib.profiling.pte import read_pte
from k230_lib.profiling.testing import (
    Writer,
    string,
    table,
    vector,
    write_etdump,
    write_etrecord,
    write_pte,
)

READERS = {
    "etdump": (write_etdump, read_etdump),
    "etrecord": (write_etrecord, read_etrecord),
    "pte": (write_pte, read_pte),
}
KINDS = pytest.mark.parametrize("kind", READERS)


def message_of(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(InputError) as raised:
        read(path)
    text = str(raised.value)
    assert "\n" not in text
    assert str(path) in text
    assert "Next: " in text
    return text


@KINDS
def test_a_missing_file_is_named(kind: str, tmp_path: Path) -> None:
    assert "no such" in message_of(READERS[kind][1], tmp_path / "nothing")


@KINDS
def test_an_empty_file_is_called_empty(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert "is empty" in message_of(READERS[kind][1], path)


@KINDS
def test_a_folder_is_called_a_folder(kind: str, tmp_path: Path) -> None:
    assert "a folder" in message_of(READERS[kind][1], tmp_path)


@KINDS
def test_a_truncated_file_is_called_truncated(kind: str, tmp_path: Path) -> None:
    write, read = READERS[kind]
    whole = write(tmp_path / "whole").read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    assert "truncated" in message_of(read, cut)


@pytest.mark.parametrize(
    ("given", "expected", "words"),
    [
        ("etdump", "pte", "not a .pte"),
        ("etdump", "etrecord", "an ETDump"),
        ("pte", "etdump", "a .pte model"),
        ("pte", "etrecord", "a .pte model"),
        ("etrecord", "etdump", "an ETRecord or other zip file"),
        ("etrecord", "pte", "not a .pte"),
    ],
)
def test_a_file_of_another_kind_is_recognised(
    given: str, expected: str, words: str, tmp_path: Path
) -> None:
    path = READERS[given][0](tmp_path / "file")
    assert words in message_of(READERS[expected][1], path)


@KINDS
def test_text_is_not_taken_for_a_file_of_ours(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("msh />executor_runner --model_path /sharefs/model.pte\n" * 9)
    assert "not a" in message_of(READERS[kind][1], path)


def test_files_of_other_releases_are_said_to_be_so(tmp_path: Path) -> None:
    dump = write_etdump(tmp_path / "a", identifier=b"ED07")
    assert "ED07, expected ED00" in message_of(read_etdump, dump)
    program = write_pte(tmp_path / "b", identifier=b"ET11")
    assert "ET11, expected ET12" in message_of(read_pte, program)
    record = write_etrecord(tmp_path / "c", identifier="ETRECORD_V1")
    assert "version V1, expected V0" in message_of(read_etrecord, record)


def test_an_etrecord_without_its_parts_says_which(tmp_path: Path) -> None:
    no_map = write_etrecord(tmp_path / "a", leave_out=["debug_handle_map"])
    assert "no operator map" in message_of(read_etrecord, no_map)
    no_graph = write_etrecord(tmp_path / "b", leave_out=["edge_dialect_exported_program/forward"])
    assert "no graph of method 'forward'" in message_of(read_etrecord, no_graph)
    other_zip = write_etrecord(tmp_path / "c", leave_out=["ETRECORD_V0"])
    assert "not an ETRecord" in message_of(read_etrecord, other_zip)


def test_an_etrecord_of_an_older_release_is_read(tmp_path: Path) -> None:
    older = read_etrecord(write_etrecord(tmp_path / "older", older_layout=True))
    newer = read_etrecord(write_etrecord(tmp_path / "newer"))
    assert older.nodes == newer.nodes


def write_blocks(path: Path, blocks: Writer) -> Path:
    """An ETDump whose list of blocks is ``blocks``."""
    body = bytearray(b"\0" * 4 + b"ED00")
    body[:4] = table({0: ("<I", 0), 1: blocks})(body).to_bytes(4, "little")
    path.write_bytes(len(body).to_bytes(4, "little") + body)
    return path


def test_an_etdump_without_events_says_what_was_missing(tmp_path: Path) -> None:
    empty = write_blocks(tmp_path / "empty", vector([]))
    assert "built with the event tracer" in message_of(read_etdump, empty)


def test_a_small_file_cannot_claim_endless_events(tmp_path: Path) -> None:
    """Ten thousand blocks that are one and the same block in the file."""
    events = vector([table({0: table({0: string("x"), 7: ("<Q", 9)})}) for _ in range(20)])
    written: list[int] = []

    def block(buffer: bytearray) -> int:
        if not written:
            written.append(table({0: string("Execute"), 3: events})(buffer))
        return written[0]

    path = write_blocks(tmp_path / "many", vector([block] * 10_000))
    assert path.stat().st_size < 50_000
    assert "more events than fit" in message_of(read_etdump, path)


@KINDS
def test_a_file_cut_anywhere_is_refused(kind: str, tmp_path: Path) -> None:
    """Never a crash, never another exception, never half a table."""
    write, read = READERS[kind]
    whole = write(tmp_path / "whole").read_bytes()
    path = tmp_path / "cut"
    for length in range(0, len(whole), 1 + len(whole) // 300):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            read(path)


@KINDS
def test_no_garbled_file_makes_the_reader_fail_otherwise(kind: str, tmp_path: Path) -> None:
    write, read = READERS[kind]
    whole = write(tmp_path / "whole").read_bytes()
    path = tmp_path / "garbled"
    dice = random.Random(230)
    outcomes = set()
    for _ in range(400):
        garbled = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            garbled[dice.randrange(len(garbled))] = dice.randrange(256)
        path.write_bytes(garbled)
        try:
            read(path)
            outcomes.add("read")
        except InputError:
            outcomes.add("refused")
    assert "refused" in outcomes
