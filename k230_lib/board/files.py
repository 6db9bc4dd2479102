"""Files to and from a board's Linux: checked by SHA-256, resumed, and put in place at once.

A file is written beside its target as ``<target>.part`` and moved when its hash is right, so a
target is either the old file or the new one. Only tools of the stock image are used. A command
may run twice when a connection breaks, therefore each piece says where it belongs.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BoardCommandError, TransferError
from .file_answers import SIZE_OF, checked_answer, lines_of, parse_df
from .file_sending import (
    ATTEMPTS,
    CHUNK,
    Plan,
    PutRequest,
    checked_later,
    file_sha256,
    groups,
    is_small,
    plan_of,
    probe_targets,
    send_group,
    send_large,
)
from .shell import BoardShell

__all__ = [
    "FetchOutcome",
    "PutOutcome",
    "PutRequest",
    "RemoteFile",
    "fetch_bytes",
    "fetch_file",
    "file_sha256",
    "free_space",
    "probe_files",
    "put_file",
    "put_many",
    "remove_files",
    "would_change",
]

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""


@dataclass(frozen=True)
class PutOutcome:
    """What was done for one file: whether it changed, and the bytes sent."""

    changed: bool
    bytes_sent: int


@dataclass(frozen=True)
class FetchOutcome:
    """Whether the local file changed, and its size and hash."""

    changed: bool
    size: int
    sha256: str


@dataclass(frozen=True)
class RemoteFile:
    """A file on the board: size in bytes (-1: none) and SHA-256 (empty: not asked for)."""

    size: int
    sha256: str = ""


def put_file(
    shell: BoardShell,
    source: Path | bytes,
    target: str,
    *,
    sha256: str | None = None,
    mode: int | None = None,
    progress: Progress | None = None,
) -> PutOutcome:
    """Have ``source`` on the board as ``target``; nothing is sent when it is there already.

    Raises:
        BoardSpaceError: the card has no room for it.
        StorageError: the file system is read-only.
        TransferError: what arrived differs from what was sent, again and again.
        BoardUnreachableError: the connection broke; a rerun goes on where it stopped.
    """
    return put_many(shell, [PutRequest(source, target, sha256, mode)], progress=progress)[0]


def put_many(
    shell: BoardShell, requests: Sequence[PutRequest], *, progress: Progress | None = None
) -> list[PutOutcome]:
    """:func:`put_file` for many files: one round trip tells which are right already, small ones
    travel together, and the board checks a large one while the next is on its way.

    Returns:
        One outcome per request, in order. Of several for one target the last counts, the others
        are not sent.
    """
    outcomes: dict[int, PutOutcome] = {}
    last = {request.target: number for number, request in enumerate(requests)}
    wanted = sorted(last.values())
    found = probe_targets(shell, [plan_of(requests[number]) for number in wanted])
    missing = [(n, plan) for n, plan in zip(wanted, found, strict=True) if plan is not None]
    total = sum(plan.size - plan.part_size for _, plan in missing)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    small = [(n, p) for n, p in missing if is_small(p)]
    for group in groups(small):
        send_group(shell, [plan for _, plan in group])
        for number, plan in group:
            outcomes[number] = PutOutcome(True, plan.size)
            advance(plan.size)
    large = [(n, p) for n, p in missing if not is_small(p)]
    # in the board's memory, and with a name that no earlier run has used
    notes = [f"/tmp/k230-check-{secrets.token_hex(6)}" for _ in large[:-1]]
    # the last one's check has no transfer to hide behind
    for (number, plan), note in zip(large, [*notes, None], strict=False):
        outcomes[number] = PutOutcome(True, send_large(shell, plan, advance, note=note))
    for number, sent in _sent_again(shell, large[:-1], notes):
        outcomes[number] = PutOutcome(True, outcomes[number].bytes_sent + sent)
    return [outcomes.get(number, PutOutcome(False, 0)) for number in range(len(requests))]


def _sent_again(
    shell: BoardShell, sent: list[tuple[int, Plan]], notes: list[str]
) -> Iterator[tuple[int, int]]:
    """Ask for the checks left to the board; send anew what was damaged: (number, bytes)."""
    if not sent:
        return
    right = checked_later(shell, notes)
    for (number, plan), is_right in zip(sent, right, strict=True):
        again = None if is_right else probe_targets(shell, [plan])[0]
        if again is not None:
            yield number, send_large(shell, again, lambda count: None)


def would_change(shell: BoardShell, requests: Sequence[PutRequest]) -> list[bool]:
    """Which of the files :func:`put_many` would send (for check mode); the board is not changed."""
    plans = [plan_of(request) for request in requests]
    return [resumed is not None for resumed in probe_targets(shell, plans, prepare=False)]


def fetch_bytes(shell: BoardShell, source: str) -> bytes | None:
    """The content of a small file on the board, or None when there is none; one round trip.

    Raises:
        TransferError: what arrived differs from the file's hash.
    """
    quoted = shlex.quote(source)
    script = f"[ -f {quoted} ] || {{ echo absent; exit 0; }}\nsha256sum <{quoted} && cat {quoted}"
    for _ in range(ATTEMPTS):
        answer = checked_answer(shell, shell.run(script), f"reading {source}")
        head, _, content = answer.stdout.partition(b"\n")
        if head.strip() == b"absent":
            return None
        if hashlib.sha256(content).hexdigest() == head.split()[0].decode("ascii", "replace"):
            return content
    raise TransferError(
        f"{source} arrived differently from its hash {ATTEMPTS} times",
        board=shell.board,
        hint="check the network, and the card by fsck.",
    )


def fetch_file(
    shell: BoardShell,
    source: str,
    target: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
) -> FetchOutcome:
    """Have the board's file ``source`` as ``target`` on the controller.

    Args:
        sha256: what the file must be; the file's own hash on the board when not given.

    Raises:
        TransferError: there is no such file, or what arrived differs.
    """
    remote = probe_files(shell, [source])[0]
    if remote.size < 0:
        raise TransferError(f"there is no file {source}", board=shell.board)
    if sha256 is not None and remote.sha256 != sha256:
        raise TransferError(
            f"{source} is not what was expected: SHA-256 {sha256[:12]} expected, "
            f"{remote.sha256[:12]} found",
            board=shell.board,
        )
    if target.is_file() and file_sha256(target) == remote.sha256:
        return FetchOutcome(False, remote.size, remote.sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    for _ in range(ATTEMPTS):
        _receive(shell, source, remote.size, part, progress)
        if file_sha256(part) == remote.sha256:
            part.replace(target)
            return FetchOutcome(True, remote.size, remote.sha256)
        part.unlink()
    raise TransferError(
        f"{source} arrived differently from its hash {ATTEMPTS} times",
        board=shell.board,
        hint="check the network, and whether the file is still being written.",
    )


def probe_files(shell: BoardShell, paths: Sequence[str]) -> list[RemoteFile]:
    """Size and SHA-256 of files on the board, in one round trip."""
    script = (
        f"{SIZE_OF}while IFS= read -r t; do\n"
        'if [ -f "$t" ]; then set -- $(sha256sum <"$t"); echo "$(size_of "$t")" "$1"\n'
        "else echo -1 -; fi; done"
    )
    answer = checked_answer(shell, shell.run(script, stdin=lines_of(paths)), "looking at files")
    found = [line.split() for line in answer.text.splitlines()]
    if len(found) != len(paths):
        raise BoardCommandError(
            f"{len(paths)} answers about files expected, {len(found)} came", board=shell.board
        )
    return [RemoteFile(int(size), "" if sha == "-" else sha) for size, sha in found]


def remove_files(shell: BoardShell, paths: Sequence[str]) -> None:
    """Delete files on the board (missing ones are fine), in one round trip."""
    if paths:
        script = 'while IFS= read -r t; do rm -f "$t" || exit 1; done'
        checked_answer(shell, shell.run(script, stdin=lines_of(paths)), "deleting files")


def free_space(shell: BoardShell, folder: str) -> int:
    """Bytes free on the file system of ``folder``."""
    return parse_df(
        checked_answer(shell, shell.run(_df(folder)), f"asking the space of {folder}").text
    )


def _receive(
    shell: BoardShell, source: str, size: int, part: Path, progress: Progress | None
) -> None:
    with part.open("wb") as file:
        for number in range((size + CHUNK - 1) // CHUNK):
            script = (
                f"dd if={shlex.quote(source)} bs={CHUNK // 64} skip={number * 64} count=64 "
                "2>/dev/null"
            )
            answer = checked_answer(shell, shell.run(script), f"reading {source}")
            file.write(answer.stdout)
            if progress is not None:
                progress(min((number + 1) * CHUNK, size), size)


def _df(folder: str) -> str:
    return f"df -P -k {shlex.quote(folder)}"
