"""Facts of ELF files, from files put together here byte by byte."""

from __future__ import annotations

import struct

import pytest

from k230_lib.errors import RunnerError
from k230_lib.runner.elf import operator_names, parse_elf, section_bytes

RISCV, X86 = 243, 62
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
    contents = {"": b"", ".text": b"\x13\0\0\0" * 64, **(sections or {})}
    if needed:
        contents[".dynstr"] = b"\0" + needed + b"\0"
        contents[".dynamic"] = struct.pack("<qQqQ", 1, 1, 0, 0)
    contents[".shstrtab"] = b"\0".join(name.encode() for name in [*contents, ".shstrtab"]) + b"\0"
    segments = [(PT_LOAD, ".text")]
    if interpreter:
        contents[".interp"] = interpreter + b"\0"
        contents[".shstrtab"] += b".interp\0"
        segments.append((PT_INTERP, ".interp"))
    if needed:
        segments.append((PT_DYNAMIC, ".dynamic"))
    names = contents[".shstrtab"]
    offset = 64 + 56 * len(segments)
    places: dict[str, int] = {}
    body = b""
    for name, data in contents.items():
        places[name] = offset + len(body)
        body += data
    sh_at = offset + len(body)
    index = list(contents).index(".shstrtab")
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01", kind, machine, 1, entry, 64, sh_at, 0, 64, 56, len(segments), 64,
        len(contents), index,
    )  # fmt: skip
    for segment, name in segments:
        size = len(contents[name])
        header += struct.pack(
            "<IIQQQQQQ", segment, 5, places[name], entry, entry, size, size + 4096, 4096
        )
    table = b""
    for name, data in contents.items():
        at = names.find(name.encode() + b"\0") if name else 0
        table += struct.pack(
            "<IIQQQQIIQQ", at, 1 if name else 0, 0, 0, places[name], len(data), 0, 0, 1, 0
        )
    return header + body + table


def test_a_static_board_program_is_told_apart() -> None:
    elf = parse_elf(
        build_elf(sections={".riscv.attributes": attributes("rv64i2p0_m2p0_v1p0_zvl128b1p0")})
    )
    assert (elf.machine, elf.kind, elf.entry) == ("riscv64", "executable", 0x200000000)
    assert elf.static
    assert elf.has_vector
    assert elf.arch == "rv64i2p0_m2p0_v1p0_zvl128b1p0"
    assert elf.load_bytes == 256
    assert elf.memory_bytes == 256 + 4096


@pytest.mark.parametrize("arch", ["rv64i2p0_m2p0_a2p0_f2p0_d2p0_c2p0", "rv64i2p1_zvkb1p0", ""])
def test_without_the_vector_extension(arch: str) -> None:
    sections = {".riscv.attributes": attributes(arch)} if arch else {}
    assert not parse_elf(build_elf(sections=sections)).has_vector


def test_a_dynamic_program_names_what_it_needs() -> None:
    elf = parse_elf(build_elf(machine=X86, kind=3, interpreter=b"/lib64/ld.so", needed=b"libx.so"))
    assert elf.machine == "x86-64"
    assert not elf.static
    assert elf.interpreter == "/lib64/ld.so"
    assert elf.needed == ("libx.so",)


def test_sections_are_found_by_name() -> None:
    data = build_elf(sections={".k230_manifest": b'{"a": 1}\0'})
    elf = parse_elf(data)
    assert section_bytes(data, elf, ".k230_manifest") == b'{"a": 1}\0'
    assert section_bytes(data, elf, ".nothing") is None


def test_every_cut_of_a_file_is_refused_or_harmless() -> None:
    data = build_elf(sections={".riscv.attributes": attributes("rv64i2p0_v1p0")})
    for size in range(len(data)):
        with pytest.raises(RunnerError, match=r"cut short|no ELF"):
            parse_elf(data[:size], "the runner")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no ELF file"),
        (b"#!/bin/sh\n" + bytes(100), "no ELF file"),
        (b"\x7fELF\x01\x01" + bytes(100), "64-bit little-endian"),
        (b"\x7fELF\x02\x02" + bytes(100), "64-bit little-endian"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(RunnerError, match=message):
        parse_elf(data)


def test_operators_are_found_among_the_strings() -> None:
    data = (
        b"\0aten::add.out\0aten::sym_numel\0executorch_prim::et_view.default\0"
        b"std::vector<int>::at\0_ZN4aten\0Missing aten::x\n\0k230::conv2d_clamp.out\0"
    )
    assert operator_names(data) == {
        "aten::add.out",
        "aten::sym_numel",
        "executorch_prim::et_view.default",
        "k230::conv2d_clamp.out",
    }
