"""Read a runner's file and a model's description and check one against the other."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from ..errors import InputError, RunnerError
from .checks import ModelNeeds, RunnerFacts, check_runner, model_needs
from .elf import operator_names
from .operators import registered_kernels
from .prebuilt import PREBUILT, runs_models
from .targets import choose_target


def check_runner_file(
    runner: Path,
    target: str,
    *,
    variant: str | None = None,
    vector: bool | None = None,
    model: Path | None = None,
) -> RunnerFacts:
    """What the runner is, once it is known that the target can load it and run the model.

    Args:
        target: name in ``targets.TARGETS``.
        variant: demand this variant; ``prebuilt`` takes any program that runs models.
        vector: demand V in the ISA.
        model: ``model.json`` of what will run; its operators must be registered.

    Raises:
        InputError: a file cannot be read.
        RunnerError: the runner is of another kind, or lacks operators.
    """
    kind = choose_target(target)
    try:
        data = runner.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}.") from None
    needs = read_model_needs(model) if model else None
    demanded = None if variant == PREBUILT else variant
    facts = check_runner(data, kind, name=str(runner), variant=demanded, vector=vector)
    if facts.manifest is None and variant == PREBUILT and not runs_models(facts.flags):
        raise RunnerError(
            f"{runner} is neither k230_runner nor executor_runner: it has none of their flags.",
            hint="give a program that runs ExecuTorch models.",
        )
    if needs is None:
        return facts
    registered: Collection[str] | None = None
    if facts.manifest is not None:
        registered = {kernel.operator for kernel in registered_kernels(runner, kind, data)}
    elif facts.elf.static:
        registered = operator_names(data)
    return check_runner(
        data,
        kind,
        name=str(runner),
        variant=demanded,
        vector=vector,
        registered=registered,
        model=needs,
    )


def read_model_needs(model: Path) -> ModelNeeds:
    """What ``model.json`` says that concerns the runner.

    Raises:
        InputError: it cannot be read or is no JSON.
        RunnerError: it is no model description.
    """
    try:
        return model_needs(json.loads(model.read_text("utf-8")))
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}.") from None
    except ValueError:
        raise InputError(f"{model} is no JSON.", hint="export the model again.") from None
