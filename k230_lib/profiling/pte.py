"""What a ``.pte`` program says about its instructions, read without ExecuTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError
from .flatbuf import Buffer, DamagedBufferError, Positions
from .sources import read_file

IDENTIFIER = b"ET12"
EXPORT_AGAIN = "export the model again."
_HEAD_BYTES = 32

# Slots of the schema's tables, in the order of their declaration.
_PROGRAM_PLANS, _PROGRAM_SEGMENTS = 1, 4
_PLAN_NAME, _PLAN_VALUES, _PLAN_CHAINS, _PLAN_OPERATORS = 0, 2, 5, 6
_CHAIN_INSTRUCTIONS = 2
_UNION_TYPE, _UNION_VALUE = 0, 1
_KERNEL_CALL, _DELEGATE_CALL, _TENSOR = 1, 2, 5
_CALL_INDEX, _CALL_ARGUMENTS = 0, 1
_TENSOR_SIZES = 2
_SEGMENT_OFFSET, _SEGMENT_SIZE = 0, 1
_DELEGATE = "executorch_call_delegate"


@dataclass(frozen=True)
class Instruction:
    """A kernel or delegate call: ``aten::add.out`` and the sizes of its last tensor argument."""

    operator: str
    output_shape: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """One method of a program; ``instructions`` is keyed by instruction index."""

    path: Path
    method: str
    instructions: Mapping[int, Instruction]


def read_pte(path: Path, method: str = "forward") -> Program:
    """Read and check a ``.pte`` file.

    Raises:
        InputError: the file is missing, empty, truncated, damaged, or of another kind or release.
    """
    data = read_file(path, ".pte model", hint=EXPORT_AGAIN)
    if data[4:8] != IDENTIFIER:
        if data[4:6] == IDENTIFIER[:2] and data[6:8].isdigit():
            raise InputError(
                f"{path}: .pte of schema {data[4:8].decode()}, expected {IDENTIFIER.decode()}: it "
                "was written by another release of ExecuTorch.",
                hint=EXPORT_AGAIN,
            )
        raise InputError(f"{path}: not a .pte model.", hint=EXPORT_AGAIN)
    try:
        return _parse(path, data, method)
    except DamagedBufferError as error:
        raise InputError(
            f"{path}: the .pte is truncated or damaged: {error}.", hint=EXPORT_AGAIN
        ) from error


def _parse(path: Path, data: bytes, method: str) -> Program:
    buffer = Buffer(data)
    root = buffer.root(0)
    _check_segments(buffer, root, data)
    plans = buffer.tables(int(buffer.child(root, _PROGRAM_PLANS)[0]))
    names = [buffer.text(int(place)) for place in buffer.child(plans, _PLAN_NAME)]
    if method not in names:
        raise InputError(f"{path}: no method {method!r}; it has: {', '.join(names) or 'none'}.")
    plan = plans[[names.index(method)]]
    operators = _operators(buffer, plan)
    sizes = _tensor_sizes(buffer, plan)
    chains = buffer.tables(int(buffer.child(plan, _PLAN_CHAINS)[0]))
    calls = buffer.tables(int(buffer.child(chains[:1], _CHAIN_INSTRUCTIONS)[0]))
    kinds = buffer.scalar(calls, _UNION_TYPE, "u1", 0)
    bodies = buffer.child(calls, _UNION_VALUE)
    indices = buffer.scalar(bodies, _CALL_INDEX, "<i4", 0)
    arguments = buffer.child(bodies, _CALL_ARGUMENTS)
    instructions = {}
    for position in np.flatnonzero((kinds == _KERNEL_CALL) | (kinds == _DELEGATE_CALL)):
        number = int(position)
        if kinds[number] == _KERNEL_CALL:
            index = int(indices[number])
            if not 0 <= index < len(operators):
                raise DamagedBufferError(f"instruction {number} names operator {index}")
            name = operators[index]
        else:
            name = _DELEGATE
        values = buffer.vector(int(arguments[number]), "<i4")
        shape = sizes.get(int(values[-1]), ()) if values.size else ()
        instructions[number] = Instruction(operator=name, output_shape=shape)
    return Program(path=path, method=method, instructions=instructions)


def _check_segments(buffer: Buffer, root: Positions, data: bytes) -> None:
    """Weights follow the program: a file cut among them still has a whole program."""
    segments = buffer.tables(int(buffer.child(root, _PROGRAM_SEGMENTS)[0]))
    if not segments.size:
        return
    start = int.from_bytes(data[24:32], "little") if len(data) >= _HEAD_BYTES else 0
    ends = buffer.scalar(segments, _SEGMENT_OFFSET, "<u8", 0) + buffer.scalar(
        segments, _SEGMENT_SIZE, "<u8", 0
    )
    expected = start + int(ends.max())
    if expected > len(data):
        raise DamagedBufferError(f"{len(data)} of {expected} bytes")


def _operators(buffer: Buffer, plan: Positions) -> list[str]:
    tables = buffer.tables(int(buffer.child(plan, _PLAN_OPERATORS)[0]))
    names = (buffer.text(int(place)) for place in buffer.child(tables, 0))
    overloads = (buffer.text(int(place)) for place in buffer.child(tables, 1))
    return [
        f"{name}.{overload}" if overload else name
        for name, overload in zip(names, overloads, strict=True)
    ]


def _tensor_sizes(buffer: Buffer, plan: Positions) -> dict[int, tuple[int, ...]]:
    """Sizes of the values that are tensors, by value index."""
    values = buffer.tables(int(buffer.child(plan, _PLAN_VALUES)[0]))
    kinds = buffer.scalar(values, _UNION_TYPE, "u1", 0)
    bodies = buffer.child(values, _UNION_VALUE)
    tensors = np.flatnonzero(kinds == _TENSOR)
    places = buffer.child(bodies[tensors], _TENSOR_SIZES)
    return {
        int(value): tuple(int(size) for size in buffer.vector(int(place), "<i4"))
        for value, place in zip(tensors, places, strict=True)
    }
