"""State of ``/sharefs``, the only storage that Linux and the RT-Smart core share."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import BoardCommandError, StorageError
from .file_answers import parse_df
from .shell import BoardShell, checked

MOUNT_POINT = "/sharefs"

_PROBE = """\
echo now $(date +%s)
pid=$(pidof sharefs) && echo daemon $pid
grep ' /sharefs ' /proc/mounts | tail -n 1 | sed 's/^/mount /'
df -P -k /sharefs | tail -n 1 | sed 's/^/df /'
"""


@dataclass(frozen=True)
class SharefsState:
    """What one probe told.

    Attributes:
        device: mounted there; empty when nothing is.
        fstype: ``vfat``, ``ext4``, ...
        read_only: the mount refuses writing.
        free: bytes available.
        daemon: the process that serves the RT-Smart core runs.
        clock: seconds since 1970 by the board's clock.
    """

    device: str
    fstype: str
    read_only: bool
    free: int
    daemon: bool
    clock: int


def parse_state(text: str) -> SharefsState:
    """Read the probe's lines.

    Raises:
        BoardCommandError: one is missing or strange.
    """
    lines = dict(line.partition(" ")[::2] for line in text.splitlines())
    mount = lines.get("mount", "").split()
    options = mount[3].split(",") if len(mount) > 3 else []
    if not lines.get("now", "").isdigit():
        raise BoardCommandError(f"the probe of {MOUNT_POINT} answered {text[-80:]!r}")
    return SharefsState(
        device=mount[0] if mount else "",
        fstype=mount[2] if len(mount) > 2 else "",
        read_only="ro" in options,
        free=parse_df(lines.get("df", "")),
        daemon="daemon" in lines,
        clock=int(lines["now"]),
    )


def probe(shell: BoardShell) -> SharefsState:
    """Ask the board, in one round trip."""
    return parse_state(checked(shell, _PROBE))


def require_usable(state: SharefsState, board: str) -> None:
    """Refuse a board whose ``/sharefs`` would make msh hang or lose data.

    Raises:
        StorageError: not mounted, or read-only.
        BoardCommandError: the daemon does not run; msh would hang for ever at the first access.
    """
    if not state.device:
        raise StorageError(
            f"{MOUNT_POINT} is not mounted; files would land on the small root file system",
            board=board,
            hint="run provision.yml, or reboot the board.",
        )
    if state.read_only:
        raise StorageError(
            f"{MOUNT_POINT} ({state.device}, {state.fstype}) is mounted read-only",
            board=board,
            hint="check the file system (fsck), then remount it or reboot the board.",
        )
    if not state.daemon:
        raise BoardCommandError(
            "the sharefs daemon does not run: msh would hang at the first access to /sharefs",
            board=board,
            hint="reboot the board.",
        )
