"""The wire of a serial console: open it alone, read, write, and keep a log of every byte.

``pyserial`` opens the URL (``/dev/serial/by-id/...``, ``socket://``, ``rfc2217://``). Its timeout
is set once: each change re-configures the port, over RFC 2217 with a whole negotiation.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import select
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import serial

from ..errors import ConsoleBusyError, ConsoleError, EnvironmentProblemError

_READ_SIZE = 65536
_RFC2217_POLL = 0.02
_LOG_LINE_LIMIT = 4096
# A process that is killed loses no more of the log than this.
_LOG_FLUSH_SECONDS = 0.5


@dataclass(frozen=True)
class Holder:
    """Who holds a console: process, command line, board and when it began (UTC)."""

    pid: int
    command: str
    board: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}) for board {self.board} since {self.since}"


class ConsoleLog:
    """Appends everything that passes a console to a file, one time-stamped line per line.

    ``<`` marks what came, ``>`` what was typed, ``#`` our own remarks. Bytes that are not
    printable ASCII are written as ``\\xNN``.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None
        self._pending = bytearray()
        self._flushed = 0.0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="ascii", buffering=1 << 16)

    def received(self, data: bytes) -> None:
        """Log bytes that came from the board."""
        if self._file is None:
            return
        self._pending += data
        *complete, rest = self._pending.split(b"\n")
        for line in complete:
            self._write("<", line.rstrip(b"\r"))
        self._pending = bytearray(rest)
        if len(rest) > _LOG_LINE_LIMIT:
            self._end_line()

    def sent(self, data: bytes) -> None:
        """Log bytes that were typed."""
        self._end_line()
        self._write(">", data)

    def note(self, text: str) -> None:
        """Log a remark."""
        self._end_line()
        self._write("#", text.encode())
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write what is pending and close the file."""
        self._end_line()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_line(self) -> None:
        if self._pending:
            self._write("<", self._pending)
            self._pending = bytearray()

    def _write(self, mark: str, line: bytes | bytearray) -> None:
        if self._file is not None:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
            text = line.decode("ascii", "backslashreplace")
            shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
            self._file.write(f"{now}Z {mark} {shown}\n")
            if time.monotonic() - self._flushed > _LOG_FLUSH_SECONDS:
                self._file.flush()
                self._flushed = time.monotonic()


class ConsoleLock:
    """The right to use a console, held by one process on this machine at a time.

    It is a lock on a file that names its holder; it ends with the process, however that ends.

    Raises:
        ConsoleBusyError: another process holds it.
    """

    def __init__(self, url: str, board: str) -> None:
        folder = Path(tempfile.gettempdir()) / "k230-console-locks"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o1777)
        name = hashlib.sha256(canonical_url(url).encode()).hexdigest()[:16]
        self._path = folder / f"{name}.lock"
        self._file = self._locked(url, board)
        command = " ".join(sys.argv)[:120] or "python"
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._file.seek(0)
        self._file.truncate()
        json.dump(asdict(Holder(os.getpid(), command, board, since)), self._file)
        self._file.flush()

    def _locked(self, url: str, board: str) -> IO[str]:
        while True:
            file = _open_shared(self._path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = _read_holder(file)
                file.close()
                raise ConsoleBusyError(
                    f"console {url} is in use by {holder or 'another process'}",
                    board=board,
                    hint="wait for it to end, or stop it.",
                ) from None
            # The file may have been removed by its holder between our opening and locking it.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(self._path.stat(), os.fstat(file.fileno())):
                    return file
            file.close()

    def release(self) -> None:
        """Give the console back."""
        if not self._file.closed:
            with contextlib.suppress(OSError):
                # Another user's file in the shared folder can be emptied, not removed.
                self._file.truncate(0)
                self._path.unlink()
            self._file.close()


class ConsoleWire:
    """An open serial console: bytes in, bytes out, everything logged.

    Args:
        url: a device path or a pyserial URL.
        board: inventory name of the board, for messages.
        log_path: file of the raw log; none means no log.

    Raises:
        ConsoleBusyError: the port is held by somebody else.
        ConsoleError: there is no such port, or it cannot be opened.
    """

    def __init__(
        self, url: str, board: str, *, log_path: Path | None = None, baudrate: int = 115200
    ) -> None:
        self.url, self.board = url, board
        self._lock = ConsoleLock(url, board)
        try:
            self._check_other_programs()
            self._port = self._open(baudrate)
            self.log = ConsoleLog(log_path)
        except BaseException:
            self._lock.release()
            raise
        self._pollable = not url.startswith("rfc2217:")
        self._ever_read = False
        self._opened = time.monotonic()
        self.log.note(f"console {url} of {board} opened by process {os.getpid()}")

    def _check_other_programs(self) -> None:
        if "://" in self.url:
            return
        device = Path(self.url)
        if not device.exists():
            raise ConsoleError(
                f"console {self.url} does not exist",
                board=self.board,
                hint="check the cable and the name under /dev/serial/by-id.",
            )
        other = _uucp_holder(device.resolve().name)
        if other is not None:
            raise ConsoleBusyError(
                f"console {self.url} is in use by {other}",
                board=self.board,
                hint="close that program.",
            )

    def _open(self, baudrate: int) -> Any:
        options: dict[str, Any] = {"baudrate": baudrate, "timeout": 0}
        if self.url.startswith("rfc2217:"):
            options["timeout"] = _RFC2217_POLL
        elif "://" not in self.url:
            options["exclusive"] = True
        try:
            return serial.serial_for_url(self.url, **options)
        except (serial.SerialException, ValueError) as error:
            reason = str(error)
            if re.search(r"exclusively lock|busy", reason, re.IGNORECASE):
                who = _device_users(self.url) or "another program"
                raise ConsoleBusyError(
                    f"console {self.url} is in use by {who}",
                    board=self.board,
                    hint="close that program.",
                ) from error
            if re.search(r"refused", reason, re.IGNORECASE):
                raise ConsoleBusyError(
                    f"the console server at {self.url} refuses the connection: it is not running, "
                    "or it serves another client",
                    board=self.board,
                    hint="start the server, or close the other client.",
                ) from error
            if re.search(r"permission", reason, re.IGNORECASE):
                raise EnvironmentProblemError(
                    f"no permission to open console {self.url}",
                    board=self.board,
                    hint="add your user to the group dialout.",
                ) from error
            raise ConsoleError(
                f"console {self.url} cannot be opened: {reason}",
                board=self.board,
                hint="check the URL and the cable.",
            ) from error

    def read(self, wait: float) -> bytes:
        """Return what has come, waiting at most ``wait`` seconds for the first byte."""
        try:
            if self._pollable:
                if not select.select([self._port.fileno()], [], [], max(0.0, wait))[0]:
                    return b""
                data = bytes(self._port.read(_READ_SIZE))
            else:
                data = self._read_rfc2217(wait)
        except (serial.SerialException, OSError, ValueError) as error:
            raise self._broken(error) from error
        if data:
            self._ever_read = True
            self.log.received(data)
        return data

    def _read_rfc2217(self, wait: float) -> bytes:
        end = time.monotonic() + wait
        while True:
            data = bytes(self._port.read(max(1, self._port.in_waiting)))
            if data or time.monotonic() >= end:
                return data + bytes(self._port.read(n) if (n := self._port.in_waiting) else b"")

    def write(self, data: bytes) -> None:
        """Type ``data``."""
        self.log.sent(data)
        try:
            self._port.write(data)
        except (serial.SerialException, OSError) as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> ConsoleError:
        self.log.note(f"the connection broke: {error}")
        if "://" in self.url and not self._ever_read and time.monotonic() - self._opened < 2:
            return ConsoleBusyError(
                f"the console server at {self.url} closed the connection at once: it serves "
                "another client",
                board=self.board,
                hint="close the other client.",
            )
        return ConsoleError(
            f"the connection to console {self.url} broke: {error}",
            board=self.board,
            hint="check the cable or the console server, then run again.",
        )

    def close(self) -> None:
        """Close the port, end the log and give the lock back."""
        with contextlib.suppress(serial.SerialException, OSError):
            self._port.close()
        self.log.note("console closed")
        self.log.close()
        self._lock.release()


def canonical_url(url: str) -> str:
    """One name for all spellings of the same console: links followed, URL options dropped."""
    if "://" in url:
        address = url.split("://", 1)[1].split("?", 1)[0].rstrip("/")
        return address.replace("localhost", "127.0.0.1")
    return str(Path(url).resolve())


def _open_shared(path: Path) -> IO[str]:
    mask = os.umask(0)
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+")
    except OSError as error:
        raise EnvironmentProblemError(f"cannot open the lock file {path}: {error}") from error
    finally:
        os.umask(mask)


def _read_holder(file: IO[str]) -> Holder | None:
    # The holder writes its name just after it has locked.
    for _ in range(20):
        file.seek(0)
        with contextlib.suppress(ValueError, TypeError):
            return Holder(**json.loads(file.read()))
        time.sleep(0.01)
    return None


def _uucp_holder(name: str) -> str | None:
    """The live program (minicom, cu) that marked the device as its own, if any."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(Path(f"/var/lock/LCK..{name}").read_text(encoding="ascii").split()[0])
        if pid != os.getpid() and Path(f"/proc/{pid}").exists():
            return _describe(pid)
    return None


def _device_users(url: str) -> str:
    """The programs that have the device open, as far as this user may see."""
    target = str(Path(url).resolve())
    users = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            pid = int(link.parts[2])
            if str(link.readlink()) == target and pid != os.getpid():
                users.add(pid)
    return ", ".join(_describe(pid) for pid in sorted(users))


def _describe(pid: int) -> str:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        return f"process {pid} ({command[:120]})"
    return f"process {pid}"
