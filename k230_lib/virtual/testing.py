"""Virtual boards for tests: a context manager that leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .board import BoardSettings
from .light import LightBoard

# Templates are the same for all tests; boards themselves live in a temporary folder.
DEFAULT_CACHE = Path(".k230") / "cache"


@contextmanager
def virtual_board(
    number: int, *, cache: Path = DEFAULT_CACHE, name: str | None = None, **settings: Any
) -> Iterator[LightBoard]:
    """A running board with a fresh card; stopped and removed at the end, also after failures.

    It ends with the calling process too, in whatever way that dies.

    Args:
        number: from 100 upward, one of your own for each test module.
        cache: folder for card templates.
        name: of the board; by default ``vb<number>``.
        settings: as the ``virtual_board`` variable of an inventory, e.g. ``card_size="1GiB"``.

    Raises:
        EnvironmentProblemError: not root, or tools are missing.
        VirtualBoardError: it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="k230-board-") as folder:
        board = LightBoard(
            name or f"vb{number}",
            BoardSettings.from_vars({"number": number, **settings}),
            state_root=Path(folder),
            cache=cache.resolve(),
            owner=os.getpid(),
        )
        try:
            board.start()
            yield board
        finally:
            board.stop()


def traces_of(board: LightBoard) -> dict[str, str]:
    """Whatever of a board is on this machine beside its folder; empty when it is gone."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            command = (entry / "cmdline").read_text().replace("\0", " ")
            mounts = (entry / "mounts").read_text()
        except OSError:
            continue  # it ended meanwhile
        if entry.name != str(os.getpid()) and (
            str(board.folder) in command or f"{board.folder}/mnt" in mounts
        ):
            found[f"process {entry.name}"] = command
    for device in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if str(board.folder) in device.read_text():
                found[f"loop device {device.parts[3]}"] = device.read_text()
    if Path("/sys/class/net", board.settings.host_link).exists():
        found["network link"] = board.settings.host_link
    return found
