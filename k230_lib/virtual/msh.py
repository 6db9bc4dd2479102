"""RT-Smart's msh: prompt, editing, built-in commands, programs, and the boot demo."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import msh_text
from .programs import USER_MEMORY_BYTES, Launcher, NotAProgramError, Program
from .rt_files import RtFiles, ServerMissing, on_sharefs
from .uart import CTRL_C, CoreReset, Uart

_DEMO = "fastboot_app"
_DEMO_TEXT = "case /bin/fastboot_app.elf build \r\npress 'q' to exit application!!\r\n"
_TAB, _ESC = 0x09, 0x1B
_IGNORED = (0x00, 0xFF, _TAB, CTRL_C)
_INTERRUPTED = chr(CTRL_C)
_ERASE = (0x7F, 0x08)
_PAGE = 4096


@dataclass(frozen=True)
class RtSettings:
    """What differs between boards on the RT-Smart side.

    Attributes:
        boot_demo: the face demo holds the console after boot until ``q`` is typed.
        speed: of programs, 1.0 is this machine's.
        memory_limit: bytes for user programs.
        boot_seconds: from reset to the first prompt.
        scratch: folder of this machine for copies of running programs.
    """

    boot_demo: bool = True
    speed: float = 1.0
    memory_limit: int = USER_MEMORY_BYTES
    boot_seconds: float = 0.1
    scratch: Path | None = None


class Msh:
    """The software of the RT-Smart core from one reset to the next.

    Args:
        uart: its console.
        files: what it sees of the board's files.
        launcher: starts its programs.
        reboot: called when ``reboot`` is typed; must not wait for this object.
    """

    def __init__(
        self,
        uart: Uart,
        files: RtFiles,
        launcher: Launcher,
        reboot: Callable[[], None],
        settings: RtSettings | None = None,
    ) -> None:
        self._uart = uart
        self._files = files
        self._launcher = launcher
        self._reboot = reboot
        self._settings = settings or RtSettings()
        self._stopped = threading.Event()
        self._cwd = "/"
        self._programs: dict[int, Program] = {}
        self._pids = itertools.count(5)
        self._commands = {name: getattr(self, f"_do_{name}") for name in msh_text.BUILTINS}

    def start(self) -> None:
        """Boot: the prompt appears, then the demo takes the console."""
        threading.Thread(target=self._main, name="msh", daemon=True).start()

    def reset(self) -> None:
        """End everything at once, as the SoC's reset does."""
        self._stopped.set()
        for program in list(self._programs.values()):
            program.signal(signal.SIGKILL)
        self._uart.reset()

    def kill_programs(self, number: signal.Signals) -> None:
        """Send a signal to every running program, as a fault of their own would."""
        for program in list(self._programs.values()):
            program.signal(number)

    def _alive(self) -> bool:
        return not self._stopped.is_set()

    def _main(self) -> None:
        try:
            if self._stopped.wait(self._settings.boot_seconds):
                return
            self._prompt()
            if self._settings.boot_demo:
                self._run_demo()
                self._prompt()
            while True:
                self._obey(self._read_line())
                self._prompt()
        except CoreReset:
            return

    # -- the console ---------------------------------------------------------------------------

    def _print(self, text: str) -> None:
        self._write(text.replace("\n", "\r\n").encode("utf-8", "surrogateescape"))

    def _write(self, data: bytes) -> None:
        if self._alive():
            self._uart.write(data)

    def _echo(self, data: bytes) -> None:
        if self._alive():
            self._uart.echo(data)

    def _prompt(self) -> None:
        self._print(f"msh {self._cwd}>")

    def _read_line(self, *, canonical: bool = False) -> str:
        """One line with echo; in canonical mode (a program reads) only CR ends it."""
        line = bytearray()
        escape = 0
        while True:
            byte = self._uart.read_byte(self._alive)
            if escape:
                # ESC [ X: cursor keys, which move nothing here
                escape = 2 if escape == 1 and byte == ord("[") else 0
            elif byte == _ESC:
                escape = 1
            elif byte == CTRL_C and canonical:
                return _INTERRUPTED
            elif byte in _IGNORED:
                continue
            elif byte in _ERASE:
                if line:
                    line.pop()
                    self._echo(b"\b \b")
            elif byte == 0x0D or (byte == 0x0A and not canonical):
                self._uart.busy()
                self._write(b"\r\n")
                return line.decode("utf-8", "surrogateescape")
            else:
                line.append(byte)
                self._echo(bytes([byte]))
                if len(line) >= msh_text.MAX_LINE:
                    line.clear()

    def _run_demo(self) -> None:
        self._write(_DEMO_TEXT.encode())
        while self._read_line(canonical=True).strip() not in ("q", _INTERRUPTED):
            continue

    def _wait_for_ever(self) -> None:
        self._uart.busy()
        self._stopped.wait()
        raise CoreReset

    # -- commands ------------------------------------------------------------------------------

    def _obey(self, line: str) -> None:
        words = msh_text.split_line(line)
        if not words:
            return
        if len(words) > msh_text.MAX_ARGUMENTS:
            words = words[: msh_text.MAX_ARGUMENTS]
            self._print(f"Too many args ! We only Use:\n{' '.join(words)} \n")
        try:
            command = self._commands.get(words[0])
            if command is not None:
                command(words[1:])
            elif ".sh" in words[0]:
                self._run_script(words[0])
            else:
                self._run_program(words)
        except ServerMissing:
            self._wait_for_ever()
        except OSError as error:
            self._print(f"{words[0]}: {error.strerror}\n")

    def _run_script(self, name: str) -> None:
        for path in msh_text.program_candidates(self._cwd, name)[:1]:
            if not self._files.is_file(path):
                self._print(msh_text.not_found(name))
                return
            for line in self._files.read(path).decode("utf-8", "surrogateescape").splitlines():
                text = line.strip()
                if text and not text.startswith("#"):
                    self._obey(text[:255])

    def _find_program(self, name: str) -> str | None:
        for path in msh_text.program_candidates(self._cwd, name):
            if self._files.is_file(path):
                return path
            if on_sharefs(path):
                self._print(msh_text.open_failed(path))
        return None

    def _run_program(self, words: list[str]) -> None:
        name = words[0]
        path = self._find_program(name)
        if path in ("/bin/fastboot_app.elf",):
            self._run_demo()
            return
        if path is None or not on_sharefs(path) or not msh_text.arguments_fit(words):
            self._print(msh_text.not_found(name))
            return
        try:
            program = Program(
                self._files.host_path(path),
                words,
                cwd=self._cwd,
                launcher=self._launcher,
                write=self._write,
                scratch=self._settings.scratch,
                speed=self._settings.speed,
                memory_limit=self._settings.memory_limit,
            )
        except NotAProgramError as error:
            self._print(f"{error}{msh_text.not_found(name)}")
            return
        number = next(self._pids)
        self._programs[number] = program
        if words[-1] == "&":
            threading.Thread(target=self._attend, args=(number, program), daemon=True).start()
            return
        self._uart.busy(program.interrupt)
        self._attend(number, program)
        self._uart.busy()
        if not self._alive():
            raise CoreReset

    def _attend(self, number: int, program: Program) -> None:
        program.wait(self._alive)
        del self._programs[number]

    def _do_help(self, _: list[str]) -> None:
        self._print(msh_text.help_text())

    def _do_pwd(self, _: list[str]) -> None:
        self._print(f"{self._cwd}\n")

    def _do_cd(self, words: list[str]) -> None:
        if not words:
            self._print(f"{self._cwd}\n")
            return
        target = msh_text.absolute(self._cwd, words[0])
        if self._files.is_dir(target):
            self._cwd = target
        else:
            self._print(f"No such directory: {words[0].lstrip('/') or words[0]}\n")

    def _do_ls(self, words: list[str]) -> None:
        path = msh_text.absolute(self._cwd, words[0]) if words else self._cwd
        try:
            entries = self._files.list(path)
        except OSError:
            self._print("No such directory\n")
            return
        self._print(f"Directory {path}:\n")
        for entry in entries:
            size = "<DIR>" if entry.size is None else str(entry.size)
            self._print(f"{entry.name:<20}{size:<25}\n")

    def _do_cat(self, words: list[str]) -> None:
        if not words:
            self._print("Usage: cat [FILE]...\n")
        for word in words:
            path = msh_text.absolute(self._cwd, word)
            try:
                self._write(self._files.read(path).replace(b"\n", b"\r\n"))
            except OSError:
                if on_sharefs(path):
                    self._print(msh_text.open_failed(path))
                self._print(f"Open {word} failed\n")

    def _do_echo(self, words: list[str]) -> None:
        if not words:
            self._print("\n")
        elif len(words) == 1:
            self._print(f"{words[0]}\n")
        elif len(words) == 2:
            data = words[0].encode("utf-8", "surrogateescape")
            self._files.append(msh_text.absolute(self._cwd, words[1]), data)
        else:
            self._print('Usage: echo "string" [filename]\n')

    def _do_mkdir(self, words: list[str]) -> None:
        if not words:
            self._print("Usage: mkdir [OPTION] DIRECTORY\n")
            return
        self._files.make_dir(msh_text.absolute(self._cwd, words[-1]))

    def _do_rm(self, words: list[str]) -> None:
        names = [word for word in words if not word.startswith("-")]
        if not names:
            self._print("Usage: rm option(s) FILE...\n")
        for name in names:
            path = msh_text.absolute(self._cwd, name)
            if not self._files.is_dir(path):
                self._files.remove(path)
            elif "-r" in words or "-rf" in words:
                self._files.remove_tree(path)
            else:
                self._print(f"cannot remove '{name}'\n")

    def _do_cp(self, words: list[str]) -> None:
        self._two_paths(words, "cp", self._files.copy)

    def _do_mv(self, words: list[str]) -> None:
        self._two_paths(words, "mv", self._files.move)

    def _two_paths(self, words: list[str], name: str, action: Callable[[str, str], None]) -> None:
        if len(words) != 2:
            self._print(f"Usage: {name} SOURCE DEST\n")
            return
        source, target = (msh_text.absolute(self._cwd, word) for word in words)
        if self._files.is_dir(target):
            target = msh_text.absolute(target, Path(source).name)
        action(source, target)

    def _do_df(self, _: list[str]) -> None:
        free, block = self._files.free_space()
        self._print(
            f"disk free: {free / 1024:.1f} KB [ {free // block} block, {block} bytes per block ]\n"
        )

    def _do_free(self, _: list[str]) -> None:
        self._print(
            "total memory: 33554432\nused memory : 4194304\nmaximum allocated memory: 4259840\n"
        )

    def _do_list_page(self, _: list[str]) -> None:
        pages = self._settings.memory_limit // _PAGE
        self._print(f"free pages is 0x{pages:08x} ({pages * _PAGE / 1024:.0f}KB)\n")

    def _do_ps(self, _: list[str]) -> None:
        self._print("pid   thread           pri  status\n")
        self._print("0     tshell            20  running\n0     tidle             31  ready\n")
        for number, program in self._programs.items():
            self._print(f"{number:<6}{program.name[:16]:<17} 25  ready\n")

    _do_list_process = _do_ps
    _do_list_thread = _do_ps

    def _do_kill(self, words: list[str]) -> None:
        numbers = [int(word.lstrip("-")) for word in words if word.lstrip("-").isdigit()]
        if not numbers:
            self._print("Usage: kill [-s signo|-signo] pid\n")
        for number in numbers:
            if number in self._programs:
                self._programs[number].signal(signal.SIGKILL)

    def _do_killall(self, words: list[str]) -> None:
        for program in list(self._programs.values()):
            if Path(program.name).stem in {Path(word).stem for word in words}:
                program.signal(signal.SIGKILL)

    def _do_date(self, _: list[str]) -> None:
        # the core has no clock of its own battery: it starts in 1970
        self._print(time.strftime("%a %b %e %H:%M:%S 1970\n", time.gmtime(time.monotonic())))

    def _do_clear(self, _: list[str]) -> None:
        self._write(b"\x1b[2J\x1b[H")

    def _do_reboot(self, _: list[str]) -> None:
        self._reboot()
        self._wait_for_ever()
