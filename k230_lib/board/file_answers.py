"""What a file command on the board answered, turned into the kind of failure it is."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import BoardCommandError, BoardSpaceError, BoardUnreachableError, StorageError
from .shell import BoardShell, CommandResult

MAKE_ROOM = (
    "delete files there (the demos in /sharefs/app take 52 MB), or let provision.yml grow the "
    "partition."
)

SIZE_OF = 'size_of() { set -- $(ls -lnL "$1" 2>/dev/null); echo "${5:--1}"; }\n'
"""A shell function: bytes of a file, -1 without one. ``wc -c`` of busybox would read it all."""


def checked_answer(shell: BoardShell, answer: CommandResult, doing: str) -> CommandResult:
    """Turn what a failed command says into the kind of failure it is."""
    if answer.rc == 0:
        return answer
    said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = said[-1] if said else answer.text.strip()[-80:]
    if "No space left" in reason:
        raise BoardSpaceError(
            f"{doing}: the card is full",
            board=shell.board,
            hint=MAKE_ROOM,
        )
    if "Read-only file system" in reason:
        raise StorageError(
            f"{doing}: the file system is read-only",
            board=shell.board,
            hint="a damaged FAT turns read-only: check it (fsck.fat), then remount or reboot.",
        )
    if answer.rc == 255 and not reason:
        raise BoardUnreachableError(f"{doing}: the connection broke", board=shell.board)
    raise BoardCommandError(
        f"{doing}: status {answer.rc}: {reason or 'no message'}", board=shell.board
    )


def lines_of(items: Iterable[str]) -> bytes:
    return "".join(f"{item}\n" for item in items).encode()


def parse_df(text: str) -> int:
    """Bytes available, from the last line of ``df -P -k``.

    Raises:
        BoardCommandError: the text is not of ``df``.
    """
    words = text.strip().splitlines()[-1].split() if text.strip() else []
    if len(words) < 6 or not words[3].isdigit():
        raise BoardCommandError(f"df answered {text.strip()[-80:]!r}")
    return int(words[3]) * 1024
