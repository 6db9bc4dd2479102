"""What is on a partition, told by the magic numbers in its first sectors.

Busybox ``blkid`` knows a dozen types and stays silent about the rest, which looks like an empty
partition; so the bytes are read and judged here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: bytes read from the partition's start
HEAD_BYTES = 4096
#: offset of the second sample, 16 bytes (ISO 9660)
ISO_OFFSET = 32768
#: offset of the third sample, 16 bytes (btrfs)
BTRFS_OFFSET = 65536 + 64
_EXT_SUPERBLOCK = 1024
_EXT_JOURNAL = 0x4
_EXT_BEYOND_EXT3 = 0x40 | 0x80 | 0x200  # extents, 64bit, flex_bg

EXT_KINDS = frozenset({"ext2", "ext3", "ext4"})
FAT_KINDS = frozenset({"fat12", "fat16", "fat32"})
#: kinds whose files this collection can copy away: the stock kernel mounts them
MOUNTABLE_KINDS = EXT_KINDS | FAT_KINDS | {"exfat"}
BLANK = "blank"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Filesystem:
    """What a partition holds.

    ``kind`` is a file system or volume type, ``blank`` when its first MiB is all zero, ``unknown``
    when there are bytes that no signature explains. ``bytes`` is the file system's own size, none
    where it is not known.
    """

    kind: str
    label: str = ""
    uuid: str = ""
    bytes: int | None = None
    clean: bool = True

    @property
    def is_ext(self) -> bool:
        return self.kind in EXT_KINDS


def identify(head: bytes, iso: bytes, btrfs: bytes, *, nonzero: bool) -> Filesystem:
    """Name what is on a partition.

    Args:
        head: its first 4096 bytes.
        iso: 16 bytes at 32768.
        btrfs: 16 bytes at 65600.
        nonzero: whether any byte of its first MiB is not zero.
    """
    head = head.ljust(HEAD_BYTES, b"\0")
    for offset, magic, kind in (
        (3, b"EXFAT   ", "exfat"),
        (3, b"NTFS    ", "ntfs"),
        (0, b"LUKS\xba\xbe", "luks"),
        (0, b"XFSB", "xfs"),
        (0, b"hsqs", "squashfs"),
        (0, b"UBI#", "ubi"),
        (512, b"LABELONE", "lvm"),
        (1024, b"\x10\x20\xf5\xf2", "f2fs"),
        (4086, b"SWAPSPACE2", "swap"),
        (4086, b"SWAP-SPACE", "swap"),
        (512, b"EFI PART", "gpt"),
    ):
        if head[offset : offset + len(magic)] == magic:
            return Filesystem(kind)
    if head[_EXT_SUPERBLOCK + 56 : _EXT_SUPERBLOCK + 58] == b"\x53\xef":
        return _ext(head[_EXT_SUPERBLOCK : _EXT_SUPERBLOCK + 1024])
    if btrfs[:8] == b"_BHRfS_M":
        return Filesystem("btrfs")
    if iso[1:6] == b"CD001":
        return Filesystem("iso9660")
    fat = _fat(head)
    if fat is not None:
        return fat
    return Filesystem(UNKNOWN if nonzero else BLANK)


def _ext(block: bytes) -> Filesystem:
    (blocks,) = struct.unpack_from("<I", block, 4)
    (log_size,) = struct.unpack_from("<I", block, 24)
    (state,) = struct.unpack_from("<H", block, 58)
    compatible, incompatible = struct.unpack_from("<II", block, 92)
    if incompatible & 0x80:  # 64bit: the upper half of the block count counts
        blocks |= struct.unpack_from("<I", block, 0x150)[0] << 32
    if incompatible & _EXT_BEYOND_EXT3:
        kind = "ext4"
    else:
        kind = "ext3" if compatible & _EXT_JOURNAL else "ext2"
    return Filesystem(
        kind,
        label=block[120:136].split(b"\0", 1)[0].decode("utf-8", "replace"),
        uuid=_dashed(block[104:120]),
        bytes=blocks << (10 + log_size),
        clean=bool(state & 1) and not state & 2,
    )


def _fat(head: bytes) -> Filesystem | None:
    if head[510:512] != b"\x55\xaa" or head[0] not in (0xEB, 0xE9):
        return None
    (sector,) = struct.unpack_from("<H", head, 11)
    (few,) = struct.unpack_from("<H", head, 19)
    (many,) = struct.unpack_from("<I", head, 32)
    if sector not in (512, 1024, 2048, 4096):
        return None
    for kind, type_at, label_at, serial_at in (
        ("fat32", 82, 71, 67),
        ("fat16", 54, 43, 39),
        ("fat12", 54, 43, 39),
    ):
        if head[type_at : type_at + 8] == kind.upper().encode().ljust(8):
            (serial,) = struct.unpack_from("<I", head, serial_at)
            label = head[label_at : label_at + 11].decode("ascii", "replace").strip()
            return Filesystem(
                kind,
                label="" if label == "NO NAME" else label,
                uuid=f"{serial >> 16:04X}-{serial & 0xFFFF:04X}",
                bytes=(few or many) * sector,
            )
    return None


def _dashed(raw: bytes) -> str:
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
