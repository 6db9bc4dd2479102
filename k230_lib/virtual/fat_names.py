"""Fields of FAT directory entries: short names with case flags, long names, times."""

from __future__ import annotations

import calendar
import re
import time
import zlib
from collections.abc import Container

ENTRY_BYTES = 32
LONG_NAME_ATTRIBUTE = 0x0F
_LAST_LONG = 0x40
_CHARS_PER_ENTRY = 13
_LOWER_BASE, _LOWER_EXT = 0x08, 0x10
_SHORT_CHARS = re.compile(r"[A-Z0-9!#$%&'()@^_`{}~-]*")
_NOT_SHORT = re.compile(r"[^A-Z0-9!#$%&'()@^_`{}~-]")
_FORBIDDEN = re.compile(r'[\x00-\x1f"*/:<>?\\|]')
_LONGEST = 255


def is_valid(name: str) -> bool:
    """Whether FAT can hold ``name``."""
    return 0 < len(name) <= _LONGEST and not _FORBIDDEN.search(name) and name[-1] not in " ."


def from_short(raw: bytes, flags: int) -> str:
    """Readable name of an 11-byte short name and its case flags."""
    base = raw[:8].decode("cp437").rstrip()
    extension = raw[8:11].decode("cp437").rstrip()
    if flags & _LOWER_BASE:
        base = base.lower()
    if flags & _LOWER_EXT:
        extension = extension.lower()
    return f"{base}.{extension}" if extension else base


def as_short(name: str) -> tuple[bytes, int] | None:
    """The short form and case flags that say ``name`` exactly, if there is one."""
    base, dot, extension = name.rpartition(".")
    if not dot:
        base, extension = name, ""
    if not 1 <= len(base) <= 8 or len(extension) > 3 or (dot and not extension):
        return None
    flags = 0
    for part, flag in ((base, _LOWER_BASE), (extension, _LOWER_EXT)):
        if not _SHORT_CHARS.fullmatch(part.upper()) or part not in (part.upper(), part.lower()):
            return None
        if part != part.upper():
            flags |= flag
    return _pad(base.upper(), extension.upper()), flags


def made_up_short(name: str, taken: Container[bytes]) -> bytes:
    """A short name for a long one that no other entry of the folder has."""
    base, _, extension = name.upper().rpartition(".") if "." in name[1:] else (name.upper(), "", "")
    base = _NOT_SHORT.sub("", base) or "FILE"
    extension = _NOT_SHORT.sub("", extension)[:3]
    for number in range(1, 5):
        short = _pad(f"{base[:6]}~{number}", extension)
        if short not in taken:
            return short
    seed = zlib.crc32(name.encode("utf-8", "surrogateescape"))
    while True:
        short = _pad(f"{base[:2]}{seed & 0xFFFF:04X}~1", extension)
        if short not in taken:
            return short
        seed = (seed * 5 + 1) & 0xFFFFFFFF


def checksum(short: bytes) -> int:
    total = 0
    for byte in short:
        total = (((total & 1) << 7) + (total >> 1) + byte) & 0xFF
    return total


def long_entries(name: str, short: bytes) -> bytes:
    """The entries before the short one that carry the long ``name``."""
    units = name.encode("utf-16-le", "surrogatepass")
    count = -(-len(units) // (2 * _CHARS_PER_ENTRY))
    if len(units) < count * 2 * _CHARS_PER_ENTRY:
        units = (units + b"\0\0").ljust(count * 2 * _CHARS_PER_ENTRY, b"\xff")
    sum_ = checksum(short)
    entries = []
    for index in range(count, 0, -1):
        part = units[(index - 1) * 26 : index * 26]
        order = index | (_LAST_LONG if index == count else 0)
        head = bytes([order]) + part[:10] + bytes([LONG_NAME_ATTRIBUTE, 0, sum_])
        entries.append(head + part[10:22] + b"\0\0" + part[22:26])
    return b"".join(entries)


def join_long(entries: list[bytes], short: bytes) -> str | None:
    """The long name in ``entries`` (as they lie on the disk), if they belong to ``short``."""
    if not entries or any(entry[13] != checksum(short) for entry in entries):
        return None
    units = b"".join(entry[1:11] + entry[14:26] + entry[28:32] for entry in reversed(entries))
    text = units.decode("utf-16-le", "surrogatepass")
    return text.split("\0", 1)[0].rstrip("\uffff")


def _pad(base: str, extension: str) -> bytes:
    return base.encode("ascii").ljust(8) + extension.encode("ascii").ljust(3)


def from_dos(day: int, clock: int) -> float:
    """Unix time of a date and a time of a directory entry; 0 when they are none."""
    parts = (1980 + (day >> 9), day >> 5 & 15, day & 31, clock >> 11, clock >> 5 & 63)
    try:
        return float(calendar.timegm((*parts, (clock & 31) * 2, 0, 0, 0)))
    except ValueError:
        return 0.0


def to_dos(when: float) -> tuple[int, int]:
    """Date and time of a directory entry."""
    moment = time.gmtime(max(when, 315532800.0))
    day = (moment.tm_year - 1980) << 9 | moment.tm_mon << 5 | moment.tm_mday
    return day, moment.tm_hour << 11 | moment.tm_min << 5 | moment.tm_sec // 2
