"""Facts of ELF files."""

from __future__ import annotations

from typing import Any

import pytest

from k230_lib.errors import RunnerError
from k230_lib.runner.elf import operator_names, parse_elf, section_bytes

X86 = 62


def test_a_static_board_program_is_told_apart(elf_file: Any, riscv_attributes: Any) -> None:
    elf = parse_elf(
        elf_file(sections={".riscv.attributes": riscv_attributes("rv64i2p0_m2p0_v1p0_zvl128b1p0")})
    )
    assert (elf.machine, elf.kind, elf.entry) == ("riscv64", "executable", 0x200000000)
    assert elf.static
    assert elf.has_vector
    assert elf.arch == "rv64i2p0_m2p0_v1p0_zvl128b1p0"
    assert elf.load_bytes == 256
    assert elf.memory_bytes == 256 + 4096


@pytest.mark.parametrize("arch", ["rv64i2p0_m2p0_a2p0_f2p0_d2p0_c2p0", "rv64i2p1_zvkb1p0", ""])
def test_without_the_vector_extension(arch: str, elf_file: Any, riscv_attributes: Any) -> None:
    sections = {".riscv.attributes": riscv_attributes(arch)} if arch else {}
    assert not parse_elf(elf_file(sections=sections)).has_vector


def test_a_dynamic_program_names_what_it_needs(elf_file: Any) -> None:
    elf = parse_elf(elf_file(machine=X86, kind=3, interpreter=b"/lib64/ld.so", needed=b"libx.so"))
    assert elf.machine == "x86-64"
    assert not elf.static
    assert elf.interpreter == "/lib64/ld.so"
    assert elf.needed == ("libx.so",)


def test_sections_are_found_by_name(elf_file: Any) -> None:
    data = elf_file(sections={".k230_manifest": b'{"a": 1}\0'})
    elf = parse_elf(data)
    assert section_bytes(data, elf, ".k230_manifest") == b'{"a": 1}\0'
    assert section_bytes(data, elf, ".nothing") is None


def test_every_cut_of_a_file_is_refused(elf_file: Any, riscv_attributes: Any) -> None:
    data = elf_file(sections={".riscv.attributes": riscv_attributes("rv64i2p0_v1p0")})
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
        b"std::vector<int>::at\0std::bad_cast\0basic_string::append\0"
        b"_ZN4aten\0Missing aten::x\n\0k230::conv2d_clamp.out\0"
    )
    assert operator_names(data) == {
        "aten::add.out",
        "aten::sym_numel",
        "executorch_prim::et_view.default",
        "k230::conv2d_clamp.out",
    }
