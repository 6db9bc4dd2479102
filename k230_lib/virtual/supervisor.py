"""The root process of a light board: both cores, the console, the faults. Ends, and all is gone.

Run as ``python -m k230_lib.virtual.supervisor FOLDER OWNER``: FOLDER holds ``settings.json`` and
``card.img``, OWNER is the process with which the board ends, or 0. One JSON line on standard output
says whether the board came up.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ..errors import K230Error, VirtualBoardError
from .board import BoardSettings
from .cable import Cable
from .control import ControlServer
from .linux_console import LinuxConsole
from .linux_side import LinuxSide
from .msh import Msh, RtSettings
from .network_faults import NetworkFaults
from .ports import Exclusive, NetworkPort, PtyPort
from .rt_files import RtFiles
from .uart import ConsoleFaults, Uart

_TICK_SECONDS = 0.05
_RESET_PATIENCE_SECONDS = 10.0
_FILLER = "filler.bin"


class Supervisor:
    """Both halves of one board, over all its resets."""

    def __init__(self, folder: Path, settings: BoardSettings, owner: int) -> None:
        self._folder = folder
        self._settings = settings
        self._owner = owner
        self._state = "booting"
        self._boots = 0
        self._reset_wanted = threading.Event()
        self._power_wanted = threading.Event()
        self._end_wanted = threading.Event()
        self._linux: LinuxSide | None = None
        self._msh: Msh | None = None
        self._linux_console: LinuxConsole | None = None
        self._network: NetworkFaults | None = None
        handlers = {
            name.removeprefix("_do_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("_do_")
        }
        self._control = ControlServer(settings.number, handlers)
        self._uart = Uart(settings.baud, seed=settings.number)
        place = Exclusive()
        for port, rfc2217 in ((settings.console_port, False), (settings.rfc2217_port, True)):
            try:
                NetworkPort(self._uart, port, place, rfc2217=rfc2217)
            except OSError as error:
                raise VirtualBoardError(
                    f"console port {port}: {error.strerror}",
                    hint="end the program that has it, or give the board another number.",
                ) from None
        PtyPort(self._uart, folder / "console")
        self._programs = folder / "programs"

    def run(self) -> None:
        """Live until told to end; must be the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._end_wanted.set())
        self._control.start()
        self._cable = Cable(self._settings)
        with (self._folder / "board.log").open("ab") as log:
            first = True
            while not self._must_end():
                how = self._one_life(log, first)
                first = False
                if how == "off":
                    self._wait_for_power()
        self._cable.unplug()

    def _one_life(self, log: Any, first: bool) -> str:
        shutil.rmtree(self._programs, ignore_errors=True)
        self._programs.mkdir()
        work = self._folder / "mnt"
        work.mkdir(exist_ok=True)
        image = self._folder / "card.img"
        linux = LinuxSide(self._settings, self._cable, image, work, log)
        how = "failed"
        try:
            self._state = "booting"
            linux.boot()
            self._linux = linux
            self._network = NetworkFaults(self._settings, linux)
            self._start_msh(linux)
            self._boots += 1
            self._state = "running"
            if first:
                report({"up": True})
            how = self._watch(linux)
        finally:
            self._state = "off"
            self._stop_console()
            linux.end(silent=how == "reset")
            self._linux = self._network = None
        return how

    def _start_msh(self, linux: LinuxSide) -> None:
        files = RtFiles(lambda: linux.sharefs, linux.sharefs_server_runs)
        self._msh = Msh(
            self._uart,
            files,
            linux,
            self._reset_wanted.set,
            RtSettings(
                boot_demo=self._settings.boot_demo,
                speed=self._settings.speed,
                memory_limit=self._settings.memory_limit,
                scratch=self._programs,
            ),
        )
        self._msh.start()

    def _stop_console(self) -> None:
        for software in (self._msh, self._linux_console):
            if software:
                software.reset()
        self._msh = self._linux_console = None

    def _watch(self, linux: LinuxSide) -> str:
        while True:
            how = linux.wait(_TICK_SECONDS)
            if how is not None:
                return how
            if self._reset_wanted.is_set():
                self._reset_wanted.clear()
                return "reset"
            if self._must_end():
                return "end"

    def _must_end(self) -> bool:
        ownerless = bool(self._owner) and not Path(f"/proc/{self._owner}").exists()
        return ownerless or self._end_wanted.is_set()

    def _wait_for_power(self) -> None:
        while not self._must_end():
            if self._power_wanted.wait(_TICK_SECONDS):
                self._power_wanted.clear()
                return

    # -- requests ------------------------------------------------------------------------------

    def _board(self) -> LinuxSide:
        if self._linux is None:
            raise VirtualBoardError("the board is just booting or off")
        return self._linux

    def _faults(self) -> NetworkFaults:
        if self._network is None:
            raise VirtualBoardError("the board is just booting or off")
        return self._network

    def _do_status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "folder": str(self._folder),
            "state": self._state,
            "boots": self._boots,
            "settings": json.loads(self._settings.to_json()),
        }

    def _do_power(self) -> None:
        self._power_wanted.set()

    def _do_reset(self) -> None:
        before = self._board()
        self._state = "booting"
        self._reset_wanted.set()
        deadline = time.monotonic() + _RESET_PATIENCE_SECONDS
        while self._linux is before and time.monotonic() < deadline:
            time.sleep(_TICK_SECONDS / 10)

    def _do_stop(self) -> None:
        self._end_wanted.set()

    def _do_console(self, **values: float) -> None:
        for name, value in values.items():
            setattr(self._uart.faults, name, value)

    def _do_inject(self, text: str) -> None:
        self._uart.inject(text.encode("utf-8", "surrogateescape"))

    def _do_wrong_console(self, on: bool) -> None:
        linux = self._board()
        self._stop_console()
        if on:
            self._linux_console = LinuxConsole(self._uart, linux.run)
            self._linux_console.start()
        else:
            self._start_msh(linux)

    def _do_ssh_cut(self, after_bytes: int) -> None:
        self._faults().cut(after_bytes)

    def _do_ssh_stall(self, seconds: float, after_bytes: int) -> None:
        self._faults().stall(seconds, after_bytes)

    def _do_ssh_slow(self, bytes_per_second: int) -> None:
        self._faults().slow(bytes_per_second)

    def _do_ssh_refuse(self, seconds: float) -> None:
        self._faults().refuse(seconds)

    def _do_fill_card(self, leave_bytes: int) -> None:
        folder = self._board().sharefs
        stat = os.statvfs(folder)
        size = stat.f_bavail * stat.f_frsize - leave_bytes
        if size > 0:
            with (folder / _FILLER).open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)

    def _do_read_only(self, on: bool) -> None:
        self._board().run(f"mount -o remount,{'ro' if on else 'rw'} /sharefs")

    def _do_stop_sharefs(self) -> None:
        self._board().run("killall -9 sharefs")

    def _do_kill_program(self, number: int) -> None:
        if self._msh:
            self._msh.kill_programs(signal.Signals(number))

    def _do_clear(self) -> None:
        self._uart.faults = ConsoleFaults()
        if self._network:
            self._network.clear()


def report(answer: dict[str, Any]) -> None:
    """Tell the process that started this one, which then goes its own way."""
    print(json.dumps(answer), flush=True)
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


def _fail(message: str, hint: str | None) -> int:
    with contextlib.suppress(OSError):
        report({"error": message, "hint": hint})
    print(message, file=sys.stderr)
    return 1


def main() -> int:
    folder, owner = Path(sys.argv[1]), int(sys.argv[2])
    settings = BoardSettings.from_json((folder / "settings.json").read_text())
    try:
        Supervisor(folder, settings, owner).run()
    except K230Error as error:
        return _fail(error.message, error.hint)
    except OSError as error:
        return _fail(str(error), None)
    return 0


if __name__ == "__main__":
    # threads that wait for a dead file system must not keep the process
    code = main()
    sys.stderr.flush()
    os._exit(code)
