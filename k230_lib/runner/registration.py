"""The generated part of a build: which registrations a variant needs, and what they bind."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..errors import RunnerError
from .codegen import (
    Sources,
    check_read_back,
    find_sources,
    generate,
    keyed_table,
    known_operators,
    load_table,
    merge_tables,
)
from .tools import ExecuTorch, find_wheel
from .variants import Variant

TEMPLATES: Final = Path("cmake") / "templates"
_PORTABLE_HEADER: Final = Path("include/executorch/kernels/portable/NativeFunctions.h")


@dataclass(frozen=True)
class Registration:
    """What was generated.

    Attributes:
        defines: CMake cache entries that make the build take it.
        bindings: operator to function, for the kernels of the variant itself.
    """

    defines: Mapping[str, str] = field(default_factory=dict)
    bindings: Mapping[str, str] = field(default_factory=dict)


def check_possible(variant: Variant, executorch: ExecuTorch) -> None:
    """Refuse what the pip package's libraries do not allow: they register every operator already.

    Raises:
        RunnerError: naming the first operator that the variant replaces.
    """
    if executorch.form == "wheel" and variant.replacing:
        raise RunnerError(
            f"variant {variant.name} replaces {variant.replacing[0].operator}, which the pip "
            "package's libraries do not allow.",
            hint="give its entry 'keys', or build against a prefix.",
        )


def make_registration(
    variant: Variant,
    executorch: ExecuTorch,
    selected: Collection[str] | None,
    source: Path,
    folder: Path,
) -> Registration:
    """Generate what the variant and a model's selection ask for; old output is removed.

    Args:
        selected: operators of the models that will run; none means all. The pip package's kernels
            cannot be reduced: there it is ignored.
        source: the folder ``kernels/``.
        folder: for generated files; nothing else may be in it.

    Raises:
        InputError: a kernel is for an operator that does not exist.
        RunnerError: the generator failed, or bound something else than was asked for.
    """
    if folder.exists():
        shutil.rmtree(folder)
    reduced = selected if executorch.form == "prefix" else None
    instead = executorch.form == "prefix" and (variant.replacing or reduced is not None)
    if not instead and not variant.keyed:
        return Registration(_defines(variant, None, None))
    sources = find_sources(find_wheel().root)
    known = known_operators(sources)
    templates = source / TEMPLATES
    bindings: dict[str, str] = {}
    if instead:
        table = merge_tables(_portable(sources, executorch), variant.replacing, known, reduced)
        bound = generate(table, folder / "all", sources, templates)
        wanted = [k for k in variant.replacing if reduced is None or k.operator in reduced]
        check_read_back(bound, wanted)
        bindings |= {kernel.operator: kernel.function for kernel in wanted}
    if variant.keyed:
        keys = {kernel.operator: kernel.keys for kernel in variant.keyed}
        table = keyed_table(variant.keyed, known)
        bound = generate(table, folder / "keyed", sources, templates, keys)
        check_read_back(bound, variant.keyed)
        bindings |= bound
    return Registration(
        _defines(
            variant,
            folder / "all" if instead else None,
            folder / "keyed" if variant.keyed else None,
        ),
        bindings,
    )


def portable_entries(
    table: Sequence[Mapping[str, Any]], header: str | None
) -> list[Mapping[str, Any]]:
    """The entries whose functions the prefix declares; a prefix may be older than the table. Pure.

    Args:
        header: text of the prefix's ``NativeFunctions.h``; none takes all entries.
    """
    if header is None:
        return list(table)
    declared = set(re.findall(r"\b(\w+)\(", header))
    return [
        entry
        for entry in table
        if entry["kernels"][0]["kernel_name"].rpartition("::")[2] in declared
    ]


def _portable(sources: Sources, executorch: ExecuTorch) -> list[Mapping[str, Any]]:
    header = executorch.root / _PORTABLE_HEADER
    text = header.read_text("utf-8") if header.is_file() else None
    return portable_entries(load_table(sources.portable), text)


def _defines(variant: Variant, instead: Path | None, keyed: Path | None) -> dict[str, str]:
    return {
        "K230_REGISTRATION": str(instead.resolve()) if instead else "",
        "K230_KEYED_REGISTRATION": str(keyed.resolve()) if keyed else "",
        "K230_SOURCES": ";".join(map(str, variant.sources)),
    }
