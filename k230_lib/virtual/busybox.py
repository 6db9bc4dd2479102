"""A copy of this machine's busybox that knows only the applets of the board's.

Debian's static busybox runs its applets without looking at PATH, so leaving out links is not
enough: the names of the surplus ones are changed in the copy's own table.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import VirtualBoardError

# tried in turn until the table's order is kept: first what nobody types, then letters
_ENDINGS = bytes([*range(0x7F, 0x79, -1), *range(0x60, 0x5A, -1), *range(0x40, 0x39, -1)])
_LETTERS = bytes(range(0x7A, 0x60, -1))


def applets_of(binary: Path) -> list[str]:
    """Names of the applets compiled into ``binary``, sorted as in its table."""
    listing = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True)
    return sorted(listing.stdout.split(), key=str.encode)


def places_of(binary: Path) -> dict[str, str]:
    """Where each applet's link belongs, e.g. ``env`` at ``usr/bin/env``."""
    listing = subprocess.run([binary, "--list-full"], capture_output=True, text=True, check=True)
    return {Path(place).name: place.lstrip("/") for place in listing.stdout.split()}


def hide(image: bytes, table: Sequence[str], hidden: Iterable[str]) -> bytes:
    """Rename applets in a busybox image so that nobody can call them.

    Args:
        image: the executable.
        table: names of all its applets, sorted by bytes.
        hidden: those that must go.

    Raises:
        VirtualBoardError: the table is not where it is expected, or a name cannot be changed.
    """
    names = [name.encode() for name in table]
    packed = b"\0".join(names) + b"\0"
    start = image.find(packed)
    if start < 0:
        raise VirtualBoardError(
            "the busybox of this machine has an applet table of an unknown form",
            hint="install the Debian package busybox-static.",
        )
    gone = {name.encode() for name in hidden}
    for index, name in enumerate(names):
        if name in gone:
            before = names[index - 1] if index else b""
            after = names[index + 1] if index + 1 < len(names) else b"\xff"
            names[index] = _between(before, name, after)
    changed = b"\0".join(names) + b"\0"
    return image[:start] + changed + image[start + len(packed) :]


def _between(before: bytes, name: bytes, after: bytes) -> bytes:
    # busybox finds applets by binary search: a new name must sort where the old one did
    for endings in (_ENDINGS, _LETTERS):
        for position in range(len(name) - 1, 0, -1):
            for ending in endings:
                changed = name[:position] + bytes([ending]) + name[position + 1 :]
                if before < changed < after and changed != name:
                    return changed
    raise VirtualBoardError(f"the busybox applet {name.decode()} cannot be hidden")
