"""Fuse a convolution with the clamp behind it (ReLU, ReLU6) into ``k230::conv2d_clamp``.

The fused operator exists in runners built with our kernels only, so the pass is off by default.
Its C++ side is in ``kernels/``; this module declares the operator to torch and gives the eager
meaning by which the export is verified.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node

OPERATOR = "k230::conv2d_clamp.out"

_ARGUMENTS = (
    "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
    "float min, float max"
)


@cache
def declare() -> torch.library.Library:
    """Declare the functional operator and its ``out`` variant; once in a process."""
    import torch

    library: Any = torch.library.Library("k230", "DEF")  # type: ignore[no-untyped-call]
    library.define(f"conv2d_clamp({_ARGUMENTS}) -> Tensor")
    library.define(f"conv2d_clamp.out({_ARGUMENTS}, *, Tensor(a!) out) -> Tensor(a!)")
    library.impl("conv2d_clamp", _eager, "CompositeExplicitAutograd")
    library.impl("conv2d_clamp.out", _eager_out, "CompositeExplicitAutograd")
    return cast("torch.library.Library", library)


def _eager(*arguments: Any) -> torch.Tensor:
    """What the operator means: the first nine arguments are those of aten::convolution."""
    import torch

    low, high = arguments[9:]
    return torch.clamp(torch.ops.aten.convolution.default(*arguments[:9]), low, high)


def _eager_out(*arguments: Any, out: torch.Tensor) -> torch.Tensor:
    return out.copy_(_eager(*arguments))


def fuse(program: ExportedProgram) -> tuple[ExportedProgram, int]:
    """Replace convolution + clamp where the convolution's result is used for nothing else.

    Args:
        program: in core ATen, as after ``run_decompositions``.

    Returns:
        The changed program and the number of fusions.
    """
    import torch

    declare()
    convolution = torch.ops.aten.convolution.default
    fused = torch.ops.k230.conv2d_clamp.default
    graph = program.graph_module.graph
    count = 0
    for node in list(graph.nodes):
        bounds = _bounds(node)
        if bounds is None:
            continue
        source = node.args[0]
        if source.target is not convolution or len(source.users) != 1:
            continue
        with graph.inserting_before(node):
            replacement = graph.call_function(fused, (*source.args, *bounds))
        # the meta keeps the debug handles, so that profiles still name the module
        replacement.meta = {**node.meta, **{"nn_module_stack": source.meta["nn_module_stack"]}}
        node.replace_all_uses_with(replacement)
        graph.erase_node(node)
        graph.erase_node(source)
        _rename_output(program, node.name, replacement.name)
        count += 1
    program.graph_module.recompile()
    return program, count


def _bounds(node: Node) -> tuple[float, float] | None:
    """Lower and upper bound if the node is a clamp by numbers."""
    import torch

    if node.op != "call_function":
        return None
    ops = torch.ops.aten
    infinity = float("inf")
    if node.target is ops.relu.default:
        return 0.0, infinity
    if node.target is ops.hardtanh.default:
        low, high = [*node.args[1:], *(-1.0, 1.0)[len(node.args) - 1 :]][:2]
    elif node.target is ops.clamp.default:
        low, high = [*node.args[1:], None, None][:2]
    else:
        return None
    if not all(value is None or isinstance(value, (int, float)) for value in (low, high)):
        return None
    lowest, highest = (-infinity if low is None else low), (infinity if high is None else high)
    return float(lowest), float(highest)  # type: ignore[arg-type]


def _rename_output(program: ExportedProgram, old: str, new: str) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.arg.name == old:
            spec.arg.name = new
