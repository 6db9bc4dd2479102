"""What an ELF file says of itself: enough to refuse a runner that a board cannot load. Pure."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..errors import RunnerError

EM_X86_64: Final = 62
EM_RISCV: Final = 243
_MACHINES: Final = {EM_X86_64: "x86-64", EM_RISCV: "riscv64"}
_TYPES: Final = {2: "executable", 3: "position-independent"}

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_SHT_SYMTAB, _SHT_NOBITS = 2, 8
_DT_NULL, _DT_NEEDED = 0, 1
_TAG_FILE, _TAG_ARCH = 1, 5

_CXX_LIBRARY: Final = frozenset({"std", "basic_ios", "basic_string", "locale", "vector"})
_KERNEL_KEY: Final = re.compile(rb"\0(v1/[0-9][0-9;,|]*)(?=\0)")
_OPERATOR: Final = re.compile(rb"(?<![\w:])([a-z]\w*::[A-Za-z_]\w*(?:\.\w+)?)\0")


@dataclass(frozen=True)
class ElfFile:
    """The facts of one little-endian 64-bit ELF file.

    Attributes:
        machine: ``x86-64``, ``riscv64`` or ``machine N``.
        kind: ``executable`` (fixed addresses), ``position-independent`` or ``type N``.
        entry: start address.
        interpreter: the dynamic loader, empty for a static file.
        needed: shared libraries by name.
        arch: RISC-V ISA string of the attributes, e.g. ``rv64i2p0_m2p0_v1p0``; else empty.
        load_bytes: bytes of the file that a loader reads.
        memory_bytes: memory that its segments take.
        stripped: whether it has no symbol table.
        size: of the file.
    """

    machine: str
    kind: str
    entry: int
    interpreter: str
    needed: tuple[str, ...]
    arch: str
    load_bytes: int
    memory_bytes: int
    stripped: bool
    size: int
    sections: Mapping[str, tuple[int, int]] = field(repr=False)

    @property
    def static(self) -> bool:
        """True when no dynamic loader and no shared library is needed."""
        return not self.interpreter and not self.needed

    @property
    def has_vector(self) -> bool:
        """True when the RISC-V attributes name the vector extension V."""
        return bool(re.search(r"_v\d+p\d+|_zve64d", self.arch))


def parse_elf(data: bytes, name: str = "the file") -> ElfFile:
    """Read headers, segments, sections and attributes.

    Args:
        data: the whole file.
        name: what to call it in messages.

    Raises:
        RunnerError: it is no ELF file, not of 64 bits little-endian, or cut short.
    """
    if not data.startswith(b"\x7fELF") or len(data) < _HEADER.size:
        raise RunnerError(f"{name} is no ELF file ({len(data)} bytes).", hint=_BUILD_AGAIN)
    if data[4] != 2 or data[5] != 1:
        raise RunnerError(f"{name}: expected a 64-bit little-endian ELF file.", hint=_BUILD_AGAIN)
    fields = _HEADER.unpack_from(data)
    _, kind, machine, _, entry, ph_at, sh_at, _, _, ph_size, ph_count, sh_size, sh_count, names = (
        fields
    )
    segments = _table(data, _SEGMENT, (ph_at, ph_size, ph_count), name)
    headers = _table(data, _SECTION, (sh_at, sh_size, sh_count), name)
    for _, _, offset, _, _, in_file, _, _ in segments:
        _within(data, offset, in_file, name)
    loads = [segment for segment in segments if segment[0] == _PT_LOAD]
    sections = _sections(data, headers, names, name)
    return ElfFile(
        machine=_MACHINES.get(machine, f"machine {machine}"),
        kind=_TYPES.get(kind, f"type {kind}"),
        entry=entry,
        interpreter=_interpreter(data, segments),
        needed=_needed(data, segments, sections),
        arch=_arch(_bytes_of(data, sections.get(".riscv.attributes"))),
        load_bytes=sum(segment[5] for segment in loads),
        memory_bytes=sum(segment[6] for segment in loads),
        stripped=not any(header[1] == _SHT_SYMTAB for header in headers),
        size=len(data),
        sections=sections,
    )


def section_bytes(data: bytes, elf: ElfFile, section: str) -> bytes | None:
    """The bytes of a section of a parsed file, or nothing when it has none of that name."""
    place = elf.sections.get(section)
    return None if place is None else _bytes_of(data, place)


def operator_names(data: bytes) -> frozenset[str]:
    """Operators that a statically linked runner may have registered, e.g. ``aten::add.out``.

    Registration keeps each name as a string, so this needs no execution; C++ symbols do not look
    like that, but messages of the C++ library do. It is an upper bound: use the runner's own
    ``--list_operators`` where it can run.
    """
    found = {match.group(1).decode("ascii") for match in _OPERATOR.finditer(data)}
    return frozenset(name for name in found if name.partition("::")[0] not in _CXX_LIBRARY)


def kernel_keys(data: bytes) -> frozenset[str]:
    """Kernel keys among the strings of a runner."""
    return frozenset(match.group(1).decode("ascii") for match in _KERNEL_KEY.finditer(data))


_BUILD_AGAIN: Final = "build or copy the runner again."


def _within(data: bytes, offset: int, size: int, name: str) -> None:
    if offset + size > len(data):
        raise RunnerError(
            f"{name} is cut short: expected at least {offset + size} bytes, found {len(data)}.",
            hint=_BUILD_AGAIN,
        )


def _table(
    data: bytes, entry: struct.Struct, place: tuple[int, int, int], name: str
) -> list[tuple[int, ...]]:
    """Entries of a header table at ``place``: offset, size of an entry, count."""
    offset, size, count = place
    if count == 0:
        return []
    if size != entry.size:
        raise RunnerError(f"{name}: its headers have an unknown size.", hint=_BUILD_AGAIN)
    _within(data, offset, size * count, name)
    return [entry.unpack_from(data, offset + index * size) for index in range(count)]


def _sections(
    data: bytes, headers: list[tuple[int, ...]], names: int, name: str
) -> dict[str, tuple[int, int]]:
    """Offset and size of each section by name; sections without bytes in the file are left out."""
    if names >= len(headers):
        return {}
    strings = _bytes_of(data, (headers[names][4], headers[names][5]))
    found: dict[str, tuple[int, int]] = {}
    for header in headers:
        if header[1] == _SHT_NOBITS:
            continue
        _within(data, header[4], header[5], name)
        found[_string_at(strings, header[0])] = (header[4], header[5])
    return found


def _bytes_of(data: bytes, place: tuple[int, int] | None) -> bytes:
    return b"" if place is None else data[place[0] : place[0] + place[1]]


def _string_at(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    return strings[offset : end if end >= 0 else len(strings)].decode("utf-8", "replace")


def _interpreter(data: bytes, segments: list[tuple[int, ...]]) -> str:
    for kind, _, offset, _, _, in_file, _, _ in segments:
        if kind == _PT_INTERP:
            return data[offset : offset + in_file].rstrip(b"\0").decode("utf-8", "replace")
    return ""


def _needed(
    data: bytes, segments: list[tuple[int, ...]], sections: Mapping[str, tuple[int, int]]
) -> tuple[str, ...]:
    strings = _bytes_of(data, sections.get(".dynstr"))
    for kind, _, offset, _, _, in_file, _, _ in segments:
        if kind != _PT_DYNAMIC:
            continue
        usable = in_file - in_file % _DYNAMIC.size
        names = []
        for tag, value in _DYNAMIC.iter_unpack(data[offset : offset + usable]):
            if tag == _DT_NULL:
                break
            if tag == _DT_NEEDED:
                names.append(_string_at(strings, value))
        return tuple(names)
    return ()


def _arch(attributes: bytes) -> str:
    """The ISA string in a ``.riscv.attributes`` section: 'A', vendor blocks, tagged values."""
    if not attributes.startswith(b"A"):
        return ""
    # block: length u32, vendor text, then sub-block: tag, length u32, attributes
    position = attributes.find(b"\0", 5) + 1
    if position == 0 or position >= len(attributes) or attributes[position] != _TAG_FILE:
        return ""
    position += 5
    while position < len(attributes):
        tag, position = _uleb(attributes, position)
        if tag % 2 == 1:  # odd tags carry text, even ones a number
            text = _string_at(attributes, position)
            if tag == _TAG_ARCH:
                return text
            position += len(text) + 1
        else:
            _, position = _uleb(attributes, position)
    return ""


def _uleb(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, position
