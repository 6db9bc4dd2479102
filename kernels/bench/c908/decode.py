"""Instruction words -> what they occupy, read and write in the timing model.

Costs of vector arithmetic: published reciprocal throughputs of a K230 (rvv-bench). Vector memory:
8 bytes a cycle, fitted to the published memset and memcpy curves of the same board; strided loads
one element a cycle. Scalar latencies from the same page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Register = tuple[str, int]
Unit = Literal["alu", "mul", "branch", "vset", "load", "store", "float", "vload", "vstore", "valu"]

VLEN = 128
LSU_BYTES_PER_CYCLE = 8
LATENCY = {"vload": 5, "vfloat": 5, "vint": 4, "flw": 4, "load": 3, "vset": 5, "fma": 5, "fp": 4}

# funct6 of vector integer operations that only one of the two 64-bit halves can do
_HALF_RATE_INT = {
    0b001001, 0b001010, 0b001011,  # and or xor
    0b001100, 0b001110, 0b001111,  # gather, slideup, slidedown
    0b010111,  # merge, move
    0b100101, 0b101000, 0b101001,  # shifts
}  # fmt: skip
_GATHER = 0b001100
_REDUCTION = {0b000001, 0b000011, 0b000101, 0b000111}
_REDUCTION_CYCLES = {1: 5.0, 2: 8.1, 4: 14.4, 8: 52.4}
_GATHER_CYCLES = {1: 4.0, 2: 16.4, 4: 65.5, 8: 262.0}
_FMA_FUNCT6 = range(0b101000, 0b110000)
_MERGE = 0b010111
_SLIDE_UP, _SLIDE_DOWN = 0b001110, 0b001111


@dataclass(frozen=True)
class Instruction:
    """One instruction as the scoreboard sees it. Cycles of vector units are in total."""

    unit: Unit
    latency: float = 1.0
    reads: tuple[Register, ...] = ()
    writes: tuple[Register, ...] = ()
    vector_reads: tuple[int, ...] = ()
    busy: float = 0.0
    """Cycles the vector unit it runs on is occupied."""
    groups: int = 1
    """Registers in a vector operand."""
    fma: bool = False


def _x(n: int) -> Register:
    return ("x", n)


def _f(n: int) -> Register:
    return ("f", n)


def _v(first: int, count: int) -> tuple[Register, ...]:
    return tuple(("v", (first + i) & 31) for i in range(count))


def vtype_lmul(vtype: int) -> tuple[int, float]:
    """(element bits, registers per group) of a vtype value."""
    return 8 << ((vtype >> 3) & 7), {0: 1, 1: 2, 2: 4, 3: 8, 5: 0.125, 6: 0.25, 7: 0.5}.get(
        vtype & 7, 1
    )


def _load(rs1: int, to: Register) -> Instruction:
    latency = LATENCY["flw"] if to[0] == "f" else LATENCY["load"]
    return Instruction("load", latency, (_x(rs1),), (to,))


def _compressed(w: int) -> Instruction:  # noqa: PLR0911 (one return per format)
    quadrant, f3 = w & 3, (w >> 13) & 7
    rd, rs2 = (w >> 7) & 31, (w >> 2) & 31
    short_rd, short_rs1 = 8 + ((w >> 2) & 7), 8 + ((w >> 7) & 7)
    if quadrant == 0:
        if f3 in (2, 3):
            return _load(short_rs1, _x(short_rd))
        if f3 == 1:
            return _load(short_rs1, _f(short_rd))
        if f3 in (5, 6, 7):
            return Instruction("store", 0, (_x(short_rs1),))
        return Instruction("alu", 1, (_x(2),), (_x(short_rd),))
    if quadrant == 1:
        if f3 in (0, 1):
            return Instruction("alu", 1, (_x(rd),), (_x(rd),))
        if f3 in (2, 3):
            return Instruction("alu", 1, (), (_x(rd),))
        if f3 == 4:
            return Instruction("alu", 1, (_x(short_rs1), _x(short_rd)), (_x(short_rs1),))
        return Instruction("branch", 1, () if f3 == 5 else (_x(short_rs1),))
    if f3 == 0:
        return Instruction("alu", 1, (_x(rd),), (_x(rd),))
    if f3 in (1, 2, 3):
        return _load(2, _f(rd) if f3 == 1 else _x(rd))
    if f3 == 4:
        if rs2 == 0:
            return Instruction("branch", 1, (_x(rd),))
        return Instruction("alu", 1, (_x(rd), _x(rs2)), (_x(rd),))
    return Instruction("store", 0, (_x(2),))


def _memory(w: int, vtype: int) -> Instruction:
    is_load = w & 0x7F == 0x07
    width, rd, rs1, rs2 = (w >> 12) & 7, (w >> 7) & 31, (w >> 15) & 31, (w >> 20) & 31
    if width in (1, 2, 3, 4):  # scalar float
        return _load(rs1, _f(rd)) if is_load else Instruction("store", 0, (_x(rs1), _f(rs2)))
    bits = {0: 8, 5: 16, 6: 32, 7: 64}[width]
    mode, fields = (w >> 26) & 3, ((w >> 29) & 7) + 1
    element_bits, lmul = vtype_lmul(vtype)
    size = lmul * bits / element_bits
    if mode == 0 and rs2 == 8:  # whole registers
        size, fields = fields, 1
    elements, registers = size * VLEN / bits, max(1, int(size))
    if mode == 0 and fields == 1:
        busy = max(1.0, elements * bits / 8 / LSU_BYTES_PER_CYCLE)
    elif mode == 0:
        busy = (3.0 if is_load else 1.5) * fields * registers
    else:
        busy = elements * fields
    count = registers * fields
    reads = (_x(rs1), *((_x(rs2),) if mode == 2 else ()))
    if is_load:
        return Instruction("vload", LATENCY["vload"], reads, _v(rd, count), (), busy, count)
    regs = tuple((rd + i) & 31 for i in range(count))
    return Instruction("vstore", 0, reads, (), regs, busy, count)


def _vector(w: int, vtype: int) -> Instruction:  # noqa: PLR0912 (one branch per cost)
    f3, f6 = (w >> 12) & 7, w >> 26
    rd, rs1, rs2, unmasked = (w >> 7) & 31, (w >> 15) & 31, (w >> 20) & 31, (w >> 25) & 1
    if f3 == 7:
        reads = () if w >> 30 == 3 else (_x(rs1),)
        return Instruction("vset", LATENCY["vset"], reads, (_x(rd),) if rd else ())
    _, lmul = vtype_lmul(vtype)
    n = max(1, int(lmul))
    is_float, is_int = f3 in (1, 5), f3 in (0, 3, 4)
    latency = LATENCY["vfloat"] if is_float else LATENCY["vint"]
    if is_float and f6 == 0b010000:  # between vector element 0 and scalar
        if f3 == 1:
            return Instruction("valu", 6, (), (_f(rd),), (rs2,), 4.0)
        return Instruction("valu", latency, (_f(rs1),), _v(rd, 1), (), 1.0)
    if f3 == 2 and f6 == 0b010000:  # vcpop, vfirst, vmv.x.s: not in the table, taken as vfmv.f.s
        return Instruction("valu", 6, (), (_x(rd),), (rs2,), 4.0)
    if f3 == 1 and f6 in _REDUCTION:
        cycles = _REDUCTION_CYCLES[n]
        vector = tuple(rs2 + i for i in range(n))
        return Instruction("valu", cycles, (), _v(rd, 1), vector, cycles)
    per_register = 1.0
    if (is_int and f6 in _HALF_RATE_INT) or (is_float and f6 in (_SLIDE_UP, _MERGE)):
        per_register = 2.0
    if f3 == 6 and f6 == _SLIDE_UP:
        per_register = 2.0
    if (is_float or f3 == 6) and f6 == _SLIDE_DOWN:
        per_register = 2.25
    if is_float and f6 == 0b010010:  # conversions
        per_register = 4.0
    merge = f6 == _MERGE and (is_float or is_int)
    fma = is_float and f6 in _FMA_FUNCT6
    if not unmasked and not merge:
        per_register *= 2
    busy = per_register * n
    if f3 == 0 and f6 == _GATHER:
        busy = _GATHER_CYCLES[n]
    reads = (_x(rs1),) if f3 in (4, 6) else (_f(rs1),) if f3 == 5 else ()
    sources = [rs1 + i for i in range(n)] if f3 in (0, 1, 2) else []
    if not (merge and unmasked):
        sources += [rs2 + i for i in range(n)]
    if fma:
        sources += [rd + i for i in range(n)]
    return Instruction(
        "valu", latency, reads, _v(rd, n), tuple(s & 31 for s in sources), busy, n, fma
    )


def decode(w: int, vtype: int) -> Instruction:  # noqa: PLR0911 (one return per format)
    """The instruction word `w` under `vtype` (which says how many registers a vector one uses)."""
    if w & 3 != 3:
        return _compressed(w)
    op, rd, rs1, rs2 = w & 0x7F, (w >> 7) & 31, (w >> 15) & 31, (w >> 20) & 31
    f3, f7 = (w >> 12) & 7, w >> 25
    if op in (0x07, 0x27):
        return _memory(w, vtype)
    if op == 0x57:
        return _vector(w, vtype)
    if op == 0x03:
        return _load(rs1, _x(rd))
    if op == 0x23:
        return Instruction("store", 0, (_x(rs1), _x(rs2)))
    if op in (0x13, 0x1B, 0x17, 0x37):
        return Instruction("alu", 1, (_x(rs1),) if op in (0x13, 0x1B) else (), (_x(rd),))
    if op in (0x33, 0x3B):
        if f7 == 1:
            return Instruction("mul", 3 if f3 < 4 else 8, (_x(rs1), _x(rs2)), (_x(rd),))
        return Instruction("alu", 1, (_x(rs1), _x(rs2)), (_x(rd),))
    if op in (0x63, 0x67, 0x6F):
        reads = (_x(rs1), *((_x(rs2),) if op == 0x63 else ()))
        return Instruction("branch", 1, reads, (_x(rd),) if op != 0x63 else ())
    if op in (0x43, 0x47, 0x4B, 0x4F):
        return Instruction("float", LATENCY["fma"], (_f(rs1), _f(rs2), _f(w >> 27)), (_f(rd),))
    if op == 0x53:
        if f7 in (0x60, 0x61, 0x50, 0x51, 0x70, 0x71):
            return Instruction("float", 6, (_f(rs1),), (_x(rd),))
        reads = (_x(rs1),) if f7 in (0x68, 0x69, 0x78, 0x79) else (_f(rs1), _f(rs2))
        latency = 10 if f7 in (0x0C, 0x0D) else LATENCY["fp"]
        return Instruction("float", latency, reads, (_f(rd),))
    return Instruction("alu", 1, (), (_x(rd),))
