"""Loop devices that free themselves: nothing is left when their user dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from pathlib import Path

from ..errors import VirtualBoardError

_CTL_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_MAJOR = 7
_FLAG_AUTOCLEAR = 4
_FLAG_PARTSCAN = 8
# struct loop_config: fd, block size, struct loop_info64, eight reserved words
_CONFIG = struct.Struct("=II QQQQQ IIII 64s 64s 32s QQ 64x")


class LoopDevice:
    """A block device over ``image``, cleared by the kernel after its last user.

    Raises:
        VirtualBoardError: the kernel gives no loop device.
    """

    def __init__(self, image: Path) -> None:
        with image.open("r+b", buffering=0) as backing:
            while True:
                self.name = self._free_name()
                self._make_node()
                self._fd = os.open(f"/dev/{self.name}", os.O_RDWR | os.O_CLOEXEC)
                try:
                    self._configure(backing.fileno(), image)
                    return
                except OSError as error:
                    os.close(self._fd)
                    if error.errno != errno.EBUSY:
                        raise VirtualBoardError(
                            f"no loop device for {image.name}: {error.strerror}",
                            hint="check that the kernel has the loop driver (5.8 or later).",
                        ) from error

    @staticmethod
    def _free_name() -> str:
        try:
            control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise VirtualBoardError(
                f"/dev/loop-control: {error.strerror}",
                hint="load the loop driver: modprobe loop.",
            ) from error
        try:
            number: int = fcntl.ioctl(control, _CTL_GET_FREE)
        finally:
            os.close(control)
        return f"loop{number}"

    def _make_node(self) -> None:
        # in a container, nobody makes nodes for loop devices that are new
        number = int(self.name.removeprefix("loop"))
        with contextlib.suppress(FileExistsError):
            os.mknod(self.path, stat.S_IFBLK | 0o660, os.makedev(_MAJOR, number))

    def _configure(self, backing: int, image: Path) -> None:
        name = os.fsencode(image.name)[:63]
        flags = _FLAG_AUTOCLEAR | _FLAG_PARTSCAN
        config = _CONFIG.pack(
            *(backing, 512), *(0, 0, 0, 0, 0), *(0, 0, 0, flags), *(name, b"", b""), *(0, 0)
        )
        fcntl.ioctl(self._fd, _CONFIGURE, config)

    @property
    def path(self) -> str:
        return f"/dev/{self.name}"

    def release(self, patience: float = 10.0) -> None:
        """Give up this process's hold and wait until the kernel has cleared the device.

        Raises:
            VirtualBoardError: something else still uses it.
        """
        os.close(self._fd)
        backing = Path(f"/sys/block/{self.name}/loop/backing_file")
        deadline = time.monotonic() + patience
        while backing.exists():
            if time.monotonic() > deadline:
                raise VirtualBoardError(
                    f"{self.path} stays in use", hint=f"look who uses it: fuser -v {self.path}"
                )
            time.sleep(0.01)
