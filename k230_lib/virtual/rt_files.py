"""The file tree that the RT-Smart core sees: a small read-only root, and the board's /sharefs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SHAREFS = "/sharefs"
# rmdir over sharefs drops the last character of the path, so folders stay (a bug of the real one)
_ROM = {
    "/": ("bin", "dev", "proc", "sharefs"),
    "/bin": ("fastboot_app.elf", "init.sh", "test.kmodel"),
    "/dev": ("console", "uart3"),
    "/proc": (),
}
_ROM_FILES = {"/bin/init.sh": b"/bin/fastboot_app.elf /bin/test.kmodel\n"}


class ServerMissing(Exception):  # noqa: N818  (the real core waits for ever, callers do too)
    """The Linux side's sharefs server does not run."""


@dataclass(frozen=True)
class Entry:
    """One line of a listing; ``size`` is None for folders."""

    name: str
    size: int | None


def on_sharefs(path: str) -> bool:
    return path == SHAREFS or path.startswith(f"{SHAREFS}/")


class RtFiles:
    """File operations of msh on absolute RT-Smart paths.

    Args:
        host_root: where the content of ``/sharefs`` lies for this process just now.
        server_running: whether the board's sharefs server is there.
    """

    def __init__(self, host_root: Callable[[], Path], server_running: Callable[[], bool]) -> None:
        self._host_root = host_root
        self.server_running = server_running

    def host_path(self, path: str) -> Path:
        """The file of this machine behind an RT-Smart path on /sharefs.

        Raises:
            ServerMissing: nobody would answer.
        """
        if not self.server_running():
            raise ServerMissing(path)
        return self._host_root() / path[len(SHAREFS) :].lstrip("/")

    def is_dir(self, path: str) -> bool:
        """Whether ``path`` is a folder; this question is safe without a server."""
        if not on_sharefs(path):
            return path in _ROM
        return self.server_running() and self.host_path(path).is_dir()

    def is_file(self, path: str) -> bool:
        """Whether ``path`` is a file; asks by opening, as the real one does."""
        if not on_sharefs(path):
            folder, _, name = path.rpartition("/")
            return name in _ROM.get(folder or "/", ()) and path not in _ROM
        return self.host_path(path).is_file()

    def list(self, path: str) -> list[Entry]:
        """Content of a folder.

        Raises:
            OSError: not there.
            ServerMissing: nobody would answer.
        """
        if not on_sharefs(path):
            names = _ROM.get(path)
            if names is None:
                raise FileNotFoundError(path)
            base = path.rstrip("/")
            return [
                Entry(name, None if f"{base}/{name}" in _ROM or name == "sharefs" else 0)
                for name in names
            ]
        found = []
        with os.scandir(self.host_path(path)) as entries:
            for entry in entries:
                size = None if entry.is_dir() else entry.stat().st_size
                found.append(Entry(entry.name, size))
        return sorted(found, key=lambda entry: entry.name)

    def read(self, path: str) -> bytes:
        if not on_sharefs(path):
            if not self.is_file(path):
                raise FileNotFoundError(path)
            return _ROM_FILES.get(path, b"")
        return self.host_path(path).read_bytes()

    def append(self, path: str, text: bytes) -> None:
        self._writable(path)
        with self.host_path(path).open("ab") as file:
            file.write(text)

    def make_dir(self, path: str) -> None:
        self._writable(path)
        self.host_path(path).mkdir()

    def remove(self, path: str) -> None:
        self._writable(path)
        self.host_path(path).unlink()

    def remove_tree(self, path: str) -> None:
        """Remove the files below ``path``; the folders themselves stay, as on the real board."""
        self._writable(path)
        for folder, _, names in os.walk(self.host_path(path)):
            for name in names:
                (Path(folder) / name).unlink()

    def copy(self, source: str, target: str) -> None:
        self._writable(target)
        shutil.copyfile(self.host_path(source), self.host_path(target))

    def move(self, source: str, target: str) -> None:
        self._writable(source)
        self._writable(target)
        self.host_path(source).rename(self.host_path(target))

    def free_space(self) -> tuple[int, int]:
        """(free bytes, block size) of the file system on /sharefs."""
        stat = os.statvfs(self.host_path(SHAREFS))
        return stat.f_bavail * stat.f_frsize, stat.f_frsize

    @staticmethod
    def _writable(path: str) -> None:
        if not on_sharefs(path):
            raise PermissionError(path)
