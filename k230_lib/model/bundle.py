"""What a model must bring with it to be exported and judged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .contract import ModelClass, Preprocessing, Source

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ModelBundle:
    """A classifier in evaluation mode, with all that its contract needs.

    User functions (``module:function`` or the entry point group ``k230.models``) return this.
    ``label_offset`` is added to a dataset's class index (from 0) to get the model's: 1 for models
    of 1001 classes whose class 0 is the background.
    """

    module: torch.nn.Module
    preprocessing: Preprocessing
    classes: tuple[ModelClass, ...]
    source: Source
    label_offset: int = 0
    published: Mapping[str, float] | None = field(default=None)


def numbered(names: list[str], wnids: list[str] | None = None) -> tuple[ModelClass, ...]:
    """Classes in the order of the model's outputs."""
    return tuple(
        ModelClass(index, name, wnids[index] if wnids else None) for index, name in enumerate(names)
    )


def state_sha256(module: torch.nn.Module) -> str:
    """SHA-256 over names and bytes of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
