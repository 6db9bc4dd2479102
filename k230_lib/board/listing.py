"""What files a partition holds: the board's listing, and how to cut them into transfers."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import BoardCommandError, StorageError

MIB = 1024 * 1024
#: files that are not yet in their place; on the same file system, so that moving is renaming
STAGING = ".k230-restore"
#: bytes of one transfer from and to the board: a lost connection costs at most this much
FETCH_BYTES = 48 * MIB
SEND_BYTES = 64 * MIB
_MAX_NAMES = 400
# Run in the root of the partition. Sizes and hashes are read from the files, not from their
# directory: what cannot be read is noticed here, before anything is written.
LIST_COMMANDS = (
    's() { echo; echo "@@$1"; }',
    "skip='-path ./lost+found -prune -o'",
    "s odd; find . $skip -name '*\n*' -print | head -n 3",
    "s other; find . $skip ! -type f ! -type d ! -type l -print",
    "s dirs; find . $skip -type d -print",
    "s files; find . $skip -type f -print0 | xargs -0 -r sha256sum",
    "s sizes; find . $skip -type f -print0 | xargs -0 -r wc -c",
    "s programs; find . $skip -type f -perm -100 -print",
    "s links; find . $skip -type l -print | while IFS= read -r f; do",
    'echo "$f"; readlink "$f"; done',
    "s end",
)


@dataclass(frozen=True)
class SavedFile:
    """A regular file: path below the root without ``./``, content hash, size, execute bit."""

    path: str
    sha256: str
    bytes: int
    executable: bool


@dataclass(frozen=True)
class Manifest:
    """What is kept of a partition's content; not owners and times (boards have no clock)."""

    dirs: tuple[str, ...] = ()
    files: tuple[SavedFile, ...] = ()
    links: tuple[tuple[str, str], ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def empty(self) -> bool:
        return not (self.dirs or self.files or self.links)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Manifest:
        return cls(
            dirs=tuple(data["dirs"]),
            files=tuple(SavedFile(**file) for file in data["files"]),
            links=tuple((path, target) for path, target in data["links"]),
        )


@dataclass(frozen=True)
class Piece:
    """``count`` MiB from MiB ``skip`` of a file; ``count`` 0 is the whole file."""

    file: SavedFile
    skip: int = 0
    count: int = 0

    @property
    def bytes(self) -> int:
        if not self.count:
            return self.file.bytes
        return min(self.count * MIB, self.file.bytes - self.skip * MIB)

    @property
    def order(self) -> str:
        """The line that asks the board for it."""
        return f"{self.skip} {self.count} ./{self.file.path}\n"


def parse_listing(text: str, *, board: str) -> Manifest:
    """Read what :data:`LIST_COMMANDS` printed.

    Raises:
        StorageError: something is there that cannot be copied and put back.
        BoardCommandError: the listing is incomplete or contradicts itself.
    """
    sections = {
        name: [line for line in body.split("\n") if line]
        for name, _, body in (part.partition("\n") for part in re.split(r"(?:^|\n)@@", text)[1:])
    }
    if "end" not in sections:
        raise BoardCommandError("the list of files is cut off", board=board, hint="run again.")
    for section, what in (("odd", "a name with a line break"), ("other", "not a file")):
        if sections[section]:
            raise StorageError(
                f"{sections[section][0]!r} on the partition is {what}; it could not be put back",
                board=board,
                hint="rename or delete it, or use preserve=false.",
            )
    sizes = {path: int(size) for size, path in _pairs(sections["sizes"]) if path != "total"}
    hashes = {path: digest for digest, path in _pairs(sections["files"])}
    if sizes.keys() != hashes.keys():
        raise BoardCommandError(
            "the list of files changed while it was made", board=board, hint="run again."
        )
    programs = set(sections["programs"])
    links = sections["links"]
    return Manifest(
        dirs=tuple(sorted(_bare(path) for path in sections["dirs"] if path != ".")),
        files=tuple(
            SavedFile(_bare(path), hashes[path], sizes[path], path in programs)
            for path in sorted(hashes)
        ),
        links=tuple(
            (_bare(path), target)
            for path, target in sorted(zip(links[::2], links[1::2], strict=True))
        ),
    )


def missing(wanted: Manifest, there: Manifest, *, board: str) -> Manifest:
    """What is still to be sent.

    Args:
        there: the partition's listing, staging directory included.

    Raises:
        StorageError: a name is taken by something else; neither is overwritten.
    """
    prefix = f"{STAGING}/"
    staged = {
        file.path.removeprefix(prefix): file for file in there.files if file.path.startswith(prefix)
    }
    placed = {file.path: file for file in there.files}
    for file in wanted.files:
        found = placed.get(file.path)
        if found is not None and found.sha256 != file.sha256:
            raise StorageError(
                f"{file.path} on the board is not the saved one, somebody wrote it meanwhile",
                board=board,
                hint="rename it on the board and run again; the saved one is then put back.",
            )

    def here(file: SavedFile) -> bool:
        found = placed.get(file.path) or staged.get(file.path)
        return found is not None and found.sha256 == file.sha256

    links = {path.removeprefix(prefix): target for path, target in there.links}
    dirs = {path.removeprefix(prefix) for path in there.dirs}
    return Manifest(
        dirs=tuple(path for path in wanted.dirs if path not in dirs),
        files=tuple(file for file in wanted.files if not here(file)),
        links=tuple(link for link in wanted.links if links.get(link[0]) != link[1]),
    )


def pieces(
    files: Sequence[SavedFile], done: dict[str, int] | None = None, size: int = FETCH_BYTES
) -> Iterator[tuple[Piece, ...]]:
    """Cut files into transfers of about ``size`` bytes; files with equal content go once.

    Args:
        done: bytes that are there already, by content hash; whole MiB of larger files count.
    """
    batch: list[Piece] = []
    seen: set[str] = set()
    for file in files:
        if file.sha256 in seen:
            continue
        seen.add(file.sha256)
        if file.bytes > size:
            if batch:
                yield tuple(batch)
                batch = []
            step = size // MIB
            start = (done or {}).get(file.sha256, 0) // MIB
            for skip in range(start, -(-file.bytes // MIB), step):
                yield (Piece(file, skip, step),)
            continue
        batch.append(Piece(file))
        if sum(piece.bytes for piece in batch) >= size or len(batch) >= _MAX_NAMES:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)


def parcels(
    rest: Manifest, blob: Callable[[SavedFile], Path], size: int = SEND_BYTES
) -> Iterator[bytes]:
    """What is sent to put files back: a first line that says what follows, then bytes.

    ``tar`` is followed by an archive; ``MIB MODE PATH`` by bytes for that place of one large file.

    Args:
        blob: where a file's saved content lies.
    """
    small = [file for file in rest.files if file.bytes <= size]
    batches: list[list[SavedFile]] = [[]]
    for file in small:
        if sum(item.bytes for item in batches[-1]) + file.bytes > size and batches[-1]:
            batches.append([])
        batches[-1].append(file)
    large = [file for file in rest.files if file.bytes > size]
    if small or rest.dirs or rest.links:
        # directories travel with the first archive, so that large files find theirs
        yield b"tar\n" + _archive(rest.dirs, batches[0], rest.links, blob)
    for batch in batches[1:]:
        yield b"tar\n" + _archive((), batch, (), blob)
    for file in large:
        with blob(file).open("rb") as source:
            for skip in range(0, -(-file.bytes // MIB), size // MIB):
                mode = 755 if file.executable else 644
                header = f"{skip} {mode} ./{file.path}\n".encode("utf-8", "surrogateescape")
                yield header + source.read(size)


def write_pieces(
    batch: Sequence[Piece], data: bytes, store: Callable[[Piece, bytes], None]
) -> bool:
    """Hand out the bytes of one transfer; false when there are too few or too many."""
    if len(data) != sum(piece.bytes for piece in batch):
        return False
    at = 0
    for piece in batch:
        store(piece, data[at : at + piece.bytes])
        at += piece.bytes
    return True


def _archive(
    dirs: Sequence[str],
    files: Sequence[SavedFile],
    links: Sequence[tuple[str, str]],
    blob: Callable[[SavedFile], Path],
) -> bytes:
    buffer = io.BytesIO()
    # GNU format: busybox reads its long names
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in dirs:
            archive.addfile(_member(path, tarfile.DIRTYPE, 0o755))
        for file in files:
            member = _member(file.path, tarfile.REGTYPE, 0o755 if file.executable else 0o644)
            member.size = file.bytes
            source: BinaryIO
            with blob(file).open("rb") as source:
                archive.addfile(member, source)
        for path, target in links:
            member = _member(path, tarfile.SYMTYPE, 0o777)
            member.linkname = target
            archive.addfile(member)
    return buffer.getvalue()


def _member(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(f"./{path}")
    member.type, member.mode = kind, mode
    return member


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        # names may end with blanks
        first, _, rest = line.lstrip().partition(" ")
        yield first, rest.lstrip(" ")


def _bare(path: str) -> str:
    return path.removeprefix("./")
