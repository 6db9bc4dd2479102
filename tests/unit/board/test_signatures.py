"""What is on a partition, from its first bytes."""

from __future__ import annotations

import struct

import pytest

from k230_lib.board.signatures import BLANK, UNKNOWN, Filesystem, identify


def _at(offset: int, magic: bytes) -> bytes:
    return bytes(offset) + magic


def _identify(head: bytes, *, nonzero: bool = True) -> Filesystem:
    return identify(head, bytes(16), bytes(16), nonzero=nonzero)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (_at(3, b"EXFAT   "), "exfat"),
        (_at(3, b"NTFS    "), "ntfs"),
        (_at(0, b"LUKS\xba\xbe"), "luks"),
        (_at(0, b"XFSB"), "xfs"),
        (_at(0, b"hsqs"), "squashfs"),
        (_at(512, b"LABELONE"), "lvm"),
        (_at(1024, b"\x10\x20\xf5\xf2"), "f2fs"),
        (_at(4086, b"SWAPSPACE2"), "swap"),
        (_at(512, b"EFI PART"), "gpt"),
    ],
)
def test_known_signatures(head: bytes, kind: str) -> None:
    assert _identify(head).kind == kind


def test_signatures_beyond_the_head() -> None:
    assert identify(b"", b"\x01CD001", b"", nonzero=True).kind == "iso9660"
    assert identify(b"", bytes(16), b"_BHRfS_M", nonzero=True).kind == "btrfs"


def test_zeros_are_blank_and_anything_else_is_not() -> None:
    assert _identify(bytes(4096), nonzero=False).kind == BLANK
    # a file system that was wiped in its first sectors only
    assert _identify(bytes(4096), nonzero=True).kind == UNKNOWN
    assert _identify(b"\xf6" * 4096).kind == UNKNOWN


def _ext(compatible: int, incompatible: int, state: int = 1, blocks: int = 1000) -> bytes:
    block = bytearray(1024)
    struct.pack_into("<I", block, 4, blocks)
    struct.pack_into("<I", block, 24, 2)  # 4 KiB blocks
    block[56:58] = b"\x53\xef"
    struct.pack_into("<H", block, 58, state)
    struct.pack_into("<II", block, 92, compatible, incompatible)
    block[104:120] = bytes(range(16))
    block[120:124] = b"DATA"
    return bytes(1024) + bytes(block)


@pytest.mark.parametrize(
    ("compatible", "incompatible", "kind"),
    [(0, 2, "ext2"), (4, 2, "ext3"), (4, 0x2C2, "ext4"), (0, 0x40, "ext4")],
)
def test_ext_generations(compatible: int, incompatible: int, kind: str) -> None:
    found = _identify(_ext(compatible, incompatible))
    assert found.kind == kind and found.is_ext
    assert (found.label, found.bytes, found.clean) == ("DATA", 4096000, True)
    assert found.uuid == "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_ext_that_was_not_unmounted_is_not_clean() -> None:
    assert not _identify(_ext(4, 0x40, state=0)).clean
    assert not _identify(_ext(4, 0x40, state=3)).clean


def _fat(name: bytes, at: int, small: int, large: int) -> bytes:
    head = bytearray(512)
    head[0] = 0xEB
    struct.pack_into("<H", head, 11, 512)
    struct.pack_into("<H", head, 19, small)
    struct.pack_into("<I", head, 32, large)
    head[at : at + 8] = name
    head[510:512] = b"\x55\xaa"
    return bytes(head)


def test_fat_and_its_size() -> None:
    assert _identify(_fat(b"FAT16   ", 54, 0, 524288)).bytes == 268435456
    assert _identify(_fat(b"FAT12   ", 54, 2880, 0)).bytes == 1474560
    assert _identify(_fat(b"FAT32   ", 82, 0, 4194304)).kind == "fat32"


def test_boot_sector_without_fat_is_unknown() -> None:
    assert _identify(_fat(b"        ", 54, 0, 9)).kind == UNKNOWN
