"""Fold batch norm into the convolution before it, on modules, before export.

ExecuTorch's export never folds; folding in its edge dialect leaves the old weights in the file.
Done on modules, the paths that profiles show (``features.2.conv.0.0``) stay as they are.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch.fx import Node


def fold(model: torch.nn.Module) -> tuple[torch.nn.Module, int]:
    """Fold every batch norm that is fed by a convolution used for nothing else.

    Args:
        model: in evaluation mode; it is not changed.

    Returns:
        The folded copy, and how many batch norms were folded.
    """
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    folded = copy.deepcopy(model)
    pairs = _pairs(folded)
    for conv_path, norm_path in pairs:
        conv = folded.get_submodule(conv_path)
        norm = folded.get_submodule(norm_path)
        assert isinstance(conv, torch.nn.Conv2d)
        assert isinstance(norm, torch.nn.BatchNorm2d)
        folded.set_submodule(conv_path, fuse_conv_bn_eval(conv, norm))
        folded.set_submodule(norm_path, torch.nn.Identity())
    return folded, len(pairs)


def _pairs(model: torch.nn.Module) -> list[tuple[str, str]]:
    """Paths of (convolution, batch norm), found by tracing the flow of data."""
    import torch
    from torch.fx import Tracer

    try:
        graph = Tracer().trace(model)
    except (torch.fx.proxy.TraceError, TypeError, ValueError):
        # control flow that depends on data: nothing is folded, the export is right all the same
        return []
    calls = [node for node in graph.nodes if node.op == "call_module"]
    called = [str(node.target) for node in calls]
    pairs = []
    for node in calls:
        before = _only_input(node)
        if before is None or before.op != "call_module" or len(before.users) != 1:
            continue
        conv, norm = str(before.target), str(node.target)
        if called.count(conv) != 1 or called.count(norm) != 1:
            # a module used twice has two meanings
            continue
        kinds = type(model.get_submodule(conv)), type(model.get_submodule(norm))
        if kinds == (torch.nn.Conv2d, torch.nn.BatchNorm2d):
            pairs.append((conv, norm))
    return pairs


def _only_input(node: Node) -> Node | None:
    inputs = node.all_input_nodes
    return inputs[0] if len(inputs) == 1 else None
