"""Runners that others built: which flags of ``executor_runner`` a file has. Pure.

A program for RT-Smart cannot be asked here, but every flag's name is a string of its own in it.
"""

from __future__ import annotations

from typing import Final

PREBUILT: Final = "prebuilt"
"""In place of a variant: take the file as it is, without a manifest."""

_FLAGS: Final = (
    "model_path",
    "data_path",
    "inputs",
    "output_file",
    "num_executions",
    "cpu_threads",
    "etdump_path",
    "bundleio_rtol",
    "print_all_output",
    "print_output",
    "method_name",
    "server_mode",
)
_NEEDED: Final = frozenset({"model_path", "inputs", "output_file", "num_executions"})


def flags_of(data: bytes) -> frozenset[str]:
    """Flags of ``executor_runner``, of any release, whose names are in the file."""
    return frozenset(flag for flag in _FLAGS if b"\0" + flag.encode() + b"\0" in data)


def runs_models(flags: frozenset[str]) -> bool:
    """Whether a program with these flags runs a model on input files."""
    return flags >= _NEEDED


def least_release(flags: frozenset[str]) -> str:
    """The oldest release whose ``executor_runner`` has these flags; empty if none has."""
    if not runs_models(flags):
        return ""
    if "server_mode" in flags:
        return "1.4"
    if "method_name" in flags:
        return "1.3"
    return "1.2"
