"""Virtual boards for tests: a context manager that leaves nothing behind."""

from __future__ import annotations

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
        )
        try:
            board.start()
            yield board
        finally:
            board.stop()
