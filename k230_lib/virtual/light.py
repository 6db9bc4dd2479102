"""Light virtual boards: namespaces, a loop device and the real tools; root only, up in a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..errors import InputError, VirtualBoardError
from . import card, control, tools
from .board import DEFAULT_STATE_ROOT, BoardSettings, BoardStatus
from .faults import Faults

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.02
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class LightBoard:
    """A :class:`~k230_lib.virtual.board.VirtualBoard` of the light kind.

    Args:
        name: inventory name.
        settings: of the board; a change of card size or SDK gives it a new card at its start.
        state_root: its folder is ``state_root/name``.
        cache: folder for card templates; by default ``cache`` beside ``state_root``.
        owner: process with which the board ends; by default it goes on until stopped.
    """

    def __init__(
        self,
        name: str,
        settings: BoardSettings,
        *,
        state_root: Path = DEFAULT_STATE_ROOT,
        cache: Path | None = None,
        owner: int | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.folder = state_root.resolve() / name
        self._owner = owner
        self._cache = cache or state_root.resolve().parent / "cache"

    @property
    def faults(self) -> Faults:
        return Faults(self.settings.number)

    @property
    def card_image(self) -> Path:
        return self.folder / "card.img"

    @property
    def pty(self) -> Path:
        """Link to the console's pseudo terminal."""
        return self.folder / "console"

    def ssh_options(self) -> list[str]:
        """Options for ``ssh`` that ask nothing and remember no host key."""
        pairs = {
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ConnectTimeout": "10",
        }
        return [word for key, value in pairs.items() for word in ("-o", f"{key}={value}")]

    def start(self) -> bool:
        """Bring the board up; False when it was up already.

        Raises:
            EnvironmentProblemError: not root, or tools are missing.
            VirtualBoardError: the number is held by another board, or it does not boot.
        """
        tools.require()
        self.folder.mkdir(parents=True, exist_ok=True)
        # two users of one checkout may start it at the same moment
        with card.locked(self.folder / "lock"):
            running = self._ask_running()
            if running is not None:
                return self._join_running(running)
            self._insert_card()
            (self.folder / "settings.json").write_text(self.settings.to_json())
            self._spawn()
            return True

    def stop(self) -> bool:
        """Take power and everything else away, keeping the card; False when it was absent."""
        running = self._ask_running()
        if running is None or running["folder"] != str(self.folder):
            return False
        pid = int(running["pid"])
        control.ask(self.settings.number, "stop")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while _is_alive(pid):
            if time.monotonic() > deadline:
                raise VirtualBoardError(f"process {pid} does not end", board=self.name)
            time.sleep(_POLL_SECONDS)
        return True

    def reboot(self) -> None:
        """Reset both cores and wait until Linux answers again."""
        before = self.status().boots
        self.faults.reboot()
        self.wait_until_running(boots=before + 1)

    def wait_until_running(self, *, boots: int = 1, patience: float = _PATIENCE_SECONDS) -> None:
        """Wait for at least ``boots`` completed boots and a running board.

        Raises:
            VirtualBoardError: it did not happen in time.
        """
        deadline = time.monotonic() + patience
        while True:
            status = self.status()
            if status.state == "running" and status.boots >= boots:
                return
            if time.monotonic() > deadline or status.state == "absent":
                raise VirtualBoardError(f"board is {status.state}, not running", board=self.name)
            time.sleep(_POLL_SECONDS)

    def status(self) -> BoardStatus:
        running = self._ask_running()
        mine = running is not None and running["folder"] == str(self.folder)
        known: dict[str, Any] = running if running is not None and mine else {}
        return BoardStatus(
            name=self.name,
            state=known.get("state", "held" if running else "absent"),
            pid=known.get("pid", 0),
            boots=known.get("boots", 0),
            address=self.settings.address,
            console=self.settings.console,
            rfc2217=self.settings.rfc2217,
            pty=str(self.pty),
            folder=str(self.folder),
        )

    def reflash(self) -> None:
        """Put a fresh card in; the board must be absent.

        Raises:
            VirtualBoardError: it is running.
        """
        if self.status().state != "absent":
            raise VirtualBoardError(
                "its card cannot be changed while it runs", board=self.name, hint="stop it first."
            )
        self.card_image.unlink(missing_ok=True)

    # -- parts ---------------------------------------------------------------------------------

    def _ask_running(self) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = control.ask(self.settings.number, "status")
        except VirtualBoardError:
            return None
        return answer

    def _join_running(self, running: dict[str, Any]) -> bool:
        if running["folder"] != str(self.folder):
            raise VirtualBoardError(
                f"number {self.settings.number} is held by the board in {running['folder']}"
                f" (process {running['pid']})",
                board=self.name,
                hint="stop that one, or give this one another number.",
            )
        held = BoardSettings(**running["settings"])
        if held != self.settings:
            raise VirtualBoardError(
                "it runs with other settings than asked for",
                board=self.name,
                hint="stop it, then start it again.",
            )
        if running["state"] == "off":
            control.ask(self.settings.number, "power")
            self.wait_until_running(boots=int(running["boots"]) + 1)
            return True
        self.wait_until_running()
        return False

    def _insert_card(self) -> None:
        """Keep the card of the last time, unless image or size are others now."""
        source = card.template(self._cache, self.settings.sdk)
        wanted = json.dumps({"image": source.name, "bytes": self.settings.card_size})
        note = self.folder / "card.json"
        if self.card_image.exists() and note.exists() and note.read_text() == wanted:
            return
        card.make(self.card_image, source, self.settings.card_size)
        note.write_text(wanted)

    def _spawn(self) -> None:
        module = f"{__package__}.supervisor"
        environment = {**os.environ, "PYTHONPATH": str(_PACKAGE_ROOT)}
        with (self.folder / "board.log").open("ab") as log:
            # an orphan from the start: whoever starts it need not collect it
            process = subprocess.Popen(
                [
                    *(tools.path_of("setsid"), "--fork"),
                    *(sys.executable, "-m", module, self.folder, str(self._owner or 0)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd="/",
            )
        with process:
            assert process.stdout
            line = process.stdout.readline()
        answer = json.loads(line) if line else {"error": "its root process ended"}
        if "error" in answer:
            raise VirtualBoardError(
                f"does not start: {answer['error']}",
                board=self.name,
                hint=answer.get("hint") or f"read {self.folder / 'board.log'}.",
            )


def check_distinct(boards: list[LightBoard]) -> None:
    """Refuse inventories in which two boards share a number.

    Raises:
        InputError: they do.
    """
    seen: dict[int, str] = {}
    for board in boards:
        number = board.settings.number
        if number in seen:
            raise InputError(
                f"{seen[number]} and {board.name} both have number {number}",
                hint="give each virtual board its own number.",
            )
        seen[number] = board.name


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
