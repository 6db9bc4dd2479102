"""The Linux half of a light board from power-up to the end of its namespaces."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import VirtualBoardError
from . import board_files
from .board import BoardSettings
from .cable import Cable
from .loopdev import LoopDevice
from .tools import SYSTEM_PATH, path_of
from .vfat import VfatMounter

# read once: a board that runs must not meet a newer script at its next reset
_FIRST_PROCESS = board_files.text("inside.sh")
_BOOT_PATIENCE_SECONDS = 30.0
_END_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.01
_PARTITIONS_POLL_SECONDS = 0.2
_CLONE_NEWPID = 0x20000000
# how the kernel ends a pid namespace whose init called reboot(2)
_RESTARTED = -signal.SIGHUP
_POWERED_OFF = -signal.SIGINT
_BOARD_ENVIRONMENT = ("PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/root")


class LinuxSide:
    """One life of the board's Linux, between two resets.

    Must be made and started by a thread that lives as long as the board: the kernel ends the
    namespaces when that thread is gone.

    Args:
        settings: of the board.
        cable: its network.
        image: its card.
        work: an empty folder to mount on, seen by the board's namespaces only.
        log: takes what the first process says.
    """

    def __init__(
        self, settings: BoardSettings, cable: Cable, image: Path, work: Path, log: IO[bytes]
    ) -> None:
        self._settings = settings
        self._cable = cable
        self._work = work
        self._over = threading.Event()
        self._loop = LoopDevice(image)
        self.init = 0
        self._vfat: VfatMounter | None = None
        try:
            subprocess.run(
                [path_of("partx"), "-u", self._loop.path], capture_output=True, check=False
            )
            self._process = self._spawn(log)
        except BaseException:
            self._loop.release()
            raise

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        settings = self._settings
        interface = settings.interface
        environment = {
            "PATH": SYSTEM_PATH,
            "VB_LOOP": self._loop.name,
            "VB_DISK": settings.disk,
            "VB_WORK": str(self._work),
            "VB_ADDRESS": settings.address,
            "VB_MOUNT_DELAY": str(settings.mount_delay),
            "VB_PREFIX": str(interface.network.prefixlen),
            # the real one makes up a new address at each boot
            "VB_MAC": "00:e0:4c:" + ":".join(f"{byte:02x}" for byte in random.randbytes(3)),
        }
        spaces = ("--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child")
        return subprocess.Popen(
            [
                *(str(path_of("setpriv")), "--pdeathsig", "KILL"),
                *self._cable.enter_command(),
                *(str(path_of("unshare")), *spaces, "--propagation", "private"),
                *("/bin/sh", "-c", _FIRST_PROCESS, "inside.sh"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd="/",
        )

    # -- life ----------------------------------------------------------------------------------

    def boot(self) -> None:
        """Wait until the start-up scripts are through.

        Raises:
            VirtualBoardError: it did not come up.
        """
        assert self._process.stdin and self._process.stdout
        if self._process.stdout.readline() != b"ready\n":
            raise self._boot_error("its first process failed")
        self.init = _child_of(self._process.pid)
        self._vfat = VfatMounter(self.init, self._work / "root")
        self._process.stdin.write(b"\n")
        self._process.stdin.close()
        deadline = time.monotonic() + _BOOT_PATIENCE_SECONDS
        up = self.root / "run/.board/up"
        while not (up.exists() and self._ssh_answers()):
            if self._process.poll() is not None:
                raise self._boot_error("its first process ended")
            if time.monotonic() > deadline:
                raise self._boot_error(f"not up within {_BOOT_PATIENCE_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)
        threading.Thread(target=self._keep_partitions, daemon=True).start()

    def _boot_error(self, reason: str) -> VirtualBoardError:
        return VirtualBoardError(f"Linux did not boot: {reason}")

    def wait(self, timeout: float) -> str | None:
        """How it ended (``restart``, ``off``, ``died``), or None when it still runs."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return {_RESTARTED: "restart", _POWERED_OFF: "off"}.get(code, "died")

    def end(self, *, silent: bool = False) -> None:
        """Take the power away and wait until the card is free again.

        Args:
            silent: nobody out there is told that connections end, as in a reset.
        """
        self._over.set()
        if silent:
            self._cable.down()
        if self._vfat:
            self._vfat.stop()
        if self.init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init, signal.SIGKILL)
            # its parent ends when all processes of the board have gone, connections with them
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_PATIENCE_SECONDS)
        self._process.kill()
        self._process.wait()
        # the carrier goes in any case, and so the host forgets the address of this life
        self._cable.down()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._loop.release()

    def _ssh_answers(self) -> bool:
        try:
            with socket.create_connection((self._settings.address, 22), timeout=1.0):
                return True
        except OSError:
            return False

    # -- what others need of it ----------------------------------------------------------------

    @property
    def root(self) -> Path:
        """The board's root file system, seen from here."""
        return Path(f"/proc/{self.init}/root")

    @property
    def sharefs(self) -> Path:
        return self.root / "sharefs"

    def processes(self, name: str) -> Iterator[int]:
        """Pids (as the board counts) of the processes called ``name``."""
        for entry in (self.root / "proc").glob("[0-9]*"):
            try:
                # PID (NAME) STATE ...: the dead that nobody has collected do not count
                head, _, rest = (entry / "stat").read_text().rpartition(")")
                if head.partition("(")[2] == name and rest.split()[0] not in ("Z", "X"):
                    yield int(entry.name)
            except OSError:
                continue  # it ended meanwhile

    def sharefs_server_runs(self) -> bool:
        return any(True for _ in self.processes("sharefs"))

    def enter_command(self, *command: str) -> list[str]:
        """The host command that runs ``command`` inside the board."""
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wdns=/")
        return [
            *(str(path_of("nsenter")), f"--target={self.init}", *spaces, "--"),
            *("/usr/bin/env", "-i", *_BOARD_ENVIRONMENT, *command),
        ]

    def run(self, script: str) -> str:
        """Run shell text on the board, as a user at its console would.

        Raises:
            VirtualBoardError: it ended with a status other than 0.
        """
        done = subprocess.run(
            self.enter_command("/bin/sh", "-c", script),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            raise VirtualBoardError(
                f"`{script}` ended with status {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def launch(self, command: Sequence[str], *, cwd: str, output: int) -> subprocess.Popen[bytes]:
        """Start an RT-Smart program: this machine's files, the board's /sharefs and processes."""
        where = cwd if cwd == "/sharefs" or cwd.startswith("/sharefs/") else "/"
        full = [
            *(str(path_of("nsenter")), f"--mount=/proc/{self.init}/ns/mnt"),
            *(str(path_of("chroot")), str(self._work / "big")),
            *("/usr/bin/env", "-i", f"--chdir={where}", f"PATH={SYSTEM_PATH}", "HOME=/root"),
            *command,
        ]
        return _in_thread(lambda: self._start_in_pid_namespace(full, output))

    def _start_in_pid_namespace(self, command: list[str], output: int) -> subprocess.Popen[bytes]:
        space = os.open(f"/proc/{self.init}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            # concerns the children of the calling thread only
            if ctypes.CDLL(None, use_errno=True).setns(space, _CLONE_NEWPID) != 0:
                raise OSError(ctypes.get_errno(), "cannot enter the board")
        finally:
            os.close(space)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )

    # -- /proc/partitions ----------------------------------------------------------------------

    def _keep_partitions(self) -> None:
        """Keep /proc/partitions true: the kernel's names this machine's disks."""
        target = self.root / "run/.board/partitions"
        shown = ""
        while not self._over.wait(_PARTITIONS_POLL_SECONDS):
            text = partitions_text(self._loop.name, self._settings.disk)
            if text == shown:
                continue
            try:
                # in place: the board sees this very file
                with target.open("r+") as file:
                    file.write(text)
                    file.truncate()
            except OSError:
                return  # the board is going down
            shown = text


def partitions_text(loop: str, disk: str) -> str:
    """The content of /proc/partitions for a disk that is really ``loop``."""
    lines = ["major minor  #blocks  name\n", "\n"]
    folder = Path("/sys/block") / loop
    parts = sorted(folder.glob(f"{loop}p[0-9]*"))
    for entry in (folder, *parts):
        with contextlib.suppress(OSError):
            major, minor = (entry / "dev").read_text().split(":")
            blocks = int((entry / "size").read_text()) // 2
            name = entry.name.replace(loop, disk, 1)
            lines.append(f"{int(major):4d} {int(minor):8d} {blocks:10d} {name}\n")
    return "".join(lines)


def _child_of(parent: int) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            return int(entry.name)
    raise VirtualBoardError("the first process of the board has gone")


def _in_thread(
    action: Callable[[], subprocess.Popen[bytes]],
) -> subprocess.Popen[bytes]:
    # a thread that has entered another pid namespace cannot start threads any more
    results: list[subprocess.Popen[bytes] | OSError] = []

    def run() -> None:
        try:
            results.append(action())
        except OSError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result = results[0]
    if isinstance(result, OSError):
        raise result
    return result
