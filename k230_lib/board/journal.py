"""The controller's record of a file system being made, and the saved files.

A run that dies leaves it; the next one goes on from it. It lies in a folder per board:
``journal.json``, written whole and synced before the step that it announces, and ``blobs/``, the
saved contents by their SHA-256.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import socket
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from ..errors import EnvironmentProblemError, StorageError
from .facts_script import MARKER
from .listing import MIB, Manifest, Piece, SavedFile
from .records import BoardFacts
from .sizes import human

_SCHEMA = 1
_SPARE_BYTES = 64 * MIB


class Phase(StrEnum):
    """How far it is; each is recorded before its first step is sent."""

    #: the old file system is untouched, its files are being copied
    SAVING = "saving"
    #: all files are on the controller; the old file system may be gone
    MAKING = "making"
    #: the new file system is there, files are being put back
    RESTORING = "restoring"


@dataclass(frozen=True)
class Journal:
    """One replacement.

    Args:
        card: identity of card and partition; a journal is never applied to another one.
        old_kind, old_uuid: the file system to be replaced.
        kind, label: the one to be made.
        mounted: ``rw``, ``ro`` or ``no``, to be as found in the end.
        daemon_stopped: the sharefs daemon was stopped and is to be started again.
        new_uuid: of the one made, from phase ``restoring`` on.
    """

    phase: Phase
    card: str
    old_kind: str
    old_uuid: str
    kind: str
    label: str
    mounted: str
    daemon_stopped: bool = False
    new_uuid: str = ""
    preserve: bool = True
    manifest: Manifest = field(default_factory=Manifest)

    @property
    def id(self) -> str:
        """Names the replacement; the same for every run that works on it."""
        parts = (self.card, self.old_kind, self.old_uuid, self.kind)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def card_identity(facts: BoardFacts) -> str:
    """What tells this card and partition from others, also from one flashed with the same image."""
    disk, part = facts.disk, facts.partition
    table = disk.gpt.table if disk else None
    entry = table.entry(facts.partition_number) if table else None
    if disk is None or part is None or table is None or entry is None:
        raise ValueError("no partition")
    return " ".join((disk.card_id or "no-cid", table.disk_guid, entry.unique_guid, str(part.start)))


class Folder:
    """The folder of one board."""

    def __init__(self, root: Path, board: str) -> None:
        self.board = board
        self.path = root.resolve() / board
        self._file = self.path / "journal.json"
        self._blobs = self.path / "blobs"

    def require_own(self, facts: BoardFacts, journal: Journal | None) -> None:
        """Refuse when the board's files were saved by a run that this folder knows nothing of.

        Raises:
            StorageError: names where that run was started.
        """
        own = journal.id if journal else ""
        other, _, where = facts.marker.partition(" ")
        if facts.marker and other != own:
            raise StorageError(
                f"files of {facts.mountpoint} were saved to {where} and not put back yet",
                board=self.board,
                hint=f"run again there; only if they are not needed: rm {MARKER} on the board.",
            )

    def mark_command(self, journal: Journal) -> str:
        """Leaves a note on the board: to other controllers the partition must not look new."""
        where = f"{socket.gethostname()}:{self.path}"
        return f"echo {shlex.quote(f'{journal.id} {where}')} >{MARKER}"

    def load(self) -> Journal | None:
        """The journal that an earlier run left.

        Raises:
            StorageError: it cannot be read.
        """
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            data = json.loads(text)
            if data.pop("schema_version") != _SCHEMA:
                raise ValueError("another version's")
            data["phase"] = Phase(data["phase"])
            data["manifest"] = Manifest.from_json(data["manifest"])
            return Journal(**data)
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"the journal {self._file} cannot be read: {error}",
                board=self.board,
                hint="files of the board may be in blobs/ beside it; do not delete it unseen.",
            ) from error

    def save(self, journal: Journal) -> Journal:
        """Write it, synced to the disk, in place of the one before."""
        data = {
            **asdict(journal),
            "schema_version": _SCHEMA,
            "manifest": journal.manifest.to_json(),
        }
        try:
            self._blobs.mkdir(parents=True, exist_ok=True)
            fresh = self._file.with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as file:
                json.dump(data, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._file)
            _sync(self.path)
        except OSError as error:
            raise EnvironmentProblemError(
                f"the journal {self._file} cannot be written: {error}", board=self.board
            ) from error
        return journal

    def discard(self) -> None:
        """Remove journal and saved files: all is back on the board and verified."""
        with contextlib.suppress(FileNotFoundError):
            self._file.unlink()
        shutil.rmtree(self._blobs, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def blob(self, file: SavedFile) -> Path:
        """Where the content of a file is saved."""
        return self._blobs / file.sha256

    def has(self, file: SavedFile) -> bool:
        """Whether the content is there, whole; read in full."""
        path = self.blob(file)
        return path.is_file() and _sha256(path) == file.sha256

    def partial(self, files: tuple[SavedFile, ...]) -> dict[str, int]:
        """Bytes that are there of contents not yet complete, by hash."""
        sizes = {}
        for file in files:
            part = self._part(file)
            if part.is_file():
                sizes[file.sha256] = part.stat().st_size
        return sizes

    def require_space(self, files: tuple[SavedFile, ...]) -> None:
        """Refuse before the first byte when the files would not fit.

        Raises:
            EnvironmentProblemError: not enough free space on the controller.
        """
        need = sum(file.bytes for file in files) + _SPARE_BYTES
        free = shutil.disk_usage(self.path).free
        if free < need:
            raise EnvironmentProblemError(
                f"{self.path} has {human(free)} free, the board's files need {human(need)}",
                board=self.board,
                hint="free space or name another folder (backup_dir).",
            )

    def store(self, piece: Piece, data: bytes) -> None:
        """Keep a piece; a content is given its name when it is whole and right.

        Raises:
            StorageError: the whole content has another hash than the board said.
        """
        part = self._part(piece.file)
        with part.open("r+b" if piece.skip else "wb") as file:
            file.truncate(piece.skip * MIB)
            file.seek(piece.skip * MIB)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if size < piece.file.bytes:
            return
        if _sha256(part) != piece.file.sha256:
            part.unlink()
            raise StorageError(
                f"{piece.file.path} came with other bytes than the board's checksum says",
                board=self.board,
                hint="run again; if it stays, the card has bad sectors. Nothing was written.",
            )
        part.replace(self.blob(piece.file))
        _sync(self._blobs)

    def _part(self, file: SavedFile) -> Path:
        return self._blobs / f"{file.sha256}.part"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
