"""The pinned torch/executorch pair.

executorch 1.5 declares no torch requirement, so nothing but this check stops a pair that was
never tried together.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from ..errors import EnvironmentProblemError

EXPECTED: Mapping[str, str] = {
    "torch": "2.14.1",
    "torchvision": "0.29.1",
    "executorch": "1.5.1",
}
"""The same pins as in ``pyproject.toml``; a test compares the two."""


def installed() -> dict[str, str]:
    """Versions of torch, torchvision, executorch and Python, as written into ``model.json``.

    Raises:
        EnvironmentProblemError: one of the packages is not installed.
    """
    found = {}
    for package in EXPECTED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            raise EnvironmentProblemError(
                f"{package} {EXPECTED[package]} expected, found none",
                hint="run make setup, and use the Python of its .venv.",
            ) from None
    return {**found, "python": platform.python_version()}


def check(found: Mapping[str, str]) -> None:
    """Compare with the pinned pair; a local part such as ``+cpu`` does not count.

    Raises:
        EnvironmentProblemError: a version differs.
    """
    for package, expected in EXPECTED.items():
        if found[package].split("+", maxsplit=1)[0] != expected:
            raise EnvironmentProblemError(
                f"{package} {expected} expected, found {found[package]}: torch and executorch are "
                "pinned as a pair",
                hint=f"pip install {package}=={expected}",
            )
