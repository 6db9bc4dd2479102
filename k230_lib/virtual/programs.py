"""Programs of the RT-Smart core, run by this machine: natively, or by qemu-riscv64.

A program is copied before it runs, because the real loader reads the whole file first and needs no
execute permission: replacing it while it runs is safe there, and so it is here.
"""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import tty
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from .msh_text import crash_report
from .tools import path_of

# Pages that are left for user programs on the real board (`list_page`: 0x4e95 pages of 4 KiB).
USER_MEMORY_BYTES = 0x4E95 * 4096
# Writable data of the host's shared libraries and stacks, which the static program has not.
_DATA_SLACK_BYTES = 32 << 20
# What qemu-user itself needs beside the program.
_QEMU_BYTES = 96 << 20
_QEMU_FLAGS = ("-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0")
_ELF_MAGIC = b"\x7fELF"
_MACHINES = {62: "native", 183: "native", 243: "riscv"}
_POLL_SECONDS = 0.1
_MEMORY_POLL_SECONDS = 0.02
_PACE_SECONDS = 0.02


class NotAProgramError(Exception):
    """The file is not an ELF program that can run; the text is what the kernel prints."""


class Launcher(Protocol):
    """Starts a prepared command where the board's files are."""

    def launch(self, command: Sequence[str], *, cwd: str, output: int) -> subprocess.Popen[bytes]:
        """Start ``command`` in the RT-Smart folder ``cwd``, both streams to ``output``."""
        ...


class PlainLauncher:
    """Runs programs on this machine as they are, for tests without a board."""

    def launch(self, command: Sequence[str], *, cwd: str, output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=cwd if Path(cwd).is_dir() else "/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def elf_machine(head: bytes) -> str:
    """``native`` or ``riscv`` for the first 20 bytes of a file.

    Raises:
        NotAProgramError: with the kernel's words.
    """
    if head[:4] != _ELF_MAGIC:
        raise NotAProgramError("elf_magic not same\n")
    kind = _MACHINES.get(int.from_bytes(head[18:20], "little"))
    if kind is None:
        raise NotAProgramError("elf entry is invalidate, entry:0x0!\n")
    return kind


def qemu_command() -> list[str]:
    """How to run a riscv64 program here.

    Raises:
        NotAProgramError: qemu-user is not installed.
    """
    for name in ("qemu-riscv64-static", "qemu-riscv64"):
        if found := shutil.which(name):
            return [found, *_QEMU_FLAGS]
    raise NotAProgramError("[E/LWP] riscv64 program, and no qemu-riscv64 on the controller\n")


class Program:
    """One running program, its output, its memory watch and its pace.

    Args:
        path: file of this machine that holds the program.
        arguments: argv as msh passes it, name first.
        cwd: RT-Smart folder it starts in.
        launcher: who starts it.
        write: takes its output, newlines already ``CR LF``.
        scratch: folder for the copy that runs.
        speed: 1.0 as fast as this machine, 0.5 half as fast.
        memory_limit: bytes of data it may touch.

    Raises:
        NotAProgramError: it cannot be started.
    """

    def __init__(
        self,
        path: Path,
        arguments: list[str],
        *,
        cwd: str,
        launcher: Launcher,
        write: Callable[[bytes], None],
        scratch: Path | None = None,
        speed: float = 1.0,
        memory_limit: int = USER_MEMORY_BYTES,
    ) -> None:
        self.name = arguments[0]
        self._write = write
        self._limit = memory_limit
        self._speed = speed
        self._exhausted = False
        self._folder = Path(tempfile.mkdtemp(prefix="program-", dir=scratch))
        try:
            command = self._prepare(path, arguments)
            master, slave = pty.openpty()
            tty.setraw(slave)
            try:
                self._process = launcher.launch(command, cwd=cwd, output=slave)
            except OSError as error:
                os.close(master)
                raise NotAProgramError(f"[E/LWP] {error.strerror}\n") from error
            finally:
                os.close(slave)
        except (OSError, NotAProgramError):
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.pid = self._process.pid
        self._pump = threading.Thread(target=self._copy_output, args=(master,), daemon=True)
        self._pump.start()
        threading.Thread(target=self._watch_memory, daemon=True).start()
        if speed < 1.0:
            threading.Thread(target=self._hold_back, daemon=True).start()

    def _prepare(self, path: Path, arguments: list[str]) -> list[str]:
        with path.open("rb") as file:
            machine = elf_machine(file.read(20))
        copy = self._folder / path.name
        shutil.copyfile(path, copy)
        copy.chmod(0o755)
        if machine == "riscv":
            self._limit += _QEMU_BYTES
            return [*qemu_command(), str(copy), *arguments[1:]]
        limit = f"--data={self._limit + _DATA_SLACK_BYTES}"
        return [str(path_of("prlimit")), limit, "--core=0", str(copy), *arguments[1:]]

    # -- life ----------------------------------------------------------------------------------

    def running(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.signal(signal.SIGINT)

    def signal(self, number: signal.Signals) -> None:
        if self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
                if number != signal.SIGSTOP:
                    # a program that is being held back must wake up to die
                    os.kill(self.pid, signal.SIGCONT)

    def wait(self, alive: Callable[[], bool]) -> None:
        """Wait as msh does, looking every 100 ms; print why it died, if it did."""
        while self.running() and alive():
            time.sleep(_POLL_SECONDS)
        if self.running():
            self.signal(signal.SIGKILL)
            self._process.wait()
        self._pump.join(5.0)
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._exhausted:
            self._print("Memory exhaustion!\n")
        if self._process.returncode < 0:
            self._print(crash_report(self.name, -self._process.returncode))

    def _print(self, text: str) -> None:
        self._write(text.replace("\n", "\r\n").encode())

    def _copy_output(self, master: int) -> None:
        with os.fdopen(master, "rb", buffering=0) as stream:
            while True:
                try:
                    data = stream.read(4096)
                except OSError:
                    return  # the last writer closed its end
                if not data:
                    return
                self._write(data.replace(b"\n", b"\r\n"))

    def _watch_memory(self) -> None:
        while self.running():
            if _anonymous_bytes(self.pid) > self._limit:
                self._exhausted = True
                self.signal(signal.SIGKILL)
                return
            time.sleep(_MEMORY_POLL_SECONDS)

    def _hold_back(self) -> None:
        """Let the program run for only a part of the time, so that all it measures is slower."""
        while self.running():
            with contextlib.suppress(ProcessLookupError):
                time.sleep(_PACE_SECONDS * self._speed)
                if self.running():
                    os.kill(self.pid, signal.SIGSTOP)
                    time.sleep(_PACE_SECONDS * (1 - self._speed))
                    os.kill(self.pid, signal.SIGCONT)


def _anonymous_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0
