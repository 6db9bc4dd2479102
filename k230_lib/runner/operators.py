"""Which kernels a runner registers: asked from itself, or found in its file."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import RunnerError
from .elf import kernel_keys, operator_names
from .targets import Target
from .variants import Variant

_SECONDS: Final = 60
_ATEN: Final = "aten::"
_OURS: Final = "k230::"


@dataclass(frozen=True)
class RegisteredKernel:
    """One entry of the runner's registry.

    Attributes:
        operator: e.g. ``aten::convolution.out``; empty when only the key is known.
        key: the specialised kernel key, or the name of our kernel in profiles when only that is
            known; empty for the fallback, which takes every dtype.
    """

    operator: str
    key: str


def parse_listing(text: str) -> tuple[RegisteredKernel, ...]:
    """Read the output of ``k230_runner --list_operators``."""
    kernels = []
    for line in text.splitlines():
        operator, tab, key = line.partition("\t")
        if tab:
            kernels.append(RegisteredKernel(operator, "" if key == "fallback" else key))
    return tuple(kernels)


def kernels_in_file(data: bytes) -> tuple[RegisteredKernel, ...]:
    """What the strings of a program tell of its registry. Pure.

    Every operator counts as served by a fallback; those of whose kernel there is a ``k230::`` name
    have one of ours besides; and every kernel key in the file is listed.
    """
    names = operator_names(data)
    ours = {name.removeprefix(_OURS) for name in names if name.startswith(_OURS)}
    served = [name for name in names if name.removeprefix(_ATEN) in ours and name.startswith(_ATEN)]
    return (
        *(RegisteredKernel(name, "") for name in sorted(names)),
        *(RegisteredKernel(name, _OURS + name.removeprefix(_ATEN)) for name in sorted(served)),
        *(RegisteredKernel("", key) for key in sorted(kernel_keys(data))),
    )


def registered_kernels(path: Path, target: Target, data: bytes) -> tuple[RegisteredKernel, ...]:
    """All kernels of the runner at ``path``.

    A runner that cannot be started here (RT-Smart, or no emulator) is searched for their names
    instead: :func:`kernels_in_file`.

    Raises:
        RunnerError: it does not start.
    """
    emulator = target.emulator
    if emulator is None or (emulator and shutil.which(emulator[0]) is None):
        return kernels_in_file(data)
    try:
        done = subprocess.run(
            [*emulator, str(path.resolve()), "--list_operators"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunnerError(f"{path} does not start here: {error}.") from None
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise RunnerError(f"{path} ended with status {done.returncode}: {last[0]}")
    return parse_listing(done.stdout)


def check_bindings(variant: Variant, kernels: Iterable[RegisteredKernel]) -> None:
    """Prove that each operator the variant promises is served by a kernel of ours.

    ExecuTorch's own kernels register without a key, so a key means one of ours.

    Raises:
        RunnerError: naming the operators that are not.
    """
    found = tuple(kernels)
    ours = {kernel.operator for kernel in found if kernel.key}
    missing = [operator for operator in variant.operators if operator not in ours]
    registered = {(kernel.operator, kernel.key) for kernel in found}
    for kernel in variant.keyed:
        missing += [
            kernel.operator
            for key in kernel.keys
            if not {(kernel.operator, key), ("", key)} & registered
        ]
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise RunnerError(
            f"variant {variant.name} promises its own kernels for {names}, but none is registered.",
            hint="check 'libraries' in kernels/variants.yml.",
        )


def missing_operators(needed: Iterable[str], registered: Iterable[str]) -> list[str]:
    """Operators of a model that a runner lacks, sorted."""
    return sorted(set(needed) - set(registered))
