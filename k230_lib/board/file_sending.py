"""Sending files to the board piece by piece, or many small ones together.

The steps of :func:`k230_lib.board.files.put_many`: plan, probe what is there, send.
"""

from __future__ import annotations

import hashlib
import io
import shlex
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import BoardCommandError, BoardSpaceError, InputError, TransferError
from .file_answers import MAKE_ROOM, SIZE_OF, checked_answer, lines_of
from .shell import BoardShell, CommandResult

CHUNK = 12 << 20
"""Bytes sent in one round trip: a second on the board's 100 Mbit/s."""

SMALL = 1 << 20
"""Files up to this size travel together."""
_SPACE_MARGIN = 1 << 20
ATTEMPTS = 3
"""How often a file is sent before its transfer fails."""

_GROUP = 200
# vfat has no time before 1980, and the board's clock means nothing anyway.
_ANY_TIME = 315_532_800


@dataclass(frozen=True)
class PutRequest:
    """One file to be on the board.

    Attributes:
        source: a file, or the content itself.
        target: absolute path on the board.
        sha256: of the source, when the caller knows it; computed otherwise.
        mode: permission bits, where the file system has them.
    """

    source: Path | bytes
    target: str
    sha256: str | None = None
    mode: int | None = None


@dataclass(frozen=True)
class Plan:
    request: PutRequest
    size: int
    sha256: str
    part_size: int = 0


def file_sha256(path: Path, size: int | None = None) -> str:
    """SHA-256 of a local file, or of its first ``size`` bytes."""
    digest = hashlib.sha256()
    left = path.stat().st_size if size is None else size
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def plan_of(request: PutRequest) -> Plan:
    """Size and hash of what is to be sent.

    Raises:
        InputError: the source cannot be read, or the target is no absolute path.
    """
    if not request.target.startswith("/") or "\n" in request.target:
        raise InputError(f"{request.target!r} is no absolute path on the board")
    if isinstance(request.source, bytes):
        digest = request.sha256 or hashlib.sha256(request.source).hexdigest()
        return Plan(request, len(request.source), digest)
    try:
        size = request.source.stat().st_size
        return Plan(request, size, request.sha256 or file_sha256(request.source))
    except OSError as error:
        raise InputError(f"{request.source} cannot be read: {error.strerror}") from error


def _content(plan: Plan, start: int, count: int) -> bytes:
    source = plan.request.source
    if isinstance(source, bytes):
        return source[start : start + count]
    with source.open("rb") as file:
        file.seek(start)
        return file.read(count)


def _prefix_sha256(plan: Plan, size: int) -> str:
    source = plan.request.source
    if isinstance(source, bytes):
        return hashlib.sha256(source[:size]).hexdigest()
    return file_sha256(source, size)


_PROBE = """\
%s
while IFS=' ' read -r size sha t; do
have=-1 part=-1 psha=-
# twice: a check that still runs may move the part to its target between the two looks
for look in 1 2; do
 [ -d "$t" ] && { have=folder; break; }
 if [ -f "$t" ]; then
  have=$(size_of "$t")
  [ "$have" -eq "$size" ] && set -- $(sha256sum <"$t") && [ "$1" = "$sha" ] && { have=same; break; }
 fi
 if [ -f "$t.part" ]; then
  part=$(size_of "$t.part"); set -- $(sha256sum <"$t.part") && [ -n "$1" ] && {
   psha=$1; break; }
  part=-1
 fi
done
if [ "$have" != same ]; then
 d=${t%%/*}
 %s
 while [ ! -d "${d:-/}" ]; do d=${d%%/*}; done
 set -- $(df -P -k "${d:-/}" | tail -n 1); echo "$have $part $psha $4"
else echo "same -1 - 0"; fi
done"""


def probe_targets(
    shell: BoardShell, plans: Sequence[Plan], *, prepare: bool = True
) -> list[Plan | None]:
    """None for each file that is right already, else its plan with the part that can be kept."""
    if not plans:
        return []
    script = _PROBE % (SIZE_OF, 'mkdir -p "${d:-/}" || exit 1' if prepare else ":")
    lines = lines_of(f"{p.size} {p.sha256} {p.request.target}" for p in plans)
    answer = checked_answer(
        shell, shell.run(script, stdin=lines), f"preparing {plans[0].request.target}"
    )
    rows = [line.split() for line in answer.text.splitlines()]
    if len(rows) != len(plans) or any(len(row) != 4 for row in rows):
        raise BoardCommandError(
            f"{len(plans)} answers about files expected, got {answer.text[-80:]!r}",
            board=shell.board,
        )
    result: list[Plan | None] = []
    needed = 0
    free = 0
    for plan, (have, part, part_sha, available) in zip(plans, rows, strict=True):
        if have == "same":
            result.append(None)
            continue
        if have == "folder":
            raise InputError(
                f"{plan.request.target} is a folder, a file is to be put there",
                board=shell.board,
                hint="name the file in it.",
            )
        kept = int(part)
        if kept <= 0 or kept > plan.size or _prefix_sha256(plan, kept) != part_sha:
            # A damaged part is written over, so its room is free.
            free, kept = int(available) * 1024 + max(kept, 0), 0
        else:
            free = int(available) * 1024
        needed += plan.size - kept
        result.append(Plan(plan.request, plan.size, plan.sha256, kept))
    if needed and needed + _SPACE_MARGIN > free:
        raise BoardSpaceError(
            f"{_mib(needed)} MiB are to be sent to "
            f"{PurePosixPath(plans[0].request.target).parent}, "
            f"{_mib(free)} MiB are free",
            board=shell.board,
            hint=MAKE_ROOM,
        )
    return result


def is_small(plan: Plan) -> bool:
    """Does the file travel together with others?"""
    return plan.size <= SMALL and plan.part_size == 0


def groups(plans: list[tuple[int, Plan]]) -> list[list[tuple[int, Plan]]]:
    groups: list[list[tuple[int, Plan]]] = []
    room = 0
    for number, plan in plans:
        if not groups or room + plan.size > CHUNK or len(groups[-1]) >= _GROUP:
            groups.append([])
            room = 0
        groups[-1].append((number, plan))
        room += plan.size
    return groups


def send_group(shell: BoardShell, plans: list[Plan]) -> None:
    """Send small files in one round trip: first the list of hashes, then a tar stream."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for number, plan in enumerate(plans):
            entry = tarfile.TarInfo(f"{number}.part")
            entry.size, entry.mtime, entry.mode = plan.size, _ANY_TIME, 0o644
            archive.addfile(entry, io.BytesIO(_content(plan, 0, plan.size)))
        end = archive.offset + 2 * tarfile.BLOCKSIZE
    # The archive ends with two empty blocks; what pads it further is not worth sending.
    packed = stream.getvalue()[:end]
    folder = shlex.quote(str(PurePosixPath(plans[0].request.target).parent / ".k230-in"))
    moves = "\n".join(
        f"m {n} {plan.sha256} {shlex.quote(plan.request.target)} "
        f"{format(plan.request.mode, 'o') if plan.request.mode is not None else '-'}"
        for n, plan in enumerate(plans)
    )
    script = (
        f'd={folder}; rm -rf "$d"; mkdir -p "$d" && cd "$d" || exit 1\n'
        'm() { set -- "$1" "$2" "$3" "$4" $(sha256sum <$1.part)\n'
        'if [ "$5" = "$2" ]; then [ "$4" = - ] || chmod $4 $1.part 2>/dev/null\n'
        'mv -f $1.part "$3" || exit 1; else echo "differs $3"; fi; }\n'
        'tar x -o -f - || { cd /; rm -rf "$d"; exit 1; }\n'
        f'{moves}\nsync; cd /; rm -rf "$d"'
    )
    for _ in range(ATTEMPTS):
        answer = shell.run(script, stdin=packed)
        if b"differs" not in checked_answer(shell, answer, f"writing {folder}").stdout:
            return
    raise TransferError(
        f"files for {folder} arrived differently {ATTEMPTS} times: {answer.text.strip()[-120:]}",
        board=shell.board,
        hint="check the network, and the card by fsck.",
    )


def send_large(
    shell: BoardShell, plan: Plan, advance: Callable[[int], None], *, note: str | None = None
) -> int:
    """Send a file piece by piece; each piece says where it begins, so none counts twice.

    Args:
        note: let the board check and move the file while the next one is on its way, and write
            what came of it into this file, which no one else knows; see :func:`checked_later`.

    Returns:
        Bytes sent.
    """
    target = shlex.quote(plan.request.target)
    position, sent, failures = plan.part_size, 0, 0
    while True:
        piece = _content(plan, position, CHUNK)
        last = position + len(piece) >= plan.size
        script = f"{SIZE_OF}{_receive(target, position) if piece else 'r=0'}\n"
        script += f"n=$(size_of {target}.part); echo $n\n"
        if last:
            script += _check_and_move(plan) if note is None else _in_background(plan, note)
        answer = shell.run(f"{script}\nexit $r", stdin=piece or None)
        words = answer.text.split()
        if "moved" in words or "started" in words:
            advance(len(piece))
            return sent + len(piece)
        arrived = int(words[0]) if words and words[0].isdigit() else -1
        if arrived == position + len(piece) and not last:
            sent += len(piece)
            position = arrived
            advance(len(piece))
            continue
        if b"No space" in answer.stderr or b"Read-only" in answer.stderr:
            shell.run(f"rm -f {target}.part")
            checked_answer(shell, CommandResult(1, b"", answer.stderr), f"writing {target}")
        failures += 1
        if failures >= ATTEMPTS:
            raise TransferError(
                f"{plan.request.target} arrived differently {failures} times "
                f"(SHA-256 {plan.sha256[:12]} expected, {' '.join(words[-2:]) or 'nothing'} found)",
                board=shell.board,
                hint="check the network, and the card by fsck.",
            )
        position = 0


def _receive(target: str, position: int) -> str:
    """Take a piece that begins at ``position``, unless it is there already; status in ``r``."""
    if position == 0:
        return f"cat >{target}.part; r=$?"
    return f'[ "$(size_of {target}.part)" -eq {position} ] && cat >>{target}.part; r=$?'


def _check_and_move(plan: Plan, then: str = "sync && ") -> str:
    """Prints ``moved``, or ``differs`` with the hash that was found."""
    target = shlex.quote(plan.request.target)
    mode = plan.request.mode
    chmod = f"chmod {mode:o} {target}.part 2>/dev/null; " if mode is not None else ""
    return (
        f"set -- $(sha256sum <{target}.part)\n"
        f'if [ "$1" = {plan.sha256} ]; then {chmod}mv -f {target}.part {target} '
        f"&& {then}echo moved || echo differs unmoved; else h=$1\n"
        # The command may have run already, by a connection that tries again.
        f'set -- $(sha256sum <{target}) -; [ "$1" = {plan.sha256} ] && echo moved '
        '|| echo "differs $h"; fi 2>/dev/null'
    )


def _in_background(plan: Plan, note: str) -> str:
    """Prints ``started`` when the check goes on by itself, else what a check at once prints.

    ``n`` has the size of the part.
    """
    return (
        # not by 2>/dev/null behind fi: the check would hold the kept copy, and so the session
        f'exec 2>/dev/null\nif [ "$n" -eq {plan.size} ] && ( : >{note}.new ); then\n'
        f"(\n{_check_and_move(plan, '')}\nmv {note}.new {note}\n) </dev/null >{note}.new &\n"
        f"( echo $! >{note}.job ); echo started\n"
        f"else\n{_check_and_move(plan)}\nfi"
    )


def checked_later(shell: BoardShell, notes: Sequence[str]) -> list[bool]:
    """Which files the board has found right and moved; waits for its checks, one round trip."""
    script = (
        "c() { n=0\n"
        "while [ ! -e $1 ] && [ -s $1.job ] && kill -0 $(cat $1.job) && [ $n -lt 60000 ]; do\n"
        "usleep 10000; n=$((n+1)); done\n"
        'set -- $1 $(cat $1); echo "${2:-lost}"; rm -f $1 $1.job $1.new; }\n'
        "exec 2>/dev/null\n"
    )
    script += "\n".join(f"c {note}" for note in notes) + "\nsync"
    answer = checked_answer(shell, shell.run(script), "asking what became of files")
    words = answer.text.split()
    if len(words) != len(notes):
        raise BoardCommandError(
            f"{len(notes)} answers about files expected, {len(words)} came", board=shell.board
        )
    return [word == "moved" for word in words]


def _mib(count: int) -> str:
    return f"{count / (1 << 20):.1f}"
