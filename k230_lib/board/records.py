"""What is known of a board: plain records, without how they were found out.

Everything in units of 512-byte sectors says ``sectors``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .gpt import GptState
from .signatures import Filesystem


@dataclass(frozen=True)
class Partition:
    """A partition as the kernel has it now (``dev`` is major:minor)."""

    number: int
    device: str
    dev: str
    start: int
    sectors: int

    @property
    def last(self) -> int:
        return self.start + self.sectors - 1


@dataclass(frozen=True)
class Mount:
    """One line of the board's mount table."""

    source: str
    mountpoint: str
    fstype: str
    options: tuple[str, ...]
    dev: str

    @property
    def read_only(self) -> bool:
        return "ro" in self.options


@dataclass(frozen=True)
class Holder:
    """A process that keeps the mount point busy, and what it has open there."""

    pid: int
    command: str
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.command or '?'} (pid {self.pid})"


@dataclass(frozen=True)
class Disk:
    """The card or eMMC that the board booted from."""

    name: str
    sectors: int
    card_id: str
    partitions: tuple[Partition, ...]
    gpt: GptState

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    def partition(self, number: int) -> Partition | None:
        """The kernel's partition of that number, if there is one."""
        return next((part for part in self.partitions if part.number == number), None)


@dataclass(frozen=True)
class BoardFacts:
    """All that provisioning decides on.

    ``disk`` is none when ``root=`` names no mmcblk device; ``filesystem`` describes the data
    partition, none when the kernel has no such partition.
    """

    board: str
    release: str
    kernel: str
    machine: str
    hostname: str
    model: str
    memory_kib: int
    memory_free_kib: int
    cmdline: str
    boot_id: str
    uptime_s: float
    clock_s: int
    clock_skew_s: float
    partition_number: int
    mountpoint: str
    mounts: tuple[Mount, ...]
    swaps: tuple[str, ...]
    kernel_filesystems: tuple[str, ...]
    free_kib: dict[str, int]
    size_kib: dict[str, int]
    macs: dict[str, str]
    addresses: dict[str, str]
    daemon_pid: int | None
    daemon_program: str
    ipcm: str
    boot_mount: tuple[str, ...]
    tools: dict[str, str]
    holders: tuple[Holder, ...]
    disk: Disk | None
    filesystem: Filesystem | None
    #: a storage command of an earlier run has not ended yet
    busy: bool
    #: id and controller folder of a replacement that has not put the files back yet
    marker: str

    def has(self, *tools: str) -> bool:
        """Whether all of these programs are on the board."""
        return all(tool in self.tools for tool in tools)

    @property
    def partition(self) -> Partition | None:
        """The data partition as the kernel has it."""
        return self.disk.partition(self.partition_number) if self.disk else None

    @property
    def sharefs(self) -> Mount | None:
        """What is mounted at the mount point; the last mount there is the visible one."""
        return next((m for m in reversed(self.mounts) if m.mountpoint == self.mountpoint), None)

    def mounts_of(self, partition: Partition) -> tuple[Mount, ...]:
        """Where a partition is mounted, by device name or by major:minor."""
        return tuple(
            m for m in self.mounts if m.source == partition.device or m.dev == partition.dev
        )

    @property
    def image(self) -> str:
        """``linux+rtsmart``, ``linux-only`` or ``unknown``."""
        if self.daemon_program or self.ipcm or self.daemon_pid:
            return "linux+rtsmart"
        if "python3" in self.tools or self.disk is None or len(self.disk.partitions) < 4:
            return "linux-only"
        return "unknown"

    def to_json(self) -> dict[str, Any]:
        """The ``ansible_facts.k230`` dictionary: plain JSON types, sectors and KiB as integers."""
        mount = self.sharefs
        part = self.partition
        return {
            "sdk_release": self.release,
            "kernel": self.kernel,
            "machine": self.machine,
            "hostname": self.hostname,
            "model": self.model,
            "image": self.image,
            "memory_kib": self.memory_kib,
            "memory_free_kib": self.memory_free_kib,
            "boot_id": self.boot_id,
            "uptime_s": self.uptime_s,
            "clock_skew_s": self.clock_skew_s,
            "macs": self.macs,
            "addresses": self.addresses,
            "tools": self.tools,
            "free_kib": self.free_kib,
            "daemon": {
                "pid": self.daemon_pid,
                "program": self.daemon_program,
                "ipcm": self.ipcm,
            },
            "disk": None if self.disk is None else _disk_json(self.disk),
            "data_partition": None if part is None else {**asdict(part), "last": part.last},
            "filesystem": None if self.filesystem is None else asdict(self.filesystem),
            "sharefs": {
                "mountpoint": self.mountpoint,
                "mounted": mount is not None,
                "device": mount.source if mount else "",
                "dev": mount.dev if mount else "",
                "fstype": mount.fstype if mount else "",
                "options": list(mount.options) if mount else [],
                "free_bytes": self.free_kib.get(self.mountpoint, 0) * 1024 if mount else 0,
                "size_bytes": self.size_kib.get(self.mountpoint, 0) * 1024 if mount else 0,
                "holders": [asdict(holder) for holder in self.holders],
                "boot_mount": list(self.boot_mount),
            },
        }


def _disk_json(disk: Disk) -> dict[str, Any]:
    table = disk.gpt.table
    return {
        "device": disk.device,
        "sectors": disk.sectors,
        "card_id": disk.card_id,
        "partitions": [{**asdict(part), "last": part.last} for part in disk.partitions],
        "gpt": {
            "condition": str(disk.gpt.condition),
            "problem": disk.gpt.problem,
            "last_possible": disk.gpt.last_possible,
            "disk_guid": table.disk_guid if table else "",
            "partitions": []
            if table is None
            else [{**asdict(entry), "sectors": entry.sectors} for entry in table.entries],
        },
    }
