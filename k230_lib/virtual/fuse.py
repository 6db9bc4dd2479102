"""The kernel's FUSE protocol, as much of it as a FAT volume needs."""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Callable

from .fat import FatVolume, Node

_REQUEST = struct.Struct("<IIQQIIII")
_REPLY = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_MAX_WRITE = 128 << 10
_BUFFER_BYTES = _MAX_WRITE + 4096
_BIG_WRITES = 1 << 5
_VALID_SECONDS = 3600  # nobody but the kernel changes the volume
_SET_UID, _SET_GID, _SET_SIZE, _SET_MTIME, _SET_MTIME_NOW = 2, 4, 8, 32, 256
_RENAME_NOREPLACE = 1
_MODE = 0o755
_DESTROY = 38
_NO_REPLY = (2, 36, 42)  # forget, interrupt, batch forget


class FuseServer:
    """Serves ``volume`` to the kernel until it is unmounted.

    Args:
        fuse: descriptor of /dev/fuse that the mount was made with.
        volume: what to serve.
    """

    def __init__(self, fuse: int, volume: FatVolume) -> None:
        self._fuse = fuse
        self._volume = volume
        self._nodes: dict[int, Node] = {1: volume.root}
        self._ids: dict[Node, int] = {volume.root: 1}
        self._handlers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._lookup,
            3: self._getattr,
            4: self._setattr,
            6: self._not_on_fat,
            8: self._mknod,
            9: self._mkdir,
            10: self._unlink,
            11: self._rmdir,
            12: self._rename,
            13: self._not_on_fat,
            14: self._open,
            15: self._read,
            16: self._write,
            17: self._statfs,
            18: self._release,
            20: self._sync,
            25: self._nothing,
            26: self._init,
            27: self._nothing_open,
            28: self._readdir,
            29: self._nothing,
            30: self._sync,
            34: self._nothing,
            35: self._create,
            43: self._fallocate,
            _DESTROY: self._sync,
            45: self._rename2,
        }

    def run(self) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._fuse, _BUFFER_BYTES)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue  # the request was withdrawn
                return
            _, opcode, unique, node, *_ = _REQUEST.unpack_from(request)
            if opcode in _NO_REPLY:
                continue
            number, body = self._answer(opcode, node, request[_REQUEST.size :])
            try:
                os.write(self._fuse, _REPLY.pack(_REPLY.size + len(body), -number, unique) + body)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    return
            if opcode == _DESTROY:
                return

    def _answer(self, opcode: int, node: int, body: bytes) -> tuple[int, bytes]:
        handler = self._handlers.get(opcode)
        if handler is None:
            return errno.ENOSYS, b""
        try:
            return 0, handler(node, body)
        except OSError as error:
            return error.errno or errno.EIO, b""
        except (KeyError, IndexError, ValueError, struct.error):
            return errno.EIO, b""  # the volume contradicts itself

    # -- records -------------------------------------------------------------------------------

    def _id(self, node: Node) -> int:
        if node not in self._ids:
            number = len(self._ids) + 1
            self._ids[node] = number
            self._nodes[number] = node
        return self._ids[node]

    def _attributes(self, node: Node) -> bytes:
        when = int(node.mtime)
        kind = stat.S_IFDIR if node.is_dir else stat.S_IFREG
        size = len(node.clusters) * self._volume.cluster_bytes
        return _ATTRIBUTES.pack(
            *(self._id(node), size if node.is_dir else node.size, size // 512),
            *(when, when, when, 0, 0, 0),
            *(kind | _MODE, 1, 0, 0, 0, self._volume.cluster_bytes, 0),
        )

    def _entry(self, node: Node, name: str | None = None) -> bytes:
        # under another spelling the kernel must ask each time: it does not know it is the same
        keep = _VALID_SECONDS if name in (None, node.name) else 0
        valid = struct.pack("<QQQQII", self._id(node), 0, keep, _VALID_SECONDS, 0, 0)
        return valid + self._attributes(node)

    # -- requests ------------------------------------------------------------------------------

    def _init(self, _: int, body: bytes) -> bytes:
        _, minor, readahead, flags = struct.unpack_from("<IIII", body)
        answer = struct.pack("<IIIIHHI", 7, min(minor, 31), readahead, flags & _BIG_WRITES, 0, 0, 0)
        return answer[:20] + struct.pack("<II", _MAX_WRITE, 1_000_000_000) + bytes(36)

    def _nothing(self, _: int, body: bytes) -> bytes:
        del body
        return b""

    def _not_on_fat(self, _: int, body: bytes) -> bytes:
        raise OSError(errno.EPERM, "FAT has no links")

    def _nothing_open(self, _: int, body: bytes) -> bytes:
        del body
        return bytes(16)

    def _lookup(self, number: int, body: bytes) -> bytes:
        name = _name(body)
        return self._entry(self._volume.find(self._nodes[number], name), name)

    def _getattr(self, number: int, body: bytes) -> bytes:
        del body
        head = struct.pack("<QII", _VALID_SECONDS, 0, 0)
        return head + self._attributes(self._nodes[number])

    def _setattr(self, number: int, body: bytes) -> bytes:
        valid, _, _, size, _, _, mtime = struct.unpack_from("<IIQQQQQ", body)
        uid, gid = struct.unpack_from("<II", body, 76)
        node = self._nodes[number]
        # as vfat: owners cannot be kept, modes are ignored
        if (valid & _SET_UID and uid) or (valid & _SET_GID and gid):
            raise OSError(errno.EPERM, node.name)
        if valid & _SET_SIZE:
            self._volume.truncate(node, size)
        if valid & _SET_MTIME:
            node.mtime = time.time() if valid & _SET_MTIME_NOW else float(mtime)
            self._volume.update(node)
        return self._getattr(number, body)

    def _mknod(self, number: int, body: bytes) -> bytes:
        if not stat.S_ISREG(struct.unpack_from("<I", body)[0]):
            raise OSError(errno.EPERM, "only files and folders")
        node = self._volume.create(self._nodes[number], _name(body[16:]), is_dir=False)
        return self._entry(node)

    def _mkdir(self, number: int, body: bytes) -> bytes:
        node = self._volume.create(self._nodes[number], _name(body[8:]), is_dir=True)
        return self._entry(node)

    def _create(self, number: int, body: bytes) -> bytes:
        node = self._volume.create(self._nodes[number], _name(body[16:]), is_dir=False)
        node.opens += 1
        return self._entry(node) + bytes(16)

    def _unlink(self, number: int, body: bytes) -> bytes:
        self._volume.remove(self._volume.find(self._nodes[number], _name(body)))
        return b""

    def _rmdir(self, number: int, body: bytes) -> bytes:
        return self._unlink(number, body)

    def _rename(self, number: int, body: bytes) -> bytes:
        return self._move(number, struct.unpack_from("<Q", body)[0], body[8:], 0)

    def _rename2(self, number: int, body: bytes) -> bytes:
        target, flags = struct.unpack_from("<QI", body)
        return self._move(number, target, body[16:], flags)

    def _move(self, source: int, target: int, names: bytes, flags: int) -> bytes:
        old, new = (os.fsdecode(name) for name in names.split(b"\0")[:2])
        node = self._volume.find(self._nodes[source], old)
        folder = self._nodes[target]
        if flags & ~_RENAME_NOREPLACE:
            raise OSError(errno.EINVAL, new)
        if flags and new.upper() in self._volume.children(folder):
            raise OSError(errno.EEXIST, new)
        self._volume.rename(node, folder, new)
        return b""

    def _open(self, number: int, body: bytes) -> bytes:
        del body
        self._nodes[number].opens += 1
        keep_cache = 2
        return struct.pack("<QII", 0, keep_cache, 0)

    def _release(self, number: int, body: bytes) -> bytes:
        del body
        self._volume.close(self._nodes[number])
        return b""

    def _read(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return self._volume.read(self._nodes[number], offset, size)

    def _write(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        count = self._volume.write(self._nodes[number], offset, body[40 : 40 + size])
        return struct.pack("<II", count, 0)

    def _fallocate(self, number: int, body: bytes) -> bytes:
        _, offset, length, mode = struct.unpack_from("<QQQI", body)
        node = self._nodes[number]
        if mode:
            raise OSError(errno.EOPNOTSUPP, node.name)
        if offset + length > node.size:
            self._volume.truncate(node, offset + length)
        return b""

    def _statfs(self, _: int, body: bytes) -> bytes:
        del body
        volume = self._volume
        free, size = volume.free_clusters, volume.cluster_bytes
        return struct.pack("<QQQQQIII", volume.cluster_count, free, free, 0, 0, size, 255, size) + (
            bytes(28)
        )

    def _sync(self, _: int, body: bytes) -> bytes:
        del body
        self._volume.sync()
        return b""

    def _readdir(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        folder = self._nodes[number]
        above = folder.parent or folder
        listing = [(".", folder), ("..", above)]
        listing += [(node.name, node) for node in self._volume.children(folder).values()]
        answer = b""
        for index, (name, node) in enumerate(listing[offset:], start=offset + 1):
            raw = os.fsencode(name)
            kind = (stat.S_IFDIR if node.is_dir else stat.S_IFREG) >> 12
            record = struct.pack("<QQII", self._id(node), index, len(raw), kind) + raw
            record += bytes(-len(record) % 8)
            if len(answer) + len(record) > size:
                break
            answer += record
        return answer


def _name(raw: bytes) -> str:
    return os.fsdecode(raw.split(b"\0", 1)[0])
