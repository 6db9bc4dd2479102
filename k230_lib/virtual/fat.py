"""A FAT16 or FAT32 volume on a block device or image, for hosts whose kernel has no vfat.

Errors are ``OSError`` with the number the kernel's vfat would give. One thread at a time.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from array import array
from dataclasses import dataclass, field

from . import fat_names
from .fat_names import ENTRY_BYTES

_DIRECTORY, _VOLUME_LABEL, _ARCHIVE = 0x10, 0x08, 0x20
_DELETED, _END = 0xE5, 0x00
_LARGEST_FILE = (1 << 32) - 1
_ENTRY = struct.Struct("<11sBBBHHHHHHHI")
_FAT12_CLUSTERS, _FAT16_CLUSTERS = 4085, 65525


@dataclass(eq=False)
class Node:
    """A file or folder.

    Attributes:
        slot: index of its short entry in the parent's folder; -1 for the root and removed ones.
        long_slots: entries before it that carry the long name.
        clusters: its whole chain.
        opens: how often it is open; a removed file keeps its clusters until this is 0.
        children: by upper-case name, loaded on first use; files have none.
        raw: content of a folder.
    """

    name: str
    parent: Node | None
    is_dir: bool
    size: int = 0
    mtime: float = 0.0
    slot: int = -1
    long_slots: int = 0
    short: bytes = b""
    flags: int = 0
    clusters: list[int] = field(default_factory=list)
    opens: int = 0
    removed: bool = False
    children: dict[str, Node] | None = None
    raw: bytearray = field(default_factory=bytearray)


class FatVolume:
    """The volume on the open file descriptor ``fd``.

    Raises:
        OSError: EINVAL when there is no FAT16 or FAT32.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        boot = os.pread(fd, 512, 0)
        if len(boot) < 512 or boot[510:512] != b"\x55\xaa" or boot[0] not in (0xEB, 0xE9):
            raise OSError(errno.EINVAL, "no FAT")
        sector, per_cluster, reserved, fats, root_entries, small = struct.unpack_from(
            "<HBHBHH", boot, 11
        )
        fat_small = struct.unpack_from("<H", boot, 22)[0]
        large, fat_large = struct.unpack_from("<II", boot, 32)
        sectors, fat_sectors = small or large, fat_small or fat_large
        if sector not in (512, 1024, 2048, 4096) or not per_cluster or not fats or not fat_sectors:
            raise OSError(errno.EINVAL, "no FAT")
        root_sectors = -(-root_entries * ENTRY_BYTES // sector)
        data = reserved + fats * fat_sectors + root_sectors
        count = (sectors - data) // per_cluster
        if count < _FAT12_CLUSTERS:
            raise OSError(errno.EINVAL, "FAT12")
        self.is_fat32 = count >= _FAT16_CLUSTERS
        self.cluster_bytes = int(sector * per_cluster)
        self.cluster_count = count
        self._data_start = int(data * sector)
        self._fat_starts = [(reserved + index * fat_sectors) * sector for index in range(fats)]
        self._root_start = (reserved + fats * fat_sectors) * sector
        self._width = 4 if self.is_fat32 else 2
        self._fat = array("I" if self.is_fat32 else "H")
        table = os.pread(fd, (count + 2) * self._width, self._fat_starts[0])
        if len(table) != (count + 2) * self._width:
            raise OSError(errno.EINVAL, "FAT larger than its device")
        self._fat.frombytes(table)
        self._mask = 0x0FFFFFFF if self.is_fat32 else 0xFFFF
        self._end_mark = 0x0FFFFFF8 if self.is_fat32 else 0xFFF8
        self._hint = 2
        self.free_clusters = sum(1 for entry in self._fat[2:] if not entry & self._mask)
        self.root = Node("", None, is_dir=True)
        self._info_start = 0
        if self.is_fat32:
            self._info_start = int(struct.unpack_from("<H", boot, 48)[0]) * sector
            self.root.clusters = self._chain(struct.unpack_from("<I", boot, 44)[0])
        else:
            self.root.raw = bytearray(os.pread(fd, root_entries * ENTRY_BYTES, self._root_start))

    # -- clusters ------------------------------------------------------------------------------

    def _chain(self, first: int) -> list[int]:
        chain: list[int] = []
        while 2 <= first < self.cluster_count + 2 and len(chain) <= self.cluster_count:
            chain.append(first)
            first = self._fat[first] & self._mask
        return chain

    def _set_fat(self, cluster: int, value: int) -> None:
        self._fat[cluster] = value
        raw = value.to_bytes(self._width, "little")
        for start in self._fat_starts:
            os.pwrite(self._fd, raw, start + cluster * self._width)

    def _allocate(self, node: Node, count: int) -> None:
        """Append ``count`` clusters to a chain, all or none."""
        if count > self.free_clusters:
            raise OSError(errno.ENOSPC, "card full")
        for _ in range(count):
            cluster = self._hint
            while self._fat[cluster] & self._mask:
                cluster = cluster + 1 if cluster < self.cluster_count + 1 else 2
            self._hint = cluster
            self._set_fat(cluster, self._mask)
            if node.clusters:
                self._set_fat(node.clusters[-1], cluster)
            node.clusters.append(cluster)
            self.free_clusters -= 1

    def _release(self, node: Node, keep: int) -> None:
        gone = node.clusters[keep:]
        del node.clusters[keep:]
        if gone and node.clusters:
            self._set_fat(node.clusters[-1], self._mask)
        for cluster in gone:
            self._set_fat(cluster, 0)
        self.free_clusters += len(gone)
        if gone:
            self._hint = min(self._hint, *gone)

    def _place(self, cluster: int) -> int:
        # the first data cluster has number 2
        return self._data_start + (cluster - 2) * self.cluster_bytes

    # -- folders -------------------------------------------------------------------------------

    def children(self, folder: Node) -> dict[str, Node]:
        """The content of a folder by upper-case name."""
        if folder.children is None:
            if folder.clusters:
                folder.raw = bytearray().join(
                    os.pread(self._fd, self.cluster_bytes, self._place(cluster))
                    for cluster in folder.clusters
                )
            folder.children = self._parse(folder)
        return folder.children

    def _parse(self, folder: Node) -> dict[str, Node]:
        found: dict[str, Node] = {}
        pending: list[bytes] = []
        for slot in range(len(folder.raw) // ENTRY_BYTES):
            raw = bytes(folder.raw[slot * ENTRY_BYTES : (slot + 1) * ENTRY_BYTES])
            if raw[0] == _END:
                break
            if raw[0] == _DELETED:
                pending.clear()
            elif raw[11] == fat_names.LONG_NAME_ATTRIBUTE:
                pending.append(raw)
            else:
                if not raw[11] & _VOLUME_LABEL and raw[0] != ord("."):
                    node = self._node(folder, slot, raw, pending)
                    found[node.name.upper()] = node
                pending.clear()
        return found

    def _node(self, folder: Node, slot: int, raw: bytes, pending: list[bytes]) -> Node:
        short, attributes, flags, _, _, _, _, high, clock, day, low, size = _ENTRY.unpack(raw)
        long_name = fat_names.join_long(pending, short)
        node = Node(
            long_name or fat_names.from_short(short, flags),
            folder,
            is_dir=bool(attributes & _DIRECTORY),
            size=size,
            mtime=fat_names.from_dos(day, clock),
            slot=slot,
            long_slots=len(pending) if long_name else 0,
            short=short,
            flags=flags,
        )
        node.clusters = self._chain(low | (high << 16 if self.is_fat32 else 0))
        return node

    def _store(self, folder: Node, slot: int, data: bytes) -> None:
        """Write directory entries, in memory and on the disk."""
        start = slot * ENTRY_BYTES
        folder.raw[start : start + len(data)] = data
        if not folder.clusters:
            os.pwrite(self._fd, data, self._root_start + start)
            return
        for offset in range(0, len(data), ENTRY_BYTES):
            index, within = divmod(start + offset, self.cluster_bytes)
            place = self._place(folder.clusters[index]) + within
            os.pwrite(self._fd, data[offset : offset + ENTRY_BYTES], place)

    def _free_slots(self, folder: Node, count: int) -> int:
        run = 0
        total = len(folder.raw) // ENTRY_BYTES
        for slot in range(total):
            run = run + 1 if folder.raw[slot * ENTRY_BYTES] in (_END, _DELETED) else 0
            if run == count:
                return slot - count + 1
        if not folder.clusters:
            raise OSError(errno.ENOSPC, "root folder full")
        self._allocate(folder, 1)
        blank = bytes(self.cluster_bytes)
        os.pwrite(self._fd, blank, self._place(folder.clusters[-1]))
        folder.raw += blank
        return self._free_slots(folder, count)

    def _add(self, folder: Node, node: Node) -> None:
        """Give ``node`` its entries in ``folder``."""
        siblings = self.children(folder)
        exact = fat_names.as_short(node.name)
        taken = {sibling.short for sibling in siblings.values()}
        if exact and exact[0] not in taken:
            node.short, node.flags = exact
            long_part = b""
        else:
            node.short, node.flags = fat_names.made_up_short(node.name, taken), 0
            long_part = fat_names.long_entries(node.name, node.short)
        node.long_slots = len(long_part) // ENTRY_BYTES
        first = self._free_slots(folder, node.long_slots + 1)
        node.parent, node.slot = folder, first + node.long_slots
        self._store(folder, first, long_part + self._entry(node))
        siblings[node.name.upper()] = node

    def _drop(self, node: Node) -> None:
        """Take the entries of ``node`` out of its folder."""
        folder = node.parent
        assert folder is not None
        for slot in range(node.slot - node.long_slots, node.slot + 1):
            raw = bytearray(folder.raw[slot * ENTRY_BYTES : (slot + 1) * ENTRY_BYTES])
            raw[0] = _DELETED
            self._store(folder, slot, bytes(raw))
        del self.children(folder)[node.name.upper()]
        node.slot = -1

    def _entry(self, node: Node) -> bytes:
        day, clock = fat_names.to_dos(node.mtime)
        first = node.clusters[0] if node.clusters else 0
        attributes = _DIRECTORY if node.is_dir else _ARCHIVE
        size = 0 if node.is_dir else node.size
        return _ENTRY.pack(
            *(node.short, attributes, node.flags, 0, clock, day, day),
            *(first >> 16, clock, day, first & 0xFFFF, size),
        )

    def update(self, node: Node) -> None:
        """Write size, time and first cluster of ``node`` to its entry."""
        if node.parent is not None and node.slot >= 0:
            self._store(node.parent, node.slot, self._entry(node))

    # -- operations ----------------------------------------------------------------------------

    def find(self, folder: Node, name: str) -> Node:
        if not folder.is_dir:
            raise OSError(errno.ENOTDIR, name)
        node = self.children(folder).get(name.upper())
        if node is None:
            raise OSError(errno.ENOENT, name)
        return node

    def create(self, folder: Node, name: str, *, is_dir: bool) -> Node:
        if not fat_names.is_valid(name):
            raise OSError(errno.EINVAL, name)
        if name.upper() in self.children(folder):
            raise OSError(errno.EEXIST, name)
        node = Node(name, folder, is_dir, mtime=time.time())
        if is_dir:
            self._allocate(node, 1)
            above = Node("..", None, is_dir=True, mtime=node.mtime, short=b"..         ")
            above.clusters = [] if folder is self.root else folder.clusters[:1]
            own = Node(".", None, is_dir=True, mtime=node.mtime, short=b".          ")
            own.clusters = node.clusters
            content = (self._entry(own) + self._entry(above)).ljust(self.cluster_bytes, b"\0")
            os.pwrite(self._fd, content, self._place(node.clusters[0]))
        try:
            self._add(folder, node)
        except OSError:
            self._release(node, 0)
            raise
        return node

    def remove(self, node: Node) -> None:
        if node.is_dir and self.children(node):
            raise OSError(errno.ENOTEMPTY, node.name)
        self._drop(node)
        node.removed = True
        self.close(node, 0)

    def close(self, node: Node, count: int = 1) -> None:
        """Count ``count`` closes; a removed file frees its clusters after the last."""
        node.opens -= count
        if node.removed and node.opens <= 0:
            self._release(node, 0)

    def rename(self, node: Node, folder: Node, name: str) -> None:
        if not fat_names.is_valid(name):
            raise OSError(errno.EINVAL, name)
        above: Node | None = folder
        while above is not None:
            if above is node:
                raise OSError(errno.EINVAL, name)
            above = above.parent
        other = self.children(folder).get(name.upper())
        if other is not None and other is not node:
            if other.is_dir != node.is_dir:
                raise OSError(errno.EISDIR if other.is_dir else errno.ENOTDIR, name)
            self.remove(other)
        self._drop(node)
        node.name = name
        self._add(folder, node)
        if node.is_dir:
            self._point_up(node)

    def _point_up(self, folder: Node) -> None:
        """Make the ``..`` of a moved folder name its new parent."""
        self.children(folder)
        above = Node("..", None, is_dir=True, mtime=folder.mtime, short=b"..         ")
        if folder.parent is not None and folder.parent is not self.root:
            above.clusters = folder.parent.clusters[:1]
        self._store(folder, 1, self._entry(above))

    def read(self, node: Node, offset: int, count: int) -> bytes:
        count = max(0, min(count, node.size - offset))
        parts = []
        while count:
            index, within = divmod(offset, self.cluster_bytes)
            part = min(count, self.cluster_bytes - within)
            parts.append(os.pread(self._fd, part, self._place(node.clusters[index]) + within))
            offset += part
            count -= part
        return b"".join(parts)

    def write(self, node: Node, offset: int, data: bytes) -> int:
        if offset + len(data) > _LARGEST_FILE:
            raise OSError(errno.EFBIG, node.name)
        if offset > node.size:
            self.truncate(node, offset)
        needed = -(-(offset + len(data)) // self.cluster_bytes) - len(node.clusters)
        if needed > self.free_clusters:
            # what fits is written, as the kernel does page by page
            room = (len(node.clusters) + self.free_clusters) * self.cluster_bytes - offset
            if room <= 0:
                raise OSError(errno.ENOSPC, "card full")
            data = data[:room]
            needed = self.free_clusters
        if needed > 0:
            self._allocate(node, needed)
        self._pour(node, offset, data)
        node.size = max(node.size, offset + len(data))
        node.mtime = time.time()
        self.update(node)
        return len(data)

    def _pour(self, node: Node, offset: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            index, within = divmod(offset, self.cluster_bytes)
            part = view[: self.cluster_bytes - within]
            os.pwrite(self._fd, part, self._place(node.clusters[index]) + within)
            offset += len(part)
            view = view[len(part) :]

    def truncate(self, node: Node, size: int) -> None:
        if size > _LARGEST_FILE:
            raise OSError(errno.EFBIG, node.name)
        keep = -(-size // self.cluster_bytes)
        if keep > len(node.clusters):
            self._allocate(node, keep - len(node.clusters))
        else:
            self._release(node, keep)
        if size > node.size:
            blank = bytes(self.cluster_bytes)
            for offset in range(node.size, size, self.cluster_bytes):
                self._pour(node, offset, blank[: size - offset])
        node.size = size
        node.mtime = time.time()
        self.update(node)

    def sync(self) -> None:
        """Bring everything to the device."""
        if self._info_start:
            os.pwrite(self._fd, struct.pack("<I", self.free_clusters), self._info_start + 488)
        os.fsync(self._fd)
