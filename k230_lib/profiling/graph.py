"""The nodes of a serialised Edge graph: what each operator computes and where it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

_TARGET_PREFIXES = ("executorch.exir.dialects.edge.ops.", "torch.ops.higher_order.", "torch.ops.")
_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
# Frames of torch itself tell how the model was traced, not where it was written.
_FRAMEWORK = re.compile(r"/torch/(_|nn/|fx/|export/)|^<")
_GETITEM = "_operator.getitem"
# The second one is this project's: a convolution with the clamp behind it.
CONVOLUTIONS = ("convolution", "conv2d_clamp")
MATRIX_OPERATORS = {"addmm": ("mat1", "mat2"), "mm": ("self", "mat2"), "bmm": ("self", "mat2")}


@dataclass(frozen=True)
class SourceLine:
    """A line of the model's Python source: short file name, number, text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class GraphNode:
    """One operator of the graph.

    ``operator`` is e.g. ``aten.convolution.default``; ``module_stack`` holds (path, type) from the
    model down to the module that called it. ``kind`` and ``detail`` say more about a convolution
    (``pointwise``; ``1x1 96->24 @56x56``); ``macs`` counts multiply-accumulates, 0 where that has
    no meaning. ``output_shape`` is () when unknown.
    """

    name: str
    operator: str
    handle: int
    module_stack: tuple[tuple[str, str], ...]
    stack_trace: str
    output_shape: tuple[int, ...]
    kind: str
    detail: str
    macs: int

    @property
    def base(self) -> str:
        """The operator without name space and overload, e.g. ``convolution``."""
        parts = self.operator.split(".")
        return parts[1] if len(parts) > 1 else parts[0]

    @property
    def module(self) -> str:
        """Path of the innermost module, empty for the model itself."""
        return self.module_stack[-1][0] if self.module_stack else ""

    @property
    def module_type(self) -> str:
        """Class name of the innermost module."""
        return self.module_stack[-1][1].rpartition(".")[2] if self.module_stack else ""

    @property
    def source(self) -> SourceLine | None:
        """The innermost line of the model's own source."""
        return source_line(self.stack_trace)


def graph_nodes(graph: Mapping[str, Any]) -> Iterator[GraphNode]:
    """All operators of a serialised graph that have a debug handle, in order.

    Args:
        graph: the ``graph_module.graph`` object of a serialised exported program.
    """
    shapes = {name: _shape(value) for name, value in graph.get("tensor_values", {}).items()}
    for node in graph["nodes"]:
        metadata = node.get("metadata", {})
        if "debug_handle" not in metadata or node["target"] == _GETITEM:
            continue
        arguments = {item["name"]: item["arg"] for item in node.get("inputs", ())}
        output = shapes.get(_first_output(node), ())
        operator = operator_name(node["target"])
        kind, detail, macs = describe(operator, arguments, output, shapes)
        yield GraphNode(
            name=str(node.get("name") or _first_output(node)),
            operator=operator,
            handle=int(metadata["debug_handle"]),
            module_stack=module_stack(metadata.get("nn_module_stack", "")),
            stack_trace=metadata.get("stack_trace", ""),
            output_shape=output,
            kind=kind,
            detail=detail,
            macs=macs,
        )


def operator_name(target: str) -> str:
    """Name of an operator from the target of a serialised node."""
    for prefix in _TARGET_PREFIXES:
        if target.startswith(prefix):
            return target.removeprefix(prefix)
    return target


def module_stack(text: str) -> tuple[tuple[str, str], ...]:
    """Parse ``key,path,type;...``; paths may themselves hold commas, keys and types do not."""
    stack = []
    for entry in filter(None, text.split(";")):
        _, _, rest = entry.partition(",")
        path, _, kind = rest.rpartition(",")
        stack.append((path, kind))
    return tuple(stack)


def source_line(stack_trace: str) -> SourceLine | None:
    """The innermost frame of a stack trace that is the model's own, else the innermost one."""
    frames = list(_FRAME.finditer(stack_trace))
    if not frames:
        return None
    own = [frame for frame in frames if not _FRAMEWORK.search(frame["file"])]
    frame = (own or frames)[-1]
    following = stack_trace[frame.end() :].splitlines()[1:2]
    return SourceLine(
        file=_short_file(frame["file"]),
        line=int(frame["line"]),
        text=following[0].strip() if following else "",
    )


def describe(
    operator: str,
    arguments: Mapping[str, Any],
    output: tuple[int, ...],
    shapes: Mapping[str, tuple[int, ...]],
) -> tuple[str, str, int]:
    """Kind, one-line description and multiply-accumulates of an operator."""
    base = operator.split(".")[1] if "." in operator else operator
    at = "x".join(map(str, output[2:] if len(output) == 4 else output))
    if base in CONVOLUTIONS:
        return _describe_convolution(arguments, output, shapes, at)
    if base in MATRIX_OPERATORS:
        left, right = (_tensor(arguments, name, shapes) for name in MATRIX_OPERATORS[base])
        if left and right:
            size = f"{'x'.join(map(str, left))} * {'x'.join(map(str, right))}"
            return "", size, prod(left) * right[-1]
    channels = f"{output[1]} " if len(output) == 4 else ""
    return "", f"{channels}@{at}" if at else "", 0


def _describe_convolution(
    arguments: Mapping[str, Any],
    output: tuple[int, ...],
    shapes: Mapping[str, tuple[int, ...]],
    at: str,
) -> tuple[str, str, int]:
    weight = _tensor(arguments, "weight", shapes)
    source = _tensor(arguments, "input", shapes)
    if len(weight) < 3 or len(output) < 3 or len(source) < 3:
        return "", f"@{at}" if at else "", 0
    groups = int(arguments.get("groups", {}).get("as_int", 1))
    transposed = bool(arguments.get("transposed", {}).get("as_bool", False))
    strides = arguments.get("stride", {}).get("as_ints", [1])
    kernel = weight[2:]
    # Each weight is used once for every place it slides over: the output's, or, transposed,
    # the input's.
    macs = prod(weight) * prod((source if transposed else output)[2:]) * output[0]
    if groups > 1:
        kind = "depthwise" if groups == source[1] else "grouped"
    else:
        kind = "pointwise" if prod(kernel) == 1 else "dense"
    size = "x".join(map(str, kernel))
    step = f" /{strides[0]}" if any(stride != 1 for stride in strides) else ""
    channels = f"{source[1]}->{output[1]}" if kind != "depthwise" else f"{output[1]}"
    word = f" {kind}" if kind in ("depthwise", "grouped") else ""
    turned = " transposed" if transposed else ""
    return kind, f"{size}{word}{turned} {channels}{step} @{at}", macs


def _short_file(file: str) -> str:
    """``torchvision/models/mobilenetv2.py`` rather than where it was installed."""
    for marker in ("/site-packages/", "/dist-packages/"):
        if marker in file:
            return file.rpartition(marker)[2]
    return "/".join(file.split("/")[-2:])


def _first_output(node: Mapping[str, Any]) -> str:
    """Name of the first tensor that a node gives."""
    tensors = (
        output["as_tensor"]["name"] for output in node.get("outputs", ()) if "as_tensor" in output
    )
    return str(next(tensors, ""))


def _tensor(
    arguments: Mapping[str, Any], name: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    tensor = arguments.get(name, {}).get("as_tensor")
    return shapes.get(tensor["name"], ()) if tensor else ()


def _shape(value: Mapping[str, Any]) -> tuple[int, ...]:
    """Sizes of a tensor; () when one of them is symbolic."""
    sizes = value.get("sizes", ())
    if not all("as_int" in size for size in sizes):
        return ()
    return tuple(int(size["as_int"]) for size in sizes)
