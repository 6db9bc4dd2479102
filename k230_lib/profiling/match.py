"""Do a trace, an ETRecord and a program belong to the same model?

A trace names no model: it holds instruction numbers and kernel names. The ETRecord maps
instruction numbers to operators, the ``.pte`` has both and the sizes of all tensors. What they
have in common is compared; hashes in ``model.json`` and in the capture file decide where present.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InputError
from .etrecord import REGENERATE, EtRecord
from .graph import GraphNode
from .pte import Program
from .samples import NATIVE_CALL, EventKey

GIVE_OTHER = "give the ETRecord that was written with the .pte which ran."
_SHOWN = 3


def kernel_base(name: str) -> str:
    """Operator without name space and overload from an event or operator name.

    ``native_call_convolution.out``, ``aten::convolution.out`` -> ``convolution``.
    """
    return name.removeprefix(NATIVE_CALL).rpartition("::")[2].partition(".")[0]


def pick_node(nodes: tuple[GraphNode, ...], kernel: str) -> GraphNode | None:
    """The node of an instruction that the kernel belongs to; the first when none is named so."""
    base = kernel_base(kernel)
    return next((node for node in nodes if node.base == base), nodes[0] if nodes else None)


def check_trace(kernels: Iterable[EventKey], record: EtRecord) -> None:
    """Refuse an ETRecord that cannot be of the model which was traced.

    A kernel of our own may have any name, so a name counts against the ETRecord only when it is an
    operator of the graph, but of another instruction.

    Raises:
        InputError: instructions are missing in the ETRecord, or are other operators there.
    """
    bases = {node.base for nodes in record.nodes.values() for node in nodes}
    traced: set[int] = set()
    wrong: list[str] = []
    for key in kernels:
        if key.instruction is None:
            continue
        traced.add(key.instruction)
        nodes = record.nodes.get(key.instruction)
        if nodes is None:
            wrong.append(f"instruction {key.instruction} is not in the ETRecord")
            continue
        base = kernel_base(key.name)
        standard = key.name.startswith(NATIVE_CALL) or base in bases
        if standard and base not in {node.base for node in nodes}:
            known = nodes[0].operator if nodes else "nothing"
            wrong.append(f"instruction {key.instruction} is {base} in the trace, {known} there")
    absent = set(record.nodes) - traced
    if absent:
        wrong.append(f"{len(absent)} of its {len(record.nodes)} operators were not executed")
    if wrong:
        more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
        raise InputError(
            f"{record.path}: the ETRecord is of another model: {'; '.join(wrong[:_SHOWN])}{more}.",
            hint=GIVE_OTHER,
        )


def check_program(program: Program, record: EtRecord) -> None:
    """Refuse an ETRecord that was not written with the program.

    Raises:
        InputError: the instructions, their operators or the sizes of their results differ.
    """
    wrong: list[str] = []
    for number, instruction in program.instructions.items():
        nodes = record.nodes.get(number)
        if nodes is None:
            wrong.append(f"instruction {number} ({instruction.operator}) is not in the ETRecord")
            continue
        base = kernel_base(instruction.operator)
        node = next((node for node in nodes if node.base == base), None)
        if node is None:
            known = nodes[0].operator if nodes else "nothing"
            wrong.append(f"instruction {number} is {instruction.operator}, {known} there")
        elif _differ(instruction.output_shape, node.output_shape):
            wrong.append(
                f"instruction {number} gives {_sizes(instruction.output_shape)}, "
                f"{_sizes(node.output_shape)} there"
            )
    extra = set(record.nodes) - set(program.instructions)
    if extra:
        wrong.append(f"{len(extra)} instructions are in the ETRecord only")
    if wrong:
        more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
        raise InputError(
            f"{record.path}: the ETRecord does not belong to {program.path.name}: "
            f"{'; '.join(wrong[:_SHOWN])}{more}.",
            hint=REGENERATE,
        )


def _differ(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes, both known, differ."""
    return bool(one and other and one != other)


def _sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
