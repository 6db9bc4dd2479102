"""Plans for the partition table: make it whole, grow the data partition.

Pure: from facts and wishes to steps, or to an error before anything was written. What is never
done: making a label, making, removing or moving a partition, shrinking one.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BoardCommandError, StorageError
from .gpt import SECTOR, Condition, GptEntry, GptState, GptTable, SectorWrite, repair_writes
from .mounts import commands_around
from .records import BoardFacts, Disk, Partition
from .sizes import Size, human
from .steps import Step, guarded_step

#: where SDK images have the data partition: release 1.9 and later, and before
KNOWN_STARTS = (524288, 425984)
#: a partition that is larger than asked by less than this is as asked
_SLACK_SECTORS = 2048


@dataclass(frozen=True)
class Growth:
    """What growing the data partition takes: ``last`` is the sector it is to end with."""

    last: int
    steps: tuple[Step, ...]

    @property
    def changed(self) -> bool:
        return bool(self.steps)


def require_disk(facts: BoardFacts) -> Disk:
    """The board's disk, with its data partition where table and kernel both have it.

    Raises:
        StorageError: no disk, no GPT, or kernel and table disagree on where partitions start.
    """
    disk = facts.disk
    if facts.busy:
        raise StorageError(
            "a storage command of an earlier run has not ended yet",
            board=facts.board,
            hint="wait for it (ps on the board), then run again.",
        )
    if disk is None:
        raise StorageError(
            f"root= of the kernel command line names no card or eMMC: {facts.cmdline[:80]!r}",
            board=facts.board,
            hint="boot the board from its card with the K230 SDK's image.",
        )
    state = disk.gpt
    if state.table is None:
        hint = "flash the card again; nothing was written."
        if state.condition is Condition.LOST:
            hint = "copy /sharefs away first, then repair the table by hand (gdisk) or flash again."
        raise StorageError(f"{disk.device}: {state.problem}", board=facts.board, hint=hint)
    if state.condition is Condition.BEYOND_DISK:
        raise StorageError(
            f"{disk.device}: {state.problem}",
            board=facts.board,
            hint="the card is smaller than its image, or sold as larger than it is; take another.",
        )
    for part in disk.partitions:
        entry = state.table.entry(part.number)
        if entry is None or entry.first != part.start:
            where = f"starts in sector {entry.first}" if entry else "does not exist"
            raise StorageError(
                f"{part.device} starts in sector {part.start} for the kernel, in the table it "
                f"{where}",
                board=facts.board,
                hint="reboot the board, so that kernel and table agree, and look at the table.",
            )
    return disk


def require_partition(
    facts: BoardFacts, starts: Sequence[int] = KNOWN_STARTS
) -> tuple[Disk, Partition, GptEntry]:
    """The data partition, as kernel and table have it.

    Args:
        starts: sectors it may start with; empty for any.

    Raises:
        StorageError: it is not there, not where it is expected, not the last one, or holds the
            running system.
    """
    disk = require_disk(facts)
    part = facts.partition
    entry = disk.gpt.table.entry(facts.partition_number) if disk.gpt.table else None
    if part is None or entry is None:
        raise StorageError(
            f"{disk.device} has no partition {facts.partition_number}",
            board=facts.board,
            hint="name the data partition's number, or flash the K230 SDK's image.",
        )
    if starts and part.start not in starts:
        raise StorageError(
            f"{part.device} starts in sector {part.start}, expected "
            f"{' or '.join(map(str, starts))}",
            board=facts.board,
            hint="look at the card; if it is right so, name its start.",
        )
    roots = [mount.mountpoint for mount in facts.mounts_of(part) if mount.mountpoint == "/"]
    if roots or part.device in facts.swaps:
        raise StorageError(
            f"{part.device} holds {'the root file system' if roots else 'swap'}",
            board=facts.board,
            hint="name the data partition's number.",
        )
    return disk, part, entry


def plan_gpt_repair(facts: BoardFacts, *, repair_primary: bool = False) -> tuple[Step, ...]:
    """Steps that make the table whole; none when it is.

    Raises:
        StorageError: it cannot be repaired, or it is the primary and that was not asked for.
    """
    disk = require_disk(facts)
    state = disk.gpt
    if state.whole:
        return ()
    if state.condition is Condition.PRIMARY_DAMAGED and not repair_primary:
        raise StorageError(
            f"{disk.device}: {state.problem}",
            board=facts.board,
            hint="check that the backup lists your partitions, then run with repair_primary=true.",
        )
    writes = repair_writes(state)
    does = f"write the backup table to the end of {disk.device} and point the primary to it"
    return (guarded_step(facts, "gpt", does, _write_commands(disk, writes)),)


def repaired(facts: BoardFacts) -> BoardFacts:
    """The facts as they will be after the steps of :func:`plan_gpt_repair`."""
    disk = require_disk(facts)
    state = disk.gpt
    if state.whole or state.table is None:
        return facts
    table = dataclasses.replace(
        state.table,
        my_lba=1,
        alternate_lba=disk.sectors - 1,
        last_usable=state.last_possible,
        entries_lba=2,
    )
    whole = GptState(Condition.WHOLE, disk.sectors, "the table is whole", table)
    return dataclasses.replace(facts, disk=dataclasses.replace(disk, gpt=whole))


def plan_resize(
    facts: BoardFacts,
    size: Size,
    *,
    starts: Sequence[int] = KNOWN_STARTS,
    stop_users: bool = False,
) -> Growth:
    """Steps that grow the data partition to ``size``; none when it has it.

    Raises:
        StorageError: anything that speaks against it; nothing has been written then.
    """
    disk, part, entry = require_partition(facts, starts)
    if not disk.gpt.whole:
        raise StorageError(
            f"{disk.device}: {disk.gpt.problem}",
            board=facts.board,
            hint="run gpt_repair first.",
        )
    last = _wanted_last(facts, disk, entry, size)
    if part.last > last:
        raise StorageError(
            f"{part.device} has {part.sectors} sectors for the kernel, {entry.sectors} in the "
            "table, which was changed under the running system",
            board=facts.board,
            hint="ask for the kernel's size or more (it may hold a file system of that size).",
        )
    if last <= entry.last:
        if part.sectors == entry.sectors:
            return Growth(entry.last, ())
        # Written by an earlier run, which did not come to tell the kernel. Busybox' partprobe
        # cannot, as the root file system is on the same disk; parted tells partition by partition.
        last = entry.last
        name, does = "tell-kernel", f"tell the kernel the size of {part.device}"
    else:
        name = "resize"
        does = f"grow {part.device} to {human((last - entry.first + 1) * SECTOR)} (sector {last})"
    if not facts.has("parted"):
        raise StorageError(
            "the image on the board has no parted",
            board=facts.board,
            hint="flash an SDK image of release 1.0.1 or later, or grow the partition elsewhere.",
        )
    parted = f"parted -s -a minimal {disk.device} unit s resizepart {entry.number} {last}s"
    body = commands_around(facts, [parted, "sync"], stop_users=stop_users)
    return Growth(last, (guarded_step(facts, name, does, body),))


def resized(facts: BoardFacts, last: int) -> BoardFacts:
    """The facts as they will be after the steps of :func:`plan_resize`."""
    disk, part, entry = require_partition(facts, ())
    table = disk.gpt.table
    if table is None:
        raise ValueError("no table")
    entries = tuple(
        dataclasses.replace(item, last=last) if item.number == entry.number else item
        for item in table.entries
    )
    parts = tuple(
        dataclasses.replace(item, sectors=last - item.start + 1)
        if item.number == part.number
        else item
        for item in disk.partitions
    )
    state = dataclasses.replace(disk.gpt, table=dataclasses.replace(table, entries=entries))
    return dataclasses.replace(facts, disk=dataclasses.replace(disk, gpt=state, partitions=parts))


def check_resized(before: BoardFacts, after: BoardFacts, last: int) -> bool:
    """Whether the kernel has the new size too; false when it needs a reboot for that.

    Raises:
        BoardCommandError: the table does not say what was asked, or something else changed.
    """
    table = _entries(after)
    expected = _entries(resized(before, last))
    if table != expected or after.disk is None or not after.disk.gpt.whole:
        found = after.disk.gpt.problem if after.disk else "no disk"
        entry = next((item for item in table if item.number == before.partition_number), None)
        raise BoardCommandError(
            f"after growing, partition {before.partition_number} ends in sector "
            f"{entry.last if entry else 'none'}, expected {last}; {found}",
            board=after.board,
            hint="do not reboot; look at the table with parted and compare with the facts.",
        )
    part = after.partition
    return part is not None and part.last == last


def table_text(facts: BoardFacts) -> str:
    """The partition table for people, one line per partition, as a diff shows it."""
    disk = facts.disk
    if disk is None or disk.gpt.table is None:
        return "no partition table\n"
    table = disk.gpt.table
    lines = [
        f"{disk.device}: {disk.sectors} sectors, {disk.gpt.problem}",
        f"backup header in sector {table.alternate_lba}, usable {table.first_usable}-"
        f"{table.last_usable}",
    ]
    lines += [
        f"{entry.number} {entry.name}: sectors {entry.first}-{entry.last}, "
        f"{human(entry.sectors * SECTOR)}"
        for entry in table.entries
    ]
    return "\n".join(lines) + "\n"


def _entries(facts: BoardFacts) -> tuple[GptEntry, ...]:
    table: GptTable | None = facts.disk.gpt.table if facts.disk else None
    return table.entries if table else ()


def _wanted_last(facts: BoardFacts, disk: Disk, entry: GptEntry, size: Size) -> int:
    table = disk.gpt.table
    limit = table.last_usable if table else disk.gpt.last_possible
    following = [other.first for other in _entries(facts) if other.first > entry.first]
    limit = min([limit, *(first - 1 for first in following)])
    room = limit - entry.first + 1
    wanted = size.sectors(room)
    device = f"{disk.device}p{entry.number}"
    if wanted > room:
        raise StorageError(
            f"{device} cannot have {size.text} ({human(wanted * SECTOR)}): from its start the "
            f"card has {human(room * SECTOR)} ({room} sectors); nothing was written",
            board=facts.board,
            hint="ask for less, or for 100%.",
        )
    if wanted < entry.sectors - _SLACK_SECTORS:
        raise StorageError(
            f"{device} has {human(entry.sectors * SECTOR)} ({entry.sectors} sectors), {size.text} "
            "is less; partitions are never made smaller",
            board=facts.board,
            hint=f"ask for {entry.sectors}s or more, or for 100%.",
        )
    return max(entry.first + wanted - 1, entry.last)


def _write_commands(disk: Disk, writes: Sequence[SectorWrite]) -> list[str]:
    """Sectors travel inside the script; all are checked before the first one is written."""
    commands = [f'[ "$(cat /sys/block/{disk.name}/size)" = {disk.sectors} ]']
    for write in writes:
        packed = base64.b64encode(gzip.compress(write.data, mtime=0)).decode()
        digest = hashlib.sha256(write.data).hexdigest()
        file = f"/tmp/.k230-gpt-{write.lba}"
        commands += [
            f"echo {packed} | base64 -d | gunzip -c >{file}",
            f'[ "$(sha256sum <{file})" = "{digest}  -" ]',
        ]
    for write in writes:
        file = f"/tmp/.k230-gpt-{write.lba}"
        commands += [
            f"dd if={file} of={disk.device} bs={SECTOR} seek={write.lba} conv=notrunc,fsync",
            f"dd if={disk.device} bs={SECTOR} skip={write.lba} count={write.sectors} |",
            f"cmp - {file}",
            f"rm {file}",
        ]
    return commands
