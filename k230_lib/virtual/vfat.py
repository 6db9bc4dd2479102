"""Mounts FAT on a board whose host kernel has no vfat: ``mount.vfat`` asks, a thread serves."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import threading
from pathlib import Path

from .fat import FatVolume
from .fuse import FuseServer
from .tools import path_of

_POLL_SECONDS = 0.02
_BOARD_PREFIX = "/dev/"


class VfatMounter:
    """Answers the mount helper of one life of a board.

    Args:
        init: first process of the board.
        root: where the board's root file system is in the board's own mount namespace.
    """

    def __init__(self, init: int, root: Path) -> None:
        self._init = init
        self._root = root
        self._seen_from_here = Path(f"/proc/{init}/root")
        self._over = threading.Event()
        threading.Thread(target=self._serve, name="vfat", daemon=True).start()

    def stop(self) -> None:
        """Take no further requests."""
        self._over.set()

    def _serve(self) -> None:
        folder = self._seen_from_here / "run/.board"
        while not self._over.wait(_POLL_SECONDS):
            try:
                # both ways, so that no request means waiting and not end of file
                request = os.open(folder / "vfat-request", os.O_RDWR | os.O_NONBLOCK)
                break
            except OSError:
                continue
        else:
            return
        try:
            while not self._over.is_set():
                if not select.select([request], [], [], 0.2)[0]:
                    continue
                words = os.read(request, 4096).decode().split()
                answer = self._mount(*words) if len(words) == 3 else "bad request"
                (folder / "vfat-answer").write_text(f"{answer}\n")
        except OSError:
            return  # the board went down
        finally:
            os.close(request)

    def _mount(self, device: str, target: str, mode: str) -> str:
        """Mount and serve; the answer is ``ok`` or what is wrong."""
        if not device.startswith(_BOARD_PREFIX):
            return "not a device"
        fuse = -1
        try:
            disk = os.open(self._seen_from_here / device[1:], os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            return error.strerror or "cannot open"
        try:
            volume = FatVolume(disk)
            fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
            self._call_mount(fuse, device, target, mode)
        except (OSError, struct.error, subprocess.CalledProcessError) as error:
            for each in (disk, fuse):
                if each >= 0:
                    os.close(each)
            return getattr(error, "strerror", None) or "mount failed"
        threading.Thread(target=_serve_volume, args=(fuse, disk, volume), daemon=True).start()
        return "ok"

    def _call_mount(self, fuse: int, device: str, target: str, mode: str) -> None:
        options = (
            f"fd={fuse},rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions,{mode}"
        )
        subprocess.run(
            [
                *(path_of("nsenter"), f"--mount=/proc/{self._init}/ns/mnt"),
                *(path_of("mount"), "-i", "-t", "fuseblk.vfat", "-o", options),
                *(device, f"{self._root}/{target.lstrip('/')}"),
            ],
            pass_fds=[fuse],
            capture_output=True,
            check=True,
        )


def _serve_volume(fuse: int, disk: int, volume: FatVolume) -> None:
    try:
        FuseServer(fuse, volume).run()
    finally:
        os.close(disk)
        os.close(fuse)
