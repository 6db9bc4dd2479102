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
_TARGET_NAME: Final = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Variant:
    """One way to build the runner.

    Attributes:
        name: as in ``k230_runner_variant``.
        summary: one sentence for lists.
        needs_vector: the runner refuses a core without V or with VLEN below 128.
        libraries: CMake targets whose kernel registrations are linked in.
        operators: those for which a kernel of ours must be registered; proved after the build.
    """

    name: str
    summary: str
    needs_vector: bool = False
    libraries: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()


def parse_variants(text: str, source: str = "variants.yml") -> dict[str, Variant]:
    """Variants by name.

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
    return {name: _variant(name, entry or {}, source) for name, entry in entries.items()}


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
    return parse_variants(text, str(path))


def choose_variant(variants: Mapping[str, Variant], name: str) -> Variant:
    """The variant of that name.

    Raises:
        InputError: there is none; the message lists those that there are.
    """
    if name not in variants:
        raise InputError(f"no runner variant '{name}': there are {', '.join(sorted(variants))}.")
    return variants[name]


def _variant(name: object, entry: Mapping[str, Any], source: str) -> Variant:
    where = f"{source}: variant '{name}'"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{where}: names are lower-case letters, digits, '-' and '_'.")
    known = {"summary", "needs_vector", "libraries", "operators"}
    if not isinstance(entry, dict) or (unknown := sorted(map(str, set(entry) - known))):
        raise InputError(f"{where}: unknown key {', '.join(unknown)}; known: {sorted(known)}.")
    needs_vector = entry.get("needs_vector", False)
    if not isinstance(needs_vector, bool):
        raise InputError(f"{where}: needs_vector must be true or false.")
    return Variant(
        name=name,
        summary=str(entry.get("summary", "")),
        needs_vector=needs_vector,
        libraries=_texts(entry.get("libraries"), _TARGET_NAME, f"{where}: libraries"),
        operators=_texts(entry.get("operators"), _OPERATOR, f"{where}: operators"),
    )


def _texts(value: object, form: re.Pattern[str], where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list.")
    for item in value:
        if not isinstance(item, str) or not form.fullmatch(item):
            raise InputError(f"{where}: '{item}' is not of the form {form.pattern}.")
    return tuple(value)
