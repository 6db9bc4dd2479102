"""Is this the runner that was asked for, and can the board load it with this model? Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import RunnerError
from .elf import ElfFile, parse_elf
from .manifest import Manifest, manifest_of_elf
from .operators import missing_operators
from .prebuilt import flags_of
from .targets import Target
from .tools import version_tuple

PAGE_BYTES: Final = 4096
MS_PER_PAGE: Final = 1.0
"""Assumed time for RT-Smart's loader to fetch one page over the shared folder (modelled)."""

RTSMART_MEMORY: Final = 78 * 2**20
"""About what RT-Smart leaves for user programs on a 512 MB board."""

OLDEST_EXECUTORCH: Final = (1, 2)
_BUILD: Final = "build it for this target: k230 runner build."


@dataclass(frozen=True)
class ModelNeeds:
    """What a model asks of a runner.

    Attributes:
        name: for messages.
        operators: names that must be registered.
        executorch: version that exported it, empty when unknown.
        bytes: size of the ``.pte``.
        planned_bytes: sum of its planned buffers.
    """

    name: str
    operators: tuple[str, ...]
    executorch: str = ""
    bytes: int = 0
    planned_bytes: int = 0


@dataclass(frozen=True)
class RunnerFacts:
    """A runner that passed.

    Attributes:
        manifest: nothing for a prebuilt program without one.
        pages: reads of the board's loader.
        load_ms: modelled time for them.
        flags: of ``executor_runner``, as far as it has them.
    """

    elf: ElfFile
    manifest: Manifest | None
    pages: int
    load_ms: float
    flags: frozenset[str]


def model_needs(document: Mapping[str, Any]) -> ModelNeeds:
    """What ``model.json`` says that concerns the runner.

    Raises:
        RunnerError: it is no model description.
    """
    try:
        return ModelNeeds(
            name=document["name"],
            operators=tuple(document["operators"]),
            executorch=document.get("versions", {}).get("executorch", ""),
            bytes=int(document.get("pte", {}).get("bytes", 0)),
            planned_bytes=sum(int(size) for size in document.get("planned_buffers", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RunnerError(
            "model.json names no model or no operators.", hint="export the model again."
        ) from None


def check_runner(
    data: bytes,
    target: Target,
    *,
    name: str = "the runner",
    variant: str | None = None,
    vector: bool | None = None,
    registered: Collection[str] | None = None,
    model: ModelNeeds | None = None,
) -> RunnerFacts:
    """Refuse a file that the target cannot run, or that is not what was asked for.

    Args:
        data: the ELF file.
        name: what to call it in messages.
        variant: the variant demanded; none takes any, also a prebuilt program without manifest.
        vector: whether V must be in its attributes; none asks its manifest.
        registered: operators it has; none leaves the model's operators unchecked.
        model: what will run on it.

    Raises:
        RunnerError: the first thing that is wrong, with what was expected and found.
    """
    elf = parse_elf(data, name)
    manifest = manifest_of_elf(data, elf, name)
    _check_file(elf, target, name)
    if variant is not None:
        _check_variant(manifest, variant, target, name)
    demands_vector = vector if vector is not None else bool(manifest and manifest.needs_vector)
    if demands_vector and elf.machine == "riscv64" and not elf.has_vector:
        raise RunnerError(
            f"{name}: expected V in its ISA, found {elf.arch or 'no attributes'}.",
            hint="build it with a compiler that has RVV intrinsics: clang 19 or gcc 14.",
        )
    if model is not None:
        _check_version(manifest, model, name)
        if registered is not None:
            _check_operators(registered, model, name)
        if target.entry is not None:
            _check_memory(elf, model, name)
    pages = -(-elf.load_bytes // PAGE_BYTES)
    return RunnerFacts(elf, manifest, pages, pages * MS_PER_PAGE, flags_of(data))


def _check_file(elf: ElfFile, target: Target, name: str) -> None:
    if elf.machine != target.machine:
        raise RunnerError(
            f"{name} is for {elf.machine}, expected {target.machine} for {target.name}.",
            hint=_BUILD,
        )
    if target.static and not elf.static:
        needs = ", ".join(elf.needed) or elf.interpreter
        raise RunnerError(
            f"{name} needs {needs}: expected a static program for {target.name}.", hint=_BUILD
        )
    if target.entry is not None and (elf.entry != target.entry or elf.kind != "executable"):
        raise RunnerError(
            f"{name} is {elf.kind} and starts at {elf.entry:#x}: expected an executable at "
            f"{target.entry:#x} for {target.name}.",
            hint="link it with the SDK's link.lds.",
        )


def _check_variant(manifest: Manifest | None, variant: str, target: Target, name: str) -> None:
    if manifest is None:
        raise RunnerError(
            f"{name} carries no manifest: expected variant {variant}.",
            hint="build it with k230 runner build, or declare it as prebuilt.",
        )
    if manifest.variant != variant:
        raise RunnerError(f"{name} is variant {manifest.variant}, expected {variant}.", hint=_BUILD)
    if manifest.target and manifest.target != target.name:
        raise RunnerError(
            f"{name} was built for {manifest.target}, expected {target.name}.", hint=_BUILD
        )


def _check_operators(registered: Collection[str], model: ModelNeeds, name: str) -> None:
    lacking = missing_operators(model.operators, registered)
    if lacking:
        raise RunnerError(
            f"{name} lacks operators of model {model.name}: {', '.join(lacking)}.",
            hint="build a variant that has them.",
        )


def _check_memory(elf: ElfFile, model: ModelNeeds, name: str) -> None:
    wanted = elf.memory_bytes + model.bytes + model.planned_bytes
    if wanted > RTSMART_MEMORY:
        raise RunnerError(
            f"{name} with model {model.name} takes {wanted >> 20} MiB, RT-Smart leaves about "
            f"{RTSMART_MEMORY >> 20} MiB.",
            hint="use a smaller model.",
        )


def _check_version(manifest: Manifest | None, model: ModelNeeds, name: str) -> None:
    """A runtime reads programs of its own minor version and, as tried, of the next one."""
    ours = version_tuple(manifest.executorch if manifest else "")
    theirs = version_tuple(model.executorch)
    if (0, 0) in (ours, theirs):
        return
    too_old = ours < OLDEST_EXECUTORCH or ours[0] < theirs[0] or ours[1] + 1 < theirs[1]
    if too_old:
        raise RunnerError(
            f"{name} has ExecuTorch {ours[0]}.{ours[1]}, model {model.name} was exported by "
            f"{theirs[0]}.{theirs[1]}.",
            hint="build the runner against a newer ExecuTorch, or export with the older one.",
        )
