"""The manifest of a runner: what it was built from, inside the ELF and beside it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import RunnerError
from .elf import ElfFile, section_bytes
from .variants import Variant

SCHEMA_VERSION: Final = 1
SECTION: Final = ".k230_manifest"
_NOT_SOURCES: Final = ("build", "__pycache__", "tests", "bench")
_GIT_SOURCES: Final = ("--", ".", ":(exclude)tests", ":(exclude)bench")


@dataclass(frozen=True)
class Manifest:
    """What a runner says of itself.

    Attributes:
        variant: name in ``variants.yml``.
        target: ``host``, ``riscv64-linux`` or ``k230-rtsmart``.
        tracer: whether ``--etdump_path`` works.
        needs_vector: whether it refuses a core without V.
        executorch: version it was built against, empty when unknown.
        operators: those that must be served by kernels of ours.
        document: the whole JSON.
    """

    variant: str
    target: str
    tracer: bool
    needs_vector: bool
    executorch: str
    operators: tuple[str, ...]
    document: Mapping[str, Any]


def parse_manifest(text: str, name: str = "the manifest") -> Manifest:
    """Read the JSON that the runner carries.

    Raises:
        RunnerError: it is no manifest of a version known here.
    """
    try:
        document = json.loads(text)
        if document["schema_version"] != SCHEMA_VERSION:
            raise RunnerError(
                f"{name} has schema version {document['schema_version']}, known is "
                f"{SCHEMA_VERSION}.",
                hint="build the runner again.",
            )
        return Manifest(
            variant=document["variant"],
            target=document.get("target", ""),
            tracer=bool(document.get("tracer", False)),
            needs_vector=bool(document.get("needs_vector", False)),
            executorch=document.get("executorch", {}).get("version", ""),
            operators=tuple(document.get("operators", ())),
            document=document,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RunnerError(f"{name} is damaged.", hint="build the runner again.") from None


def manifest_of_elf(data: bytes, elf: ElfFile, name: str = "the runner") -> Manifest | None:
    """The manifest inside a runner; nothing when it is another program (upstream's runner).

    Raises:
        RunnerError: there is a manifest, but a damaged one.
    """
    section = section_bytes(data, elf, SECTION)
    if section is None:
        return None
    return parse_manifest(section.rstrip(b"\0").decode("utf-8", "replace"), name)


def embedded_document(
    variant: Variant, target: str, *, tracer: bool, source_sha256: str, revision: str
) -> dict[str, Any]:
    """What is known before the build; CMake adds compiler, flags and ExecuTorch's version."""
    return {
        "schema_version": SCHEMA_VERSION,
        "program": "k230_runner",
        "variant": variant.name,
        "target": target,
        "tracer": tracer,
        "needs_vector": variant.needs_vector,
        "libraries": list(variant.libraries),
        "operators": list(variant.operators),
        "kernels": [
            {"operator": kernel.operator, "function": kernel.function, "keys": list(kernel.keys)}
            for kernel in variant.kernels
        ],
        "source_sha256": source_sha256,
        "git_revision": revision,
    }


def source_files(source: Path) -> list[Path]:
    """The files of ``kernels/`` that the runner is built from, sorted."""
    return sorted(
        path
        for path in source.rglob("*")
        if path.is_file() and not _is_other(path.relative_to(source).parts)
    )


def source_digest(source: Path, others: Iterable[Path] = ()) -> str:
    """SHA-256 over names and contents of :func:`source_files` and of ``others``."""
    own = [(path.relative_to(source).as_posix(), path) for path in source_files(source)]
    return _digest([*own, *((path.name, path) for path in others)])


def git_revision(source: Path) -> str:
    """The last commit that touched ``source``, ``-dirty`` behind it, or ``none`` without git."""
    revision = _git(source, "log", "-1", "--format=%h", *_GIT_SOURCES)
    if not revision:
        return "none"
    return f"{revision}-dirty" if _git(source, "status", "--porcelain", *_GIT_SOURCES) else revision


def _is_other(parts: tuple[str, ...]) -> bool:
    return any(part.startswith(_NOT_SOURCES) for part in parts)


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
