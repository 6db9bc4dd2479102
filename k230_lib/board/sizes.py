"""Sizes as people write them, and the sectors they mean.

A size is that of the partition (not the place of its end, as with ``parted resizepart``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from ..errors import InputError
from .gpt import SECTOR

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]*)")
_UNITS = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", start=1)},
    "kB": 1000,
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)},
}
#: partitions of a given size in bytes end on a multiple of this, so that 4 KiB blocks fit
_GRAIN_SECTORS = 8
_HINT = "write it like 8.5GB, 7GiB, 16777216s (sectors) or 100% (all there is)."


class Measure(StrEnum):
    """What the number of a size counts."""

    BYTES = "bytes"
    SECTORS = "sectors"
    PERCENT = "percent"


@dataclass(frozen=True)
class Size:
    """A size as asked for: ``text`` as written, ``value`` in units of ``measure``."""

    text: str
    measure: Measure
    value: Decimal

    def sectors(self, room: int) -> int:
        """How many sectors that is.

        Args:
            room: sectors from the partition's start to the last place it can end; percentages
                are of this.
        """
        if self.measure is Measure.SECTORS:
            return int(self.value)
        if self.measure is Measure.PERCENT:
            exact = int(self.value * room / 100)
            # the whole room is used to its last sector, whatever the grain
            return room if self.value == 100 else exact - exact % _GRAIN_SECTORS
        exact = int(self.value) // SECTOR
        return exact - exact % _GRAIN_SECTORS


def parse_size(text: str) -> Size:
    """Read a size.

    Raises:
        InputError: no number, a unit that is not known, zero, or more than 100 %.
    """
    found = _SIZE.fullmatch(str(text).strip())
    if found is None:
        raise InputError(f"size {text!r} is not a positive number with a unit", hint=_HINT)
    value, unit = Decimal(found[1]), found[2]
    if value == 0:
        raise InputError(f"size {text!r} is zero", hint=_HINT)
    if unit == "%":
        if value > 100:
            raise InputError(f"size {text!r} is more than there is", hint=_HINT)
        return Size(str(text), Measure.PERCENT, value)
    if unit == "s":
        if value != value.to_integral_value():
            raise InputError(f"size {text!r} is not a whole number of sectors", hint=_HINT)
        return Size(str(text), Measure.SECTORS, value)
    if unit not in _UNITS:
        what = (
            f"unit {unit!r} of size {text!r} is not known" if unit else f"size {text!r} has no unit"
        )
        raise InputError(what, hint=_HINT)
    return Size(str(text), Measure.BYTES, value * _UNITS[unit])


def human(size: int) -> str:
    """Bytes for people, in binary units with one decimal."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
