"""Finds what a build needs on the controller: CMake, Ninja, ExecuTorch."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import EnvironmentProblemError, RunnerError

CMAKE_LEAST: Final = (3, 28)
WHEEL_LEAST: Final = (1, 5)
_PIP: Final = "install it with: python -m pip install 'cmake>=3.28' ninja"


@dataclass(frozen=True)
class BuildTools:
    """Programs for a build and their versions."""

    cmake: Path
    cmake_version: str
    ninja: Path


@dataclass(frozen=True)
class ExecuTorch:
    """An installed ExecuTorch to build against.

    Attributes:
        root: what goes into ``CMAKE_PREFIX_PATH``.
        form: ``wheel`` or ``prefix``.
        version: of the wheel, or empty: CMake finds out for a prefix.
    """

    root: Path
    form: str
    version: str


def find_build_tools() -> BuildTools:
    """CMake and Ninja, those beside this Python first.

    Raises:
        EnvironmentProblemError: one is missing, or CMake is too old for the wheel's targets.
    """
    cmake = _program("cmake")
    ninja = _program("ninja")
    done = subprocess.run([cmake, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"cmake version (\S+)", done.stdout)
    version = found.group(1) if found else "unknown"
    if version_tuple(version) < CMAKE_LEAST:
        raise EnvironmentProblemError(
            f"CMake 3.28 or later is needed, found {version} at {cmake}.", hint=f"{_PIP}."
        )
    return BuildTools(cmake, version, ninja)


def find_wheel() -> ExecuTorch:
    """The pip package of this Python with its C++ SDK.

    Raises:
        RunnerError: it is not installed or too old to have C++ libraries.
    """
    remedy = "install it with: python -m pip install 'executorch>=1.5'."
    root = _package()
    if root is None:
        raise RunnerError(f"the executorch package is not installed in {sys.prefix}.", hint=remedy)
    version = importlib.metadata.version("executorch")
    if version_tuple(version) < WHEEL_LEAST or not (root / "lib" / "libexecutorch.so").exists():
        raise RunnerError(
            f"the executorch package {version} has no C++ libraries: 1.5.0 or later has.",
            hint=remedy,
        )
    return ExecuTorch(root, "wheel", version)


def check_prefix(root: Path) -> ExecuTorch:
    """An ExecuTorch that was installed for a target.

    Raises:
        RunnerError: the folder is missing or holds no installed ExecuTorch.
    """
    hint = "give one (runner_prefix, --prefix); docs/runner.md says how it is made."
    if not root.is_dir():
        raise RunnerError(f"no folder {root} for the ExecuTorch prefix.", hint=hint)
    if not list(root.glob("lib*/cmake/*/executorch-config.cmake")):
        raise RunnerError(
            f"{root} is no installed ExecuTorch: "
            "expected lib/cmake/ExecuTorch/executorch-config.cmake.",
            hint=hint,
        )
    return ExecuTorch(root, "prefix", "")


def etdump_headers() -> Path | None:
    """The pip package's headers, for a prefix that was installed without the tracer's."""
    root = _package()
    headers = root / "include" if root else None
    return headers if headers and (headers / "executorch" / "devtools").is_dir() else None


def version_tuple(text: str) -> tuple[int, int]:
    """Major and minor of a version; (0, 0) when the text is none."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def _package() -> Path | None:
    spec = importlib.util.find_spec("executorch")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _program(name: str) -> Path:
    # Not resolved: the interpreter of a venv is a link, and the tools lie beside the link.
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise EnvironmentProblemError(f"{name} is not installed.", hint=f"{_PIP}.")
    return Path(found)
