"""GUID partition tables: read both copies, judge them, compute the bytes of a repair.

Nothing here does I/O. A table is judged from the raw sectors (header CRC, entries CRC, the place of
the backup against the disk's real last sector), because tools that "just fix it" also fix what
should have been looked at first.
"""

from __future__ import annotations

import dataclasses
import struct
import uuid
import zlib
from dataclasses import dataclass
from enum import StrEnum

SECTOR = 512
#: sectors 0 (protective MBR), 1 (header) and 2..33 (entries)
PRIMARY_SECTORS = 34
#: 32 sectors of entries, then the header in the disk's last sector
BACKUP_SECTORS = 33
ENTRY_SECTORS = 32
_SIGNATURE = b"EFI PART"
_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_ENTRY = struct.Struct("<16s16sQQQ72s")


class Condition(StrEnum):
    """What the two copies of the table say together."""

    WHOLE = "whole"
    #: the primary is good, its backup is not in the disk's last sector (card larger than image)
    BACKUP_MISPLACED = "backup-misplaced"
    #: the primary is good, the backup in the last sector is not
    BACKUP_DAMAGED = "backup-damaged"
    #: both are valid and list different partitions; firmware, kernel and parted go by the primary
    BACKUP_DIFFERS = "backup-differs"
    #: only the backup is good
    PRIMARY_DAMAGED = "primary-damaged"
    #: a GPT was here, neither copy is valid
    LOST = "lost"
    #: a partition lies beyond the end of the disk
    BEYOND_DISK = "beyond-disk"
    NOT_GPT = "not-gpt"


@dataclass(frozen=True)
class GptEntry:
    """One partition: number from 1, first and last sector inclusive."""

    number: int
    type_guid: str
    unique_guid: str
    first: int
    last: int
    attributes: int
    name: str

    @property
    def sectors(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class GptTable:
    """One valid copy of a table; ``raw_entries`` is what its CRC covers."""

    my_lba: int
    alternate_lba: int
    first_usable: int
    last_usable: int
    disk_guid: str
    entries_lba: int
    entry_count: int
    entry_size: int
    revision: int
    entries: tuple[GptEntry, ...]
    raw_entries: bytes

    def entry(self, number: int) -> GptEntry | None:
        """The partition of that number, if there is one."""
        return next((entry for entry in self.entries if entry.number == number), None)


@dataclass(frozen=True)
class GptState:
    """The verdict on a disk's table.

    ``table`` is the copy to believe (none when there is none), ``problem`` a clause for messages.
    """

    condition: Condition
    disk_sectors: int
    problem: str
    table: GptTable | None = None

    @property
    def last_possible(self) -> int:
        """The last sector a partition can have once the backup is at the disk's end."""
        return self.disk_sectors - 1 - BACKUP_SECTORS

    @property
    def whole(self) -> bool:
        return self.condition is Condition.WHOLE


@dataclass(frozen=True)
class SectorWrite:
    """Bytes for consecutive sectors of the whole disk, from ``lba``."""

    lba: int
    data: bytes

    @property
    def sectors(self) -> int:
        return len(self.data) // SECTOR


def parse_table(header: bytes, entries: bytes, lba: int) -> GptTable | None:
    """Read one copy of the table; none when it is not valid at ``lba``.

    Args:
        header: the 512 bytes of the header sector.
        entries: the sectors of entries that belong to it, at least as many as its CRC covers.
        lba: where the header was read; a header that names another place is not valid.
    """
    if len(header) < _HEADER.size or header[:8] != _SIGNATURE:
        return None
    fields = _HEADER.unpack_from(header)
    (_, revision, size, crc, _, mine, alternate, first, last) = fields[:9]
    disk_guid, entries_lba, count, entry_size, entries_crc = fields[9:]
    raw = entries[: count * entry_size]
    usable = (
        _HEADER.size <= size <= SECTOR
        and zlib.crc32(header[:16] + bytes(4) + header[20:size]) == crc
        and mine == lba
        # the sectors that were read as entries must be the ones that the header means
        and (lba != 1 or entries_lba == 2)
        and entry_size >= _ENTRY.size
        and len(raw) == count * entry_size <= ENTRY_SECTORS * SECTOR
        and zlib.crc32(raw) == entries_crc
    )
    if not usable:
        return None
    return GptTable(
        my_lba=mine,
        alternate_lba=alternate,
        first_usable=first,
        last_usable=last,
        disk_guid=_guid(disk_guid),
        entries_lba=entries_lba,
        entry_count=count,
        entry_size=entry_size,
        revision=revision,
        entries=_parse_entries(raw, entry_size),
        raw_entries=raw,
    )


def judge(
    primary: bytes, backup: bytes, disk_sectors: int, *, elsewhere: dict[int, bytes] | None = None
) -> GptState:
    """Judge a disk by its raw sectors.

    Args:
        primary: sectors 0 to 33.
        backup: the disk's last 33 sectors.
        disk_sectors: the disk's real size.
        elsewhere: 33 sectors each (entries, then header) from other places where a backup may be,
            by the sector of their header: where the primary says, or behind the last partition.
    """
    last = disk_sectors - 1
    table = parse_table(primary[SECTOR : 2 * SECTOR], primary[2 * SECTOR :], 1)
    copies = {last: backup, **(elsewhere or {})}
    backups = {
        lba: copy
        for lba, raw in copies.items()
        if (copy := parse_table(raw[ENTRY_SECTORS * SECTOR :], raw, lba)) is not None
    }
    if table is None and backups:
        # the one nearest to the end is the one that tools look for
        table = backups[max(backups)]
    if table is None:
        condition, problem = _without_table(primary)
    elif beyond := [entry for entry in table.entries if entry.last > last - BACKUP_SECTORS]:
        condition = Condition.BEYOND_DISK
        problem = (
            f"partition {beyond[0].number} ends in sector {beyond[0].last}, the disk has room up "
            f"to {last - BACKUP_SECTORS}"
        )
    else:
        condition, problem = _compare(table, backups, last)
    return GptState(condition, disk_sectors, problem, table)


def repair_writes(state: GptState) -> tuple[SectorWrite, ...]:
    """The sectors that make the table whole, in the order of writing.

    The backup comes first, entries and header in one piece at the disk's end; only then is the
    primary pointed to it. A cut between the two leaves a primary that is valid as before.

    Raises:
        ValueError: there is no table to go by, or a partition is beyond the disk.
    """
    table = state.table
    if table is None or state.condition is Condition.BEYOND_DISK:
        raise ValueError(state.problem)
    last = state.disk_sectors - 1
    whole = dataclasses.replace(
        table, my_lba=1, alternate_lba=last, last_usable=state.last_possible, entries_lba=2
    )
    mirror = dataclasses.replace(
        whole, my_lba=last, alternate_lba=1, entries_lba=last - ENTRY_SECTORS
    )
    entries = table.raw_entries.ljust(ENTRY_SECTORS * SECTOR, b"\0")
    return (
        SectorWrite(last - ENTRY_SECTORS, entries + _header(mirror)),
        # entries again: after a damaged primary they are the backup's, else the same bytes
        SectorWrite(1, _header(whole) + entries)
        if state.condition is Condition.PRIMARY_DAMAGED
        else SectorWrite(1, _header(whole)),
    )


def _compare(table: GptTable, backups: dict[int, GptTable], last: int) -> tuple[Condition, str]:
    if table.my_lba != 1:
        return (
            Condition.PRIMARY_DAMAGED,
            f"the primary table is damaged, the backup in sector {table.my_lba} is good",
        )
    if table.alternate_lba != last:
        return (
            Condition.BACKUP_MISPLACED,
            f"the backup table belongs in sector {last}, the primary says {table.alternate_lba}",
        )
    if last not in backups:
        return Condition.BACKUP_DAMAGED, "the backup table is damaged"
    if backups[last].raw_entries != table.raw_entries:
        return Condition.BACKUP_DIFFERS, "primary and backup list different partitions"
    return Condition.WHOLE, "the table is whole"


def _without_table(primary: bytes) -> tuple[Condition, str]:
    if primary[SECTOR : SECTOR + 8] == _SIGNATURE or _is_protective(primary):
        return Condition.LOST, "both copies of the partition table are damaged"
    if primary[510:512] == b"\x55\xaa":
        return Condition.NOT_GPT, "the disk has an MBR, not a GPT"
    return Condition.NOT_GPT, "the disk has no partition table"


def _is_protective(primary: bytes) -> bool:
    return primary[510:512] == b"\x55\xaa" and primary[446 + 4] == 0xEE


def _header(table: GptTable) -> bytes:
    def packed(crc: int) -> bytes:
        return _HEADER.pack(
            _SIGNATURE,
            table.revision,
            _HEADER.size,
            crc,
            0,
            table.my_lba,
            table.alternate_lba,
            table.first_usable,
            table.last_usable,
            uuid.UUID(table.disk_guid).bytes_le,
            table.entries_lba,
            table.entry_count,
            table.entry_size,
            zlib.crc32(table.raw_entries),
        )

    return packed(zlib.crc32(packed(0))).ljust(SECTOR, b"\0")


def _parse_entries(raw: bytes, size: int) -> tuple[GptEntry, ...]:
    entries = []
    for index in range(len(raw) // size):
        kind, unique, first, last, attributes, name = _ENTRY.unpack_from(raw, index * size)
        if kind != bytes(16):
            entries.append(
                GptEntry(
                    number=index + 1,
                    type_guid=_guid(kind),
                    unique_guid=_guid(unique),
                    first=first,
                    last=last,
                    attributes=attributes,
                    name=name.decode("utf-16-le", "replace").split("\0", 1)[0],
                )
            )
    return tuple(entries)


def _guid(raw: bytes) -> str:
    return str(uuid.UUID(bytes_le=raw))
