"""Compute once, at export, what depends on weights only.

A linear layer becomes addmm of a permuted weight; without this pass the board permutes it again
at every inference (5 MB in MobileNetV2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def propagate(program: ExportedProgram) -> ExportedProgram:
    """Decompose, then replace every node that depends on weights only by its value."""
    from executorch.exir.passes.constant_prop_pass import constant_prop_pass

    propagated: ExportedProgram = constant_prop_pass(program.run_decompositions())
    return propagated
