"""Models by name: torchvision's, the demo model, and the user's own.

The functions look up and check before torch is imported, so that a misspelt name fails at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, ModelError
from .bundle import ModelBundle, numbered, state_sha256
from .contract import ModelClass, Preprocessing, Source, file_sha256

if TYPE_CHECKING:
    import torch

Say = Callable[[str], None]

DEMO = "digits"
ENTRY_POINTS = "k230.models"
_RANDOM = "random:"
_CALIBRATION = 2, 4
"""Batches, and pictures in each, that set the batch-norm statistics of random weights."""


@dataclass(frozen=True)
class ModelRequest:
    """Which model, with which weights.

    ``model``: ``digits``, a torchvision classification model, ``module:function``, or a name from
    the entry point group ``k230.models``. ``weights``: a ``.pth`` file with a state dict, the name
    of a member of the model's weights enum, or ``random:<seed>``. ``transforms``: the enum member
    whose preprocessing a ``.pth`` file was trained for; the first one when not given.
    """

    model: str
    weights: str | None = None
    transforms: str | None = None

    @property
    def is_demo(self) -> bool:
        """Whether this is the demo model, which trains its own weights."""
        return self.model == DEMO

    @property
    def weights_file(self) -> Path | None:
        """The weights, if they are a file."""
        if self.weights and self.weights.endswith((".pth", ".pt")):
            return Path(self.weights)
        return None


def check_request(request: ModelRequest) -> None:
    """Refuse what cannot work, without importing torch.

    Raises:
        InputError: no weights given, or the weights file is missing.
    """
    if request.is_demo:
        if request.weights is not None:
            raise InputError(
                "the demo model digits trains its own weights", hint="leave weights out."
            )
        return
    file = request.weights_file
    if file is not None and not file.is_file():
        raise InputError(
            f"weights file {file} does not exist", hint="check the path of the weights."
        )
    if request.weights is None and not user_function(request.model):
        raise InputError(
            f"no weights for {request.model}",
            hint="give a .pth file or a weights name; random:0 makes a model for timing only.",
        )
    if request.weights and request.weights.startswith(_RANDOM):
        _seed(request.weights)


def build(request: ModelRequest, cache: Path, say: Say = lambda text: None) -> ModelBundle:
    """Make the model in evaluation mode.

    Args:
        cache: folder for weights that are trained here.
        say: told what goes on, a line at a time.

    Raises:
        InputError: unknown model or weights.
        ModelError: the weights do not fit the model.
    """
    check_request(request)
    if request.is_demo:
        from . import digits

        return digits.bundle(cache, say=say)
    function = user_function(request.model)
    if function is not None:
        return _from_user(function, request)
    return _from_torchvision(request)


def torchvision_names() -> list[str]:
    """Names of torchvision's classification models."""
    from torchvision import models

    return sorted(models.list_models(module=models))


def user_function(name: str) -> str | None:
    """``module:function`` of a user's model, or none."""
    if ":" in name:
        return name
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            return point.value
    return None


def _from_user(path: str, request: ModelRequest) -> ModelBundle:
    module_name, _, function_name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as problem:
        raise InputError(
            f"model {path}: {problem}",
            hint="give module:function, with the module's folder in PYTHONPATH.",
        ) from None
    bundle = function(request.weights) if request.weights is not None else function()
    if not isinstance(bundle, ModelBundle):
        raise ModelError(
            f"model {path}: a k230_lib.model.bundle.ModelBundle expected, found "
            f"{type(bundle).__name__}",
            hint="return a ModelBundle from the function.",
        )
    bundle.module.eval()
    return bundle


def _from_torchvision(request: ModelRequest) -> ModelBundle:
    from torchvision import models

    if request.model not in torchvision_names():
        raise InputError(
            f"no model named {request.model}",
            hint="give digits, a torchvision classification model, or module:function.",
        )
    enum = models.get_model_weights(request.model)
    weights = request.weights or ""
    if request.weights_file is not None:
        member = _member(enum, request.transforms) if request.transforms else next(iter(enum))
        module = models.get_model(request.model, weights=None)
        _load(module, request.weights_file, request.model)
        source = Source("file", request.weights_file.name, file_sha256(request.weights_file))
        published = None
    elif weights.startswith(_RANDOM):
        member = next(iter(enum))
        module = _random(request.model, _seed(weights), _preprocessing(member).crop_size)
        source = Source("random", weights, state_sha256(module))
        published = None
    else:
        member = _member(enum, weights)
        module = _fetch(request.model, member)
        source = Source("enum", f"{type(member).__name__}.{member.name}", state_sha256(module))
        published = _published(member.meta)
    module.eval()
    classes = _classes(member.meta)
    return ModelBundle(module, _preprocessing(member), classes, source, 0, published)


def _member(enum: Any, name: str | None) -> Any:
    short = (name or "").rpartition(".")[2]
    try:
        return enum[short]
    except KeyError:
        raise InputError(
            f"{enum.__name__} has no weights {name!r}",
            hint=f"use one of {', '.join(member.name for member in enum)}, or a .pth file.",
        ) from None


def _fetch(model: str, member: Any) -> torch.nn.Module:
    from torchvision import models

    try:
        module: torch.nn.Module = models.get_model(model, weights=member)
    except OSError as problem:
        raise InputError(
            f"weights {member} cannot be downloaded: {problem}",
            hint="get the .pth file where there is a network, and give its path.",
        ) from None
    return module


def _load(module: torch.nn.Module, file: Path, model: str) -> None:
    """Strictly load a state dict; ``weights_only`` refuses anything that could run code."""
    import pickle

    import torch

    try:
        state = torch.load(file, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError):
        raise ModelError(
            f"{file} is not a state dict that loads with weights_only",
            hint="save it with torch.save(model.state_dict(), path).",
        ) from None
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping):
        raise ModelError(
            f"{file} holds {type(state).__name__}, not a state dict",
            hint="save it with torch.save(model.state_dict(), path).",
        )
    try:
        module.load_state_dict(state, strict=True)
    except RuntimeError as problem:
        detail = " ".join(str(problem).split())[:160]
        raise ModelError(
            f"{file} does not fit {model}: {detail}",
            hint="give the weights of this very architecture.",
        ) from None


def _random(model: str, seed: int, side: int) -> torch.nn.Module:
    """Random weights with sensible batch-norm statistics.

    With torchvision's own initialisation the scores are about 1e-9, and any tolerance passes.
    """
    import torch
    from torchvision import models

    torch.manual_seed(seed)
    module: torch.nn.Module = models.get_model(model, weights=None)
    norms = [part for part in module.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        # none means the plain average over all batches
        norm.momentum = None
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.normal_(norm.bias, 0.0, 0.2)
    module.train()
    batches, size = _CALIBRATION
    with torch.no_grad():
        for _ in range(batches if norms else 0):
            module(torch.randn(size, 3, side, side))
    for norm in norms:
        norm.momentum = 0.1
    return module


def _seed(weights: str) -> int:
    text = weights.removeprefix(_RANDOM)
    if not text.isascii() or not text.isdigit():
        raise InputError(f"weights {weights!r}: a seed expected", hint="write random:0.")
    return int(text)


def _preprocessing(member: Any) -> Preprocessing:
    """The transforms of a weights enum member, as data."""
    transform = member.transforms()
    return Preprocessing(
        resize_size=int(transform.resize_size[0]),
        crop_size=int(transform.crop_size[0]),
        interpolation=str(transform.interpolation.value),
        antialias=bool(transform.antialias),
        mean=tuple(transform.mean),
        std=tuple(transform.std),
    )


def _published(meta: Mapping[str, Any]) -> Mapping[str, float] | None:
    for figures in meta.get("_metrics", {}).values():
        if "acc@1" in figures:
            return {"top1": figures["acc@1"] / 100, "top5": figures["acc@5"] / 100}
    return None


def _classes(meta: Mapping[str, Any]) -> tuple[ModelClass, ...]:
    return numbered([str(name) for name in meta["categories"]])
