"""ELF files put together byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

RISCV = 243
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3


def attributes(arch: str) -> bytes:
    """A ``.riscv.attributes`` section as GNU as writes it: stack alignment, then the ISA."""
    values = b"\x04\x10" + b"\x05" + arch.encode() + b"\0"
    block = b"\x01" + struct.pack("<I", 5 + len(values)) + values
    vendor = b"riscv\0"
    return b"A" + struct.pack("<I", 4 + len(vendor) + len(block)) + vendor + block


def build_elf(
    *,
    machine: int = RISCV,
    kind: int = 2,
    entry: int = 0x200000000,
    interpreter: bytes = b"",
    needed: bytes = b"",
    sections: dict[str, bytes] | None = None,
) -> bytes:
    """A file with one loadable segment and the sections given."""
    contents = {"": b"", ".text": b"\x13\0\0\0" * 64, **(sections or {})}
    segments = [(PT_LOAD, ".text")]
    if interpreter:
        contents[".interp"] = interpreter + b"\0"
        segments.append((PT_INTERP, ".interp"))
    if needed:
        contents[".dynstr"] = b"\0" + needed + b"\0"
        contents[".dynamic"] = struct.pack("<qQqQ", 1, 1, 0, 0)
        segments.append((PT_DYNAMIC, ".dynamic"))
    names = b"\0".join(name.encode() for name in [*contents, ".shstrtab"]) + b"\0"
    contents[".shstrtab"] = names
    offset = 64 + 56 * len(segments)
    places: dict[str, int] = {}
    body = b""
    for name, data in contents.items():
        places[name] = offset + len(body)
        body += data
    index = list(contents).index(".shstrtab")
    counts = (64, 56, len(segments), 64, len(contents), index)
    header = struct.pack("<16sHHI", b"\x7fELF\x02\x01\x01", kind, machine, 1)
    header += struct.pack("<QQQIHHHHHH", entry, 64, offset + len(body), 0, *counts)
    for segment, name in segments:
        size = len(contents[name])
        header += struct.pack("<IIQQQ", segment, 5, places[name], entry, entry)
        header += struct.pack("<QQQ", size, size + 4096, 4096)
    table = b""
    for name, data in contents.items():
        at = names.find(name.encode() + b"\0") if name else 0
        table += struct.pack("<IIQQ", at, 1 if name else 0, 0, 0)
        table += struct.pack("<QQIIQQ", places[name], len(data), 0, 0, 1, 0)
    return header + body + table


@pytest.fixture
def elf_file() -> Callable[..., bytes]:
    return build_elf


@pytest.fixture
def riscv_attributes() -> Callable[[str], bytes]:
    return attributes
