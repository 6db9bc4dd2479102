"""The mount of the data partition: who holds it, plans that free it and put it back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..errors import StorageError
from .records import BoardFacts, Mount, Partition
from .signatures import BLANK, EXT_KINDS, FAT_KINDS, MOUNTABLE_KINDS
from .steps import Step, guarded_step

_DAEMON_DIR = "/mnt"


def daemon_holds(facts: BoardFacts) -> bool:
    """Whether the sharefs daemon has files open, which means that an RT-Smart program has."""
    return any(holder.pid == facts.daemon_pid for holder in facts.holders)


def require_free(facts: BoardFacts, *, stop_users: bool) -> None:
    """Refuse when the mount point is in use.

    Args:
        stop_users: the sharefs daemon, through which RT-Smart programs hold files, may be stopped.

    Raises:
        StorageError: names the holders, with process id and command.
    """
    others = [holder for holder in facts.holders if holder.pid != facts.daemon_pid]
    if others:
        names = ", ".join(f"{holder} in {holder.paths[0]}" for holder in others[:3])
        raise StorageError(
            f"{facts.mountpoint} is in use by {names}",
            board=facts.board,
            hint="end these processes or let them leave the directory, then run again.",
        )
    if daemon_holds(facts) and not stop_users:
        held = next(h for h in facts.holders if h.pid == facts.daemon_pid)
        raise StorageError(
            f"an RT-Smart program has {held.paths[0]} open (through the sharefs daemon, pid "
            f"{held.pid})",
            board=facts.board,
            hint="end the program at msh, or run with stop_users=true.",
        )


def mount_command(facts: BoardFacts, *, read_only: bool = False) -> str:
    """As the board's rcS does it: the kernel finds out the type."""
    return _mount(_partition(facts).device, facts.mountpoint, read_only=read_only)


def mounted_test(facts: BoardFacts) -> str:
    """A command that succeeds when something is mounted at the mount point."""
    return f"grep -q ' {facts.mountpoint} ' /proc/mounts"


def read_only_test(facts: BoardFacts) -> str:
    """A command that succeeds when what is mounted at the mount point is read-only."""
    return f"grep -q ' {facts.mountpoint} [^ ]* ro[, ]' /proc/mounts"


def umount_commands(facts: BoardFacts) -> list[str]:
    """Free the data partition wherever it is mounted, the last mount first."""
    mounts = facts.mounts_of(_partition(facts))
    return [f"umount {shlex.quote(mount.mountpoint)}" for mount in reversed(mounts)]


def stop_daemon_commands(facts: BoardFacts) -> list[str]:
    """End the sharefs daemon when it holds files, and wait until it is gone."""
    if not daemon_holds(facts):
        return []
    pid = facts.daemon_pid
    return [
        f"kill {pid}",
        f"n=0; while [ -d /proc/{pid} ] && [ $n -lt 50 ]; do usleep 100000; n=$((n+1)); done",
        f"[ ! -d /proc/{pid} ]",
    ]


def start_daemon_command() -> str:
    """Start the sharefs daemon as rcS does; it must not keep the storage lock (descriptor 9)."""
    return f"cd {_DAEMON_DIR} && {{ setsid ./sharefs </dev/null >/dev/null 2>&1 9>&- & }}"


def commands_around(
    facts: BoardFacts, commands: Sequence[str], *, stop_users: bool = False
) -> list[str]:
    """``commands`` on the free partition; mounts are put back as they were, also when they fail.

    Raises:
        StorageError: the mount point is in use.
    """
    require_free(facts, stop_users=stop_users)
    mounts = facts.mounts_of(_partition(facts))
    if not mounts:
        return list(commands)
    # only what is not mounted: a failed umount must not be followed by a second mount
    again = "; ".join(
        f'grep -q " {mount.mountpoint} " /proc/mounts || '
        f"{_mount(mount.source, mount.mountpoint, read_only=mount.read_only)}"
        for mount in mounts
    )
    if daemon_holds(facts):
        again += f"; {start_daemon_command()}"
    return [
        *stop_daemon_commands(facts),
        f"trap '{again}' EXIT",
        *umount_commands(facts),
        *commands,
    ]


def plan_mount(
    facts: BoardFacts, *, stop_users: bool = False, daemon: bool = True, predicted: bool = False
) -> tuple[Step, ...]:
    """Steps that mount the data partition read-write at the mount point.

    Args:
        stop_users: the sharefs daemon may be stopped when RT-Smart programs hold files.
        daemon: the sharefs daemon is to run.
        predicted: a file system that is not there yet will have been made.

    Raises:
        StorageError: there is nothing to mount, something else is mounted there, or a mount that
            has to be made anew is in use.
    """
    part = _partition(facts)
    steps: list[Step] = []
    mount = facts.sharefs
    if mount is not None and mount not in facts.mounts_of(part):
        raise StorageError(
            f"{mount.source} ({mount.fstype}) is mounted at {facts.mountpoint}, expected "
            f"{part.device}",
            board=facts.board,
            hint=f"unmount it (umount {facts.mountpoint}) if that is not wanted, then run again.",
        )
    kind = facts.filesystem.kind if facts.filesystem else BLANK
    if mount is None or mount.read_only:
        if kind not in MOUNTABLE_KINDS and not predicted:
            raise StorageError(
                f"{part.device} holds no file system to mount ({kind})",
                board=facts.board,
                hint="run the filesystem module first.",
            )
        steps.append(_mount_step(facts, mount, kind, stop_users=stop_users))
    if daemon and facts.daemon_program and facts.daemon_pid is None:
        commands = [start_daemon_command(), "sleep 1", "pidof sharefs"]
        steps.append(guarded_step(facts, "daemon", "start the sharefs daemon", commands))
    return tuple(steps)


def plan_unmount(facts: BoardFacts, *, stop_users: bool = False) -> tuple[Step, ...]:
    """Steps that leave the data partition mounted nowhere.

    Raises:
        StorageError: it is in use.
    """
    commands = umount_commands(facts)
    if not commands:
        return ()
    require_free(facts, stop_users=stop_users)
    body = [*stop_daemon_commands(facts), *commands]
    does = f"unmount {_partition(facts).device}"
    return (guarded_step(facts, "unmount", does, body),)


def persistent(facts: BoardFacts) -> bool:
    """Whether a boot script or fstab mounts the data partition at the mount point."""
    part = _partition(facts)
    return any(
        part.device in line and facts.mountpoint in line and not line.startswith("#")
        for line in facts.boot_mount
    )


def check_mounted(facts: BoardFacts) -> str:
    """What is wrong with the mount, or an empty string."""
    part = _partition(facts)
    mount = facts.sharefs
    if mount is None:
        return f"{facts.mountpoint} is not mounted"
    if mount not in facts.mounts_of(part):
        return f"{mount.source} is mounted at {facts.mountpoint}, not {part.device}"
    kind = facts.filesystem.kind if facts.filesystem else BLANK
    if not _same_type(kind, mount.fstype):
        return f"{part.device} holds {kind} and is mounted as {mount.fstype}"
    return f"{facts.mountpoint} is read-only" if mount.read_only else ""


def _same_type(kind: str, fstype: str) -> bool:
    # ext4 mounts ext2 and ext3 too; vfat is all of FAT; FUSE types are fuse.NAME or fuseblk.NAME
    name = fstype.rpartition(".")[2]
    if kind in EXT_KINDS:
        return name in EXT_KINDS
    return name in ("vfat", "msdos") if kind in FAT_KINDS else name == kind


def _mount_step(facts: BoardFacts, mount: Mount | None, kind: str, *, stop_users: bool) -> Step:
    part = _partition(facts)
    point = shlex.quote(facts.mountpoint)
    body: list[str] = []
    if mount is not None:
        require_free(facts, stop_users=stop_users)
        body += [*stop_daemon_commands(facts), *umount_commands(facts)]
    # read-only is what the kernel makes of a damaged file system; after a clean check it is not
    if kind in EXT_KINDS and facts.has("e2fsck"):
        body.append(f"e2fsck -p {part.device} || [ $? -le 1 ]")
    elif kind in FAT_KINDS and facts.has("fsck.fat"):
        body.append(f"fsck.fat -a {part.device} || [ $? -le 1 ]")
    body += [f"mkdir -p {point}", mount_command(facts)]
    does = f"mount {part.device} at {facts.mountpoint}, read-write"
    return guarded_step(facts, "mount", does, body)


def _mount(device: str, point: str, *, read_only: bool) -> str:
    # FUSE mounts leave a process behind, which must not keep the storage lock (descriptor 9)
    return f"mount {'-o ro ' if read_only else ''}{device} {shlex.quote(point)} 9>&-"


def _partition(facts: BoardFacts) -> Partition:
    part = facts.partition
    if part is None:
        raise StorageError(
            f"the board has no partition {facts.partition_number}",
            board=facts.board,
            hint="name the data partition's number.",
        )
    return part
