"""Where a runner can be made for: what is built how, and what the ELF must look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import InputError

RTSMART_ENTRY: Final = 0x200000000


@dataclass(frozen=True)
class Target:
    """One kind of machine.

    Attributes:
        preset: CMake preset with the tracer; without it the name ends in ``-notrace``.
        machine: as :attr:`k230_lib.runner.elf.ElfFile.machine` says it.
        static: whether the ELF must be complete in itself.
        entry: the start address demanded, if any.
        from_wheel: whether the pip package's libraries can be linked.
        emulator: command in front of the runner to start it here, if it needs one.
    """

    name: str
    preset: str
    machine: str
    static: bool
    entry: int | None = None
    from_wheel: bool = False
    emulator: tuple[str, ...] | None = ()


TARGETS: Final[Mapping[str, Target]] = {
    "host": Target("host", "host", "x86-64", static=False, from_wheel=True),
    "riscv64-linux": Target(
        "riscv64-linux",
        "riscv64-linux",
        "riscv64",
        static=True,
        emulator=("qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"),
    ),
    # the C library makes RT-Smart's own system calls: nothing here can start it
    "k230-rtsmart": Target(
        "k230-rtsmart",
        "k230-rtsmart",
        "riscv64",
        static=True,
        entry=RTSMART_ENTRY,
        emulator=None,
    ),
}


def choose_target(name: str) -> Target:
    """The target of that name.

    Raises:
        InputError: there is none; the message lists those that there are.
    """
    if name not in TARGETS:
        raise InputError(f"no runner target '{name}': there are {', '.join(TARGETS)}.")
    return TARGETS[name]
