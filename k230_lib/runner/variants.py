"""Variants of the runner as users describe them in ``kernels/variants.yml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import InputError

SCHEMA_VERSION: Final = 1
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,30}")
_OPERATOR: Final = re.compile(r"[a-z]\w*::\w+(\.\w+)?")
_FUNCTION: Final = re.compile(r"([A-Za-z]\w*::)+[A-Za-z_]\w*")
_KERNEL_KEY: Final = re.compile(r"v1/[0-9;,|]+")
_SOURCE_NAME: Final = re.compile(r"[\w./-]+\.(cpp|cc|cxx)")
_VARIANT_KEYS: Final = frozenset(
    {"summary", "base", "needs_vector", "libraries", "operators", "kernels", "sources"}
)
_KERNEL_KEYS: Final = frozenset({"op", "func", "kernels", "keys", "variants", "tags"})
_FUNCTION_KEYS: Final = frozenset({"arg_meta", "kernel_name"})
_TARGET_NAME: Final = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class OwnKernel:
    """A function that serves an operator, in the form of ExecuTorch's kernel tables.

    Attributes:
        operator: with namespace, e.g. ``aten::hardtanh.out``.
        function: ``kernel_name`` of the table: ``mine::f`` is the function ``mine::native::f``.
        schema: the signature of an operator that PyTorch does not have; else empty.
        keys: kernel keys for which it is put in front; none replaces ExecuTorch's kernel.
    """

    operator: str
    function: str
    schema: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """One way to build the runner.

    Attributes:
        name: as in ``k230_runner_variant``.
        summary: one sentence for lists.
        needs_vector: the runner refuses a core without V or with VLEN below 128.
        libraries: CMake targets whose kernel registrations are linked in.
        operators: those for which a kernel of ours must be registered; proved after the build.
        kernels: functions for operators, beside or instead of ExecuTorch's.
        sources: C++ files that define them.
    """

    name: str
    summary: str
    needs_vector: bool = False
    libraries: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    kernels: tuple[OwnKernel, ...] = ()
    sources: tuple[Path, ...] = ()

    @property
    def replacing(self) -> tuple[OwnKernel, ...]:
        """Kernels instead of ExecuTorch's."""
        return tuple(kernel for kernel in self.kernels if not kernel.keys)

    @property
    def keyed(self) -> tuple[OwnKernel, ...]:
        """Kernels in front of ExecuTorch's, for their keys only."""
        return tuple(kernel for kernel in self.kernels if kernel.keys)


def parse_variants(text: str, source: Path = Path("variants.yml")) -> dict[str, Variant]:
    """Variants by name.

    Args:
        source: where the text is from; files that variants name are relative to its folder.

    Raises:
        InputError: naming the variant and key that cannot be used.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{source} is no YAML: {reason}.") from None
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        raise InputError(f"{source}: expected schema_version: {SCHEMA_VERSION}.")
    entries = document.get("variants")
    if not isinstance(entries, dict) or not entries:
        raise InputError(f"{source}: expected a table 'variants'.")
    variants: dict[str, Variant] = {}
    for name, entry in entries.items():
        variants[str(name)] = _variant(name, entry or {}, source, variants)
    return variants


def load_variants(path: Path) -> dict[str, Variant]:
    """:func:`parse_variants` of a file.

    Raises:
        InputError: it cannot be read or used.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}.", hint="give the folder kernels/ as source."
        ) from None
    return parse_variants(text, path)


def choose_variant(variants: Mapping[str, Variant], name: str) -> Variant:
    """The variant of that name.

    Raises:
        InputError: there is none; the message lists those that there are.
    """
    if name not in variants:
        raise InputError(f"no runner variant '{name}': there are {', '.join(sorted(variants))}.")
    return variants[name]


def _variant(
    name: object, entry: Mapping[str, Any], source: Path, earlier: Mapping[str, Variant]
) -> Variant:
    where = f"{source}: variant '{name}'"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{where}: names are lower-case letters, digits, '-' and '_'.")
    _check_keys(entry, _VARIANT_KEYS, where)
    base = entry.get("base")
    if base is not None and base not in earlier:
        raise InputError(f"{where}: its base '{base}' must be a variant described before it.")
    known = earlier[base] if base is not None else Variant(name, "")
    needs_vector = entry.get("needs_vector", known.needs_vector)
    if not isinstance(needs_vector, bool):
        raise InputError(f"{where}: needs_vector must be true or false.")
    libraries = _texts(entry.get("libraries"), _TARGET_NAME, f"{where}: libraries")
    operators = _texts(entry.get("operators"), _OPERATOR, f"{where}: operators")
    return Variant(
        name=name,
        summary=str(entry.get("summary", "")),
        needs_vector=needs_vector,
        libraries=(*known.libraries, *libraries),
        operators=(*known.operators, *operators),
        kernels=(*known.kernels, *_kernels(entry.get("kernels"), f"{where}: kernels")),
        sources=(*known.sources, *_sources(entry.get("sources"), source, where)),
    )


def _check_keys(entry: object, known: frozenset[str], where: str) -> None:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a table with {', '.join(sorted(known))}.")
    unknown = sorted(map(str, set(entry) - known))
    if unknown:
        raise InputError(
            f"{where}: unknown key {', '.join(unknown)}; known: {', '.join(sorted(known))}."
        )


def _sources(value: object, source: Path, where: str) -> tuple[Path, ...]:
    names = _texts(value, _SOURCE_NAME, f"{where}: sources")
    paths = tuple((source.parent / name).resolve() for name in names)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{where}: no file {path}.")
    return paths


def _kernels(value: object, where: str) -> tuple[OwnKernel, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list.")
    return tuple(_kernel(entry, where) for entry in value)


def _kernel(entry: Any, where: str) -> OwnKernel:
    """One entry in the form of ExecuTorch's tables, with our ``keys`` besides."""
    _check_keys(entry, _KERNEL_KEYS, where)
    schema = str(entry.get("func", ""))
    name = str(entry.get("op", schema.partition("(")[0]))
    if "::" not in name:
        name = f"aten::{name}"
    functions = entry.get("kernels")
    if not _OPERATOR.fullmatch(name) or not isinstance(functions, list) or len(functions) != 1:
        raise InputError(f"{where}: an entry needs 'op' or 'func' and one kernel, found {name}.")
    _check_keys(functions[0], _FUNCTION_KEYS, f"{where}: {name}")
    function = str(functions[0].get("kernel_name", ""))
    if functions[0].get("arg_meta") is not None or not _FUNCTION.fullmatch(function):
        raise InputError(
            f"{where}: {name}: expected arg_meta: null and kernel_name: namespace::function."
        )
    keys = _texts(entry.get("keys"), _KERNEL_KEY, f"{where}: {name}: keys")
    return OwnKernel(name, function, schema, keys)


def _texts(value: object, form: re.Pattern[str], where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list.")
    for item in value:
        if not isinstance(item, str) or not form.fullmatch(item):
            raise InputError(f"{where}: '{item}' is not of the form {form.pattern}.")
    return tuple(value)
