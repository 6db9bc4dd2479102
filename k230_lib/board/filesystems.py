"""What to do with the file system on the data partition: keep, grow, make or replace it.

Pure decisions. What is there is told by its magic numbers; what no signature explains is never
overwritten unless that was said in so many words.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum

from ..errors import InputError, StorageError
from .gpt import SECTOR
from .mounts import commands_around
from .records import BoardFacts
from .signatures import BLANK, EXT_KINDS, FAT_KINDS, MOUNTABLE_KINDS
from .sizes import human
from .steps import Step, guarded_step

FSTYPES = ("auto", "ext4", "ext2", "vfat")
#: resize2fs leaves a last group that would be too small to be of use
_UNGROWN_BYTES = 16 * 1024 * 1024
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,11}")
_MIN_SHARE = 0.9


class Action(StrEnum):
    """What is to be done."""

    KEEP = "keep"
    GROW = "grow"
    #: nothing is there that could be lost
    MAKE = "make"
    REPLACE = "replace"


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    Args:
        fstype: ``auto`` (ext4 where the board can make it, else ext2), ``ext4``, ``ext2`` or
            ``vfat``.
        label: 1 to 11 letters, digits, ``_`` or ``-``; used when one is made.
        replace: another file system may be replaced.
        preserve: its files are copied to the controller first and put back.
        stop_users: the sharefs daemon may be stopped when RT-Smart programs hold files.
    """

    fstype: str = "auto"
    label: str = "K230_APP"
    replace: bool = False
    preserve: bool = True
    stop_users: bool = False

    def __post_init__(self) -> None:
        if self.fstype not in FSTYPES:
            raise InputError(f"file system {self.fstype!r} is not one of {', '.join(FSTYPES)}")
        if not _LABEL.fullmatch(self.label):
            raise InputError(f"label {self.label!r} is not 1 to 11 letters, digits, '_' or '-'")


@dataclass(frozen=True)
class Decision:
    """What to do and why; ``kind`` is the file system that will be there."""

    action: Action
    kind: str
    reason: str


def decide(facts: BoardFacts, wish: Wish) -> Decision:
    """Decide from what is there.

    Raises:
        StorageError: what is there must not be touched, or what is asked for cannot be made.
    """
    part, now = facts.partition, facts.filesystem
    if part is None or now is None:
        raise StorageError(
            f"the board has no partition {facts.partition_number}",
            board=facts.board,
            hint="name the data partition's number.",
        )
    room = part.sectors * SECTOR
    if now.kind == BLANK:
        return Decision(Action.MAKE, makeable(facts, wish), f"{part.device} is blank")
    if now.bytes is not None and now.bytes > room:
        raise StorageError(
            f"{part.device} has {human(room)}, the {now.kind} on it needs {human(now.bytes)}",
            board=facts.board,
            hint="the partition was cut; restore its former end before anything is written.",
        )
    if now.kind not in MOUNTABLE_KINDS:
        return _decide_foreign(facts, wish, part.device, now.kind)
    what = f"{now.kind} of {human(now.bytes or 0)}"
    if not _is_wished(now.kind, wish.fstype):
        return _replace_or_keep(facts, wish, now.kind, f"{what} is not {wish.fstype}")
    if fills_partition(now.bytes or room, room):
        return Decision(Action.KEEP, now.kind, f"{what} is there")
    if now.is_ext and facts.has("resize2fs", "e2fsck"):
        return Decision(Action.GROW, now.kind, f"{what} grows to {human(room)}")
    return _replace_or_keep(facts, wish, now.kind, f"{what} cannot grow on this image")


def _decide_foreign(facts: BoardFacts, wish: Wish, device: str, kind: str) -> Decision:
    if wish.replace and not wish.preserve:
        return Decision(Action.REPLACE, makeable(facts, wish), f"{kind} is given up")
    raise StorageError(
        f"{device} holds something that is not a file system this board mounts ({kind}); it is "
        "left alone",
        board=facts.board,
        hint="save what is on it; to overwrite it use replace=true with preserve=false.",
    )


def _replace_or_keep(facts: BoardFacts, wish: Wish, kind: str, reason: str) -> Decision:
    if wish.replace:
        made = makeable(facts, wish)
        return Decision(Action.REPLACE, made, f"{reason}, replaced by {made}")
    return Decision(Action.KEEP, kind, f"{reason}, kept (replace=true would replace it)")


def fills_partition(size: int, room: int) -> bool:
    """Whether a file system of ``size`` bytes uses a partition of ``room`` bytes."""
    return room - size <= _UNGROWN_BYTES


def makeable(facts: BoardFacts, wish: Wish) -> str:
    """The kind that will be made: what is asked for, as far as the board has the tools.

    Raises:
        StorageError: the board lacks the program that makes it.
    """
    kind = wish.fstype
    if kind == "auto":
        kind = "ext4" if facts.has("mkfs.ext4") else "ext2"
    if not facts.has(f"mkfs.{kind}"):
        raise StorageError(
            f"the image on the board has no mkfs.{kind}",
            board=facts.board,
            hint="ask for another file system, or flash an image of SDK release 1.9 or later.",
        )
    return "fat32" if kind == "vfat" else kind


def plan_grow(facts: BoardFacts, wish: Wish) -> tuple[Step, ...]:
    """Check and grow the ext file system; mounts are put back as they were.

    Raises:
        StorageError: the mount point is in use.
    """
    part = facts.partition
    if part is None:
        raise ValueError("no partition")
    body = commands_around(
        facts,
        [
            # 1 means: damage was found and repaired
            f"e2fsck -f -p {part.device} || [ $? -le 1 ]",
            f"resize2fs {part.device}",
            "sync",
        ],
        stop_users=wish.stop_users,
    )
    return (
        guarded_step(
            facts, "grow", f"check the ext file system on {part.device} and grow it", body
        ),
    )


def plan_make(facts: BoardFacts, kind: str, label: str) -> Step:
    """Make a file system on the free partition."""
    does = f"make {kind} with label {label}"
    return guarded_step(facts, "make", does, make_commands(facts, kind, label))


def make_commands(facts: BoardFacts, kind: str, label: str) -> list[str]:
    """Commands that make a file system; the partition must not be mounted."""
    part = facts.partition
    if part is None:
        raise ValueError("no partition")
    # No signature of what was there before may be left over. No discard: on large cards it takes
    # minutes, and without it a mistake can still be undone by a recovery tool.
    wipe = f"dd if=/dev/zero of={part.device} bs=65536 count=16 conv=notrunc,fsync"
    name = shlex.quote(label)
    if kind == "fat32":
        make = f"mkfs.vfat -F 32 -n {name.upper()} {part.device}"
    elif facts.has("mkfs.ext4"):
        # no blocks kept back for root: nobody else writes here
        make = f"mkfs.{kind} -q -F -m 0 -E nodiscard -L {name} {part.device}"
    else:
        make = f"mkfs.{kind} -F -m 0 -L {name} {part.device}"
    return [wipe, make, "sync"]


def check_fits(facts: BoardFacts, total: int, kind: str) -> None:
    """Refuse when the saved files would not fit on the new file system.

    Args:
        total: bytes of all files.

    Raises:
        StorageError: they would not.
    """
    part = facts.partition
    room = part.sectors * SECTOR if part else 0
    if total > room * _MIN_SHARE:
        raise StorageError(
            f"the files on the partition have {human(total)}, a new {kind} of {human(room)} may "
            "not hold them",
            board=facts.board,
            hint="grow the partition first, or delete files that are not needed.",
        )


def _is_wished(kind: str, fstype: str) -> bool:
    if fstype == "vfat":
        return kind in FAT_KINDS
    return kind in EXT_KINDS if fstype == "auto" else kind == fstype
