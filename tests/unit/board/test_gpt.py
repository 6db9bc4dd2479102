"""Partition tables: what the two copies say, and what a repair writes."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import re
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.board.gpt import SECTOR, Condition, GptState, judge, parse_table, repair_writes

_DISK = 2097152  # sectors of the recorded card
_OLD_LAST = 1228799  # last sector of the image on it


class Card:
    """The parts of a recorded card that hold tables; everything else reads as zero."""

    def __init__(self, text: str, sectors: int = _DISK) -> None:
        found = re.findall(r"@@(gpt_primary|gpt_at \d+)\n([A-Za-z0-9+/=\n]+)", text)
        raw = {name: gzip.decompress(base64.b64decode(body)) for name, body in found}
        self.sectors = sectors
        self.areas = {0: bytearray(raw["gpt_primary"])}
        for name, data in raw.items():
            if name.startswith("gpt_at") and any(data):
                self.areas[int(name.split()[1]) - 32] = bytearray(data)

    def read(self, lba: int, count: int) -> bytes:
        image = bytearray(count * SECTOR)
        for start, data in self.areas.items():
            for index in range(len(data) // SECTOR):
                at = start + index - lba
                if 0 <= at < count:
                    image[at * SECTOR : (at + 1) * SECTOR] = data[
                        index * SECTOR : (index + 1) * SECTOR
                    ]
        return bytes(image)

    def write(self, lba: int, data: bytes) -> None:
        for index in range(len(data) // SECTOR):
            sector = bytearray(data[index * SECTOR : (index + 1) * SECTOR])
            for start, area in self.areas.items():
                at = lba + index - start
                if 0 <= at < len(area) // SECTOR:
                    area[at * SECTOR : (at + 1) * SECTOR] = sector
                    break
            else:
                self.areas[lba + index] = sector

    def judge(self, *elsewhere: int) -> GptState:
        return judge(
            self.read(0, 34),
            self.read(self.sectors - 33, 33),
            self.sectors,
            elsewhere={lba: self.read(lba - 32, 33) for lba in elsewhere},
        )


@pytest.fixture
def card(transcript: Callable[[str], str]) -> Card:
    """As it comes: an image of 600 MiB on a card of 1 GiB."""
    return Card(transcript("sdk19-stock"))


@pytest.fixture
def whole(card: Card) -> Card:
    """The same after the repair."""
    for write in repair_writes(card.judge(_OLD_LAST)):
        card.write(write.lba, write.data)
    return card


def test_card_larger_than_its_image_has_a_misplaced_backup(card: Card) -> None:
    state = card.judge(_OLD_LAST)
    assert state.condition is Condition.BACKUP_MISPLACED
    assert f"sector {_DISK - 1}" in state.problem and str(_OLD_LAST) in state.problem
    assert state.table is not None
    names = [(entry.number, entry.name) for entry in state.table.entries]
    assert names == [(1, "rtt"), (2, "linux"), (3, "rootfs"), (4, "fat32appfs")]
    fourth = state.table.entry(4)
    assert fourth is not None and (fourth.first, fourth.last) == (524288, 1048575)


def test_repair_makes_it_whole_and_keeps_every_partition(card: Card) -> None:
    before = card.judge(_OLD_LAST).table
    writes = repair_writes(card.judge(_OLD_LAST))
    assert [(write.lba, write.sectors) for write in writes] == [(_DISK - 33, 33), (1, 1)]
    for write in writes:
        card.write(write.lba, write.data)
    after = card.judge()
    assert after.whole and after.table is not None and before is not None
    assert after.table.entries == before.entries and after.table.disk_guid == before.disk_guid
    assert after.table.last_usable == _DISK - 34 == after.last_possible


def test_repair_cut_after_each_sector_leaves_a_table_with_all_partitions(card: Card) -> None:
    entries = card.judge(_OLD_LAST).table
    assert entries is not None
    writes = repair_writes(card.judge(_OLD_LAST))
    sectors = [
        (write.lba + index, write.data[index * SECTOR : (index + 1) * SECTOR])
        for write in writes
        for index in range(write.sectors)
    ]
    for lba, data in sectors:
        card.write(lba, data)
        state = card.judge(_OLD_LAST)
        assert state.table is not None and state.table.entries == entries.entries
        assert state.condition in (Condition.BACKUP_MISPLACED, Condition.WHOLE)


@pytest.mark.parametrize("at", [_DISK - 1, _DISK - 33], ids=["header", "entries"])
def test_damaged_backup_is_written_again(whole: Card, at: int) -> None:
    whole.write(at, b"\xff" * SECTOR)
    state = whole.judge()
    assert state.condition is Condition.BACKUP_DAMAGED
    for write in repair_writes(state):
        whole.write(write.lba, write.data)
    assert whole.judge().whole


@pytest.mark.parametrize("at", [1, 2], ids=["header", "entries"])
def test_damaged_primary_is_told_and_repaired_from_the_backup(whole: Card, at: int) -> None:
    healthy = whole.read(0, 34)
    whole.write(at, b"\xff" * SECTOR)
    state = whole.judge()
    assert state.condition is Condition.PRIMARY_DAMAGED
    assert f"backup in sector {_DISK - 1}" in state.problem
    for write in repair_writes(state):
        whole.write(write.lba, write.data)
    assert whole.judge().whole
    assert whole.read(0, 34) == healthy


def test_damaged_primary_finds_the_backup_at_the_old_end(card: Card) -> None:
    card.write(1, bytes(SECTOR))
    state = card.judge(_OLD_LAST)
    assert state.condition is Condition.PRIMARY_DAMAGED and state.table is not None
    for write in repair_writes(state):
        card.write(write.lba, write.data)
    assert card.judge().whole


def test_stale_backup_of_an_earlier_image_does_not_win(whole: Card) -> None:
    """A card that was grown, then flashed again: a valid old table sits in the last sector."""
    stale = whole.read(_DISK - 33, 33)
    header = bytearray(stale[32 * SECTOR :])
    entries = bytearray(stale[: 32 * SECTOR])
    struct.pack_into("<Q", entries, 3 * 128 + 40, 2000000)  # partition 4 ended elsewhere
    struct.pack_into("<I", header, 88, zlib.crc32(entries[: 128 * 128]))
    struct.pack_into("<I", header, 16, 0)
    struct.pack_into("<I", header, 16, zlib.crc32(header[:92]))
    whole.write(_DISK - 33, bytes(entries + header))
    state = whole.judge()
    assert state.condition is Condition.BACKUP_DIFFERS
    assert state.table is not None
    fourth = state.table.entry(4)
    assert fourth is not None and fourth.last == 1048575


def test_both_damaged_is_lost_and_has_nothing_to_write(whole: Card) -> None:
    whole.write(1, b"\xaa" * SECTOR)
    whole.write(_DISK - 1, b"\xaa" * SECTOR)
    state = whole.judge()
    assert state.condition is Condition.LOST and state.table is None
    with pytest.raises(ValueError, match="damaged"):
        repair_writes(state)


def test_partition_beyond_the_disk_is_never_repaired(card: Card) -> None:
    small = Card.__new__(Card)
    small.sectors, small.areas = 900000, card.areas
    state = small.judge()
    assert state.condition is Condition.BEYOND_DISK
    assert "1048575" in state.problem
    with pytest.raises(ValueError, match="partition 4"):
        repair_writes(state)


@pytest.mark.parametrize(
    ("sector", "words"),
    [
        (bytes(446) + b"\x80" + bytes(63) + b"\x55\xaa", "MBR"),
        (b"\xf6" * 512, "no partition table"),
        (bytes(512), "no partition table"),
    ],
    ids=["mbr", "garbage", "zeros"],
)
def test_disks_without_gpt(sector: bytes, words: str) -> None:
    state = judge(sector + b"\xf6" * 33 * 512, b"\xf6" * 33 * 512, 100000)
    assert state.condition is Condition.NOT_GPT
    assert words in state.problem


def test_table_with_entries_elsewhere_is_not_taken(card: Card) -> None:
    header = bytearray(card.read(1, 1))
    struct.pack_into("<Q", header, 72, 40)  # entries in sector 40
    struct.pack_into("<I", header, 16, 0)
    struct.pack_into("<I", header, 16, zlib.crc32(header[:92]))
    assert parse_table(bytes(header), card.read(2, 32), 1) is None


@given(at=st.integers(0, 91), bit=st.integers(0, 7))
def test_no_flipped_header_bit_passes(at: int, bit: int) -> None:
    state = GptState(Condition.BACKUP_MISPLACED, 4096, "", _TABLE)
    header = bytearray(repair_writes(state)[1].data)
    entries = repair_writes(state)[0].data[: 32 * SECTOR]
    assert parse_table(bytes(header), entries, 1) is not None
    header[at] ^= 1 << bit
    assert parse_table(bytes(header), entries, 1) is None


def _empty_table():
    header = struct.pack(
        "<8sIIIIQQQQ16sQIII",
        *(b"EFI PART", 0x10000, 92, 0, 0, 1, 4095, 34, 4062, bytes(range(16)), 2, 128, 128),
        zlib.crc32(bytes(16384)),
    )
    header = header[:16] + struct.pack("<I", zlib.crc32(header)) + header[20:]
    table = parse_table(header, bytes(16384), 1)
    assert table is not None
    return dataclasses.replace(table, alternate_lba=100)


_TABLE = _empty_table()
