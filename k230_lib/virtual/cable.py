"""The network between this machine and a board, which stays plugged in over the board's resets.

The board's network namespace belongs to a sleeping process, so that both ends of the cable exist
while the board is down: connections then wait for it, as on a real network, instead of taking
this machine's default route.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ..errors import VirtualBoardError
from .board import BoardSettings
from .tools import path_of

_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.01


class Cable:
    """Both ends of a board's network link; must be made by the board's main thread.

    Raises:
        VirtualBoardError: the link or its addresses cannot be made.
    """

    def __init__(self, settings: BoardSettings) -> None:
        self._settings = settings
        ours = Path("/proc/self/ns/net").readlink()
        self._holder = subprocess.Popen(
            [
                *(path_of("setpriv"), "--pdeathsig", "KILL", path_of("unshare"), "--net"),
                *(path_of("sleep"), "infinity"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )
        self.namespace = Path(f"/proc/{self._holder.pid}/ns/net")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.namespace.readlink() == ours:
            if time.monotonic() > deadline or self._holder.poll() is not None:
                raise VirtualBoardError("no network namespace for the board")
            time.sleep(_POLL_SECONDS)
        self._plug_in()

    def _plug_in(self) -> None:
        link = self._settings.host_link
        prefix = self._settings.interface.network.prefixlen
        # the cable of a previous board goes a moment after its namespace
        self._remove_link()
        commands = (
            f"link add {link} type veth peer name eth0 netns {self._holder.pid}\n"
            f"addr add {self._settings.host_address}/{prefix} dev {link}\n"
            f"link set {link} up\n"
        )
        done = subprocess.run(
            [path_of("ip"), "-batch", "-"],
            input=commands.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise VirtualBoardError(f"network: {reason[0] if reason else 'ip failed'}")

    def _remove_link(self) -> None:
        subprocess.run(
            [path_of("ip"), "link", "del", self._settings.host_link],
            capture_output=True,
            check=False,
        )

    def enter_command(self) -> list[str]:
        """Prefix of commands that run in the board's network."""
        return [str(path_of("nsenter")), f"--net={self.namespace}", "--"]

    def down(self) -> None:
        """Let the board's end fall silent, as its chip does in a reset."""
        subprocess.run(
            [*self.enter_command(), path_of("ip"), "link", "set", "eth0", "down"],
            capture_output=True,
            check=False,
        )

    def unplug(self) -> None:
        """Take the link away."""
        # dying connections can keep the namespace, and with it the link, for minutes
        self._remove_link()
        self._holder.kill()
        self._holder.wait()
