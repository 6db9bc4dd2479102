"""Small ETDumps, ETRecords and programs for tests, made without torch or ExecuTorch.

The model is made up, but of the shape that an export of MobileNetV2 has: convolutions, an
activation, and a transposed weight before the last matrix product.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Writer = Callable[[bytearray], int]
"""Appends itself to the buffer and returns its position."""

_SOURCE = "/home/user/site-packages/torchvision/models/mobilenetv2.py"


@dataclass(frozen=True)
class Operator:
    """An operator of the made-up model."""

    target: str
    kernel: str
    module: str
    shape: tuple[int, ...]
    line: int = 64
    inputs: Mapping[str, Any] | None = None

    @property
    def base(self) -> str:
        """``convolution`` for ``aten.convolution.default``."""
        return self.target.split(".")[1]


def _convolution(weight: tuple[int, ...], source: tuple[int, ...], groups: int) -> dict[str, Any]:
    return {"input": source, "weight": weight, "stride": [1, 1], "groups": groups}


MODEL = (
    Operator(
        "aten.convolution.default",
        "convolution.out",
        "features.0.0",
        (1, 8, 16, 16),
        166,
        _convolution((8, 3, 3, 3), (1, 3, 16, 16), 1),
    ),
    Operator("aten.hardtanh.default", "hardtanh.out", "features.0.2", (1, 8, 16, 16), 166),
    Operator(
        "aten.convolution.default",
        "convolution.out",
        "features.1.conv.0",
        (1, 8, 16, 16),
        64,
        _convolution((8, 1, 3, 3), (1, 8, 16, 16), 8),
    ),
    Operator(
        "aten.convolution.default",
        "convolution.out",
        "features.1.conv.1",
        (1, 16, 16, 16),
        64,
        _convolution((16, 8, 1, 1), (1, 8, 16, 16), 1),
    ),
    Operator("aten.mean.dim", "mean.out", "", (1, 16), 168),
    Operator("aten.permute_copy.default", "permute_copy.out", "classifier.1", (16, 10), 170),
    Operator(
        "aten.addmm.default",
        "addmm.out",
        "classifier.1",
        (1, 10),
        170,
        {"mat1": (1, 16), "mat2": (16, 10)},
    ),
)
TIMES_NS = (900_000, 40_000, 300_000, 700_000, 30_000, 10_000, 20_000)
"""Kernel times of :data:`MODEL` in the first execution."""


def write_etdump(
    path: Path,
    *,
    times: Sequence[Sequence[int]] = (TIMES_NS,),
    model: Sequence[Operator] = MODEL,
    kernels: Mapping[int, str] | None = None,
    calls_only: Sequence[int] = (),
    overhead: int = 1_000,
    first_tick: int = 5_000_000,
    identifier: bytes = b"ED00",
    framework: bool = True,
) -> Path:
    """Write a trace as a runner does: loading, then one block per execution.

    Args:
        path: the file to write.
        times: ticks of each kernel, for each execution.
        model: its operators.
        kernels: event names of some instructions, instead of ``native_call_<kernel>``.
        calls_only: instructions whose kernel makes no event of its own.
        overhead: ticks that the framework takes around each kernel.
        first_tick: when the first execution starts.
        identifier: the schema's.
        framework: whether ``Method::execute`` is in it.
    """
    names = kernels or {}
    runs = [_run("Default", [("Program::load_method", -1, 1_000, 4_000)])]
    now = first_tick
    for execution in times:
        begin = now
        events: list[tuple[str, int, int, int]] = []
        for number, (operator, ticks) in enumerate(zip(model, execution, strict=True)):
            start = now
            now += ticks
            if number not in calls_only:
                name = names.get(number, f"native_call_{operator.kernel}")
                events.append((name, number, start, now))
            events.append(("OPERATOR_CALL", number, start - overhead, now + overhead))
            now += 2 * overhead
        if framework:
            events.append(("Method::execute", -1, begin - overhead, now))
        runs.append(_run("Execute", events))
        now += 50_000
    body = bytearray(b"\0" * 4 + identifier)
    root = table({0: ("<I", 0), 1: vector(runs)})(body)
    struct.pack_into("<I", body, 0, root)
    path.write_bytes(struct.pack("<I", len(body)) + body)
    return path


def write_etrecord(
    path: Path,
    *,
    model: Sequence[Operator] = MODEL,
    identifier: str = "ETRECORD_V0",
    older_layout: bool = False,
    leave_out: Sequence[str] = (),
) -> Path:
    """Write an ETRecord with the parts that matter here.

    Args:
        path: the file to write.
        model: its operators.
        identifier: name of the entry that marks the file.
        older_layout: the graph in an entry without the method's name.
        leave_out: entries not to write.
    """
    values: dict[str, Any] = {}
    nodes = [_graph_node(number, operator, values) for number, operator in enumerate(model)]
    graph = {"graph_module": {"graph": {"nodes": nodes, "tensor_values": values}}}
    name = "edge_dialect_exported_program"
    entries = {
        identifier: "",
        name if older_layout else f"{name}/forward": json.dumps(graph),
        "debug_handle_map": json.dumps({"forward": {str(i): i + 1 for i in range(len(model))}}),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in entries.items():
            if entry not in leave_out:
                archive.writestr(entry, content)
    return path


def write_pte(
    path: Path,
    *,
    model: Sequence[Operator] = MODEL,
    identifier: bytes = b"ET12",
    weights: int = 256,
) -> Path:
    """Write a program whose instructions are those of ``model``, and ``weights`` bytes after it."""
    kernels = sorted({operator.kernel for operator in model})
    operators = [
        table({0: string(f"aten::{kernel.split('.')[0]}"), 1: string(kernel.split(".")[1])})
        for kernel in kernels
    ]
    values = [table({0: ("<B", 5), 1: table({2: ints(o.shape)})}) for o in model]
    instructions = [
        table({0: ("<B", 1), 1: table({0: ("<i", kernels.index(o.kernel)), 1: ints([number])})})
        for number, o in enumerate(model)
    ]
    plan = table(
        {
            0: string("forward"),
            2: vector(values),
            5: vector([table({2: vector(instructions)})]),
            6: vector(operators),
        }
    )
    segment = table({0: ("<Q", 0), 1: ("<Q", weights)})
    body = bytearray(b"\0" * 4 + identifier + b"eh00" + struct.pack("<I", 32) + b"\0" * 16)
    root = table({0: ("<I", 0), 1: vector([plan]), 4: vector([segment])})(body)
    struct.pack_into("<I", body, 0, root)
    struct.pack_into("<QQ", body, 16, len(body), len(body))
    path.write_bytes(bytes(body) + b"\0" * weights)
    return path


def table(fields: Mapping[int, tuple[str, int] | Writer]) -> Writer:
    """A FlatBuffer table: scalars as (format, value), others as writers, by slot."""

    def write(buffer: bytearray) -> int:
        vtable = len(buffer)
        offsets = [0] * (max(fields, default=-1) + 1)
        inline = bytearray(struct.pack("<i", 4 + 2 * len(offsets)))
        for slot, value in fields.items():
            offsets[slot] = len(inline)
            inline += struct.pack(value[0], value[1]) if isinstance(value, tuple) else b"\0" * 4
        buffer += struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), len(inline), *offsets)
        position = vtable + 4 + 2 * len(offsets)
        buffer += inline
        for slot, value in fields.items():
            if not isinstance(value, tuple):
                _refer(buffer, position + offsets[slot], value)
        return position

    return write


def vector(members: Sequence[Writer]) -> Writer:
    """A vector of tables."""

    def write(buffer: bytearray) -> int:
        position = len(buffer)
        buffer += struct.pack("<I", len(members)) + b"\0" * (4 * len(members))
        for index, member in enumerate(members):
            _refer(buffer, position + 4 + 4 * index, member)
        return position

    return write


def ints(values: Sequence[int]) -> Writer:
    """A vector of 32-bit integers."""
    return _raw(struct.pack(f"<I{len(values)}i", len(values), *values))


def string(text: str) -> Writer:
    """A string."""
    data = text.encode()
    return _raw(struct.pack("<I", len(data)) + data + b"\0")


def _raw(data: bytes) -> Writer:
    def write(buffer: bytearray) -> int:
        position = len(buffer)
        buffer.extend(data)
        return position

    return write


def _refer(buffer: bytearray, place: int, target: Writer) -> None:
    struct.pack_into("<I", buffer, place, target(buffer) - place)


def _run(label: str, events: Sequence[tuple[str, int, int, int]]) -> Writer:
    profiles = [
        table(
            {0: string(name), 2: ("<i", instruction), 6: ("<Q", start), 7: ("<Q", end)},
        )
        for name, instruction, start, end in events
    ]
    return table({0: string(label), 3: vector([table({0: profile}) for profile in profiles])})


def _graph_node(number: int, operator: Operator, values: dict[str, Any]) -> dict[str, Any]:
    """A serialised node; its tensors' sizes are added to ``values``."""
    name = f"node_{number}"
    values[name] = _sizes(operator.shape)
    inputs = []
    for argument, value in (operator.inputs or {}).items():
        if isinstance(value, tuple):
            values[f"{name}_{argument}"] = _sizes(value)
            arg: dict[str, Any] = {"as_tensor": {"name": f"{name}_{argument}"}}
        else:
            arg = {"as_ints" if isinstance(value, list) else "as_int": value}
        inputs.append({"name": argument, "arg": arg})
    stack = "L__self__,,torchvision.models.mobilenetv2.MobileNetV2"
    if operator.module:
        kind = "torch.nn.modules.linear.Linear" if "class" in operator.module else "a.Layer"
        stack += f";1,{operator.module},{kind}"
    return {
        "name": name,
        "target": f"executorch.exir.dialects.edge.ops.{operator.target}",
        "inputs": inputs,
        "outputs": [{"as_tensor": {"name": name}}],
        "metadata": {
            "debug_handle": str(number + 1),
            "nn_module_stack": stack,
            "stack_trace": '  File "/x/torch/_dynamo/functional_export.py", line 1, in forward\n'
            f'    traced()\n  File "{_SOURCE}", line {operator.line}, in forward\n'
            f"    return self.step{operator.line}(x)\n           ^^^^^\n",
        },
    }


def _sizes(shape: Sequence[int]) -> dict[str, Any]:
    return {"sizes": [{"as_int": size} for size in shape]}
