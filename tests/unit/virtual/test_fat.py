from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from k230_lib.virtual import fat_names
from k230_lib.virtual.fat import FatVolume, Node

_MKFS = shutil.which("mkfs.fat", path="/usr/sbin:/sbin:/usr/bin:/bin")
_FSCK = shutil.which("fsck.fat", path="/usr/sbin:/sbin:/usr/bin:/bin")
pytestmark = pytest.mark.skipif(not _MKFS or not _FSCK, reason="dosfstools are not installed")
_KINDS = {"fat16": ("-F16", "-s", "8"), "fat32": ("-F32", "-s", "1")}


@pytest.fixture(params=sorted(_KINDS))
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "fat.img"
    path.touch()
    os.truncate(path, 40 << 20)
    subprocess.run([_MKFS, *_KINDS[request.param], path], check=True, capture_output=True)
    return path


def _open(image: Path) -> tuple[int, FatVolume]:
    fd = os.open(image, os.O_RDWR)
    return fd, FatVolume(fd)


def _files(volume: FatVolume, folder: Node, base: str = "") -> Iterator[tuple[str, bytes]]:
    for node in volume.children(folder).values():
        path = f"{base}/{node.name}"
        if node.is_dir:
            yield from _files(volume, node, path)
        else:
            yield path, volume.read(node, 0, node.size)


def _path(node: Node) -> str:
    return f"{_path(node.parent)}/{node.name}" if node.parent else ""


def test_random_work_leaves_a_sound_volume_with_the_right_content(image: Path) -> None:
    random_ = random.Random(1)
    fd, volume = _open(image)
    content: dict[Node, bytes] = {}
    folders = [volume.root]
    for step in range(400):
        kind = random_.choice(("create", "create", "write", "write", "cut", "move", "drop", "dir"))
        node = random_.choice(list(content)) if content else None
        if kind == "create":
            name = random_.choice((f"f{step}.txt", f"Long name {step}.tensor", f"F{step}.BIN"))
            content[volume.create(random_.choice(folders), name, is_dir=False)] = b""
        elif kind == "dir" and len(folders) < 6:
            folders.append(volume.create(random_.choice(folders), f"dir {step}", is_dir=True))
        elif node is None:
            continue
        elif kind == "write":
            old = content[node]
            offset = random_.randrange(len(old) + 2000)
            data = random_.randbytes(random_.randrange(30000))
            assert volume.write(node, offset, data) == len(data)
            padded = old.ljust(offset, b"\0")
            content[node] = padded[:offset] + data + padded[offset + len(data) :]
        elif kind == "cut":
            size = random_.randrange(40000)
            volume.truncate(node, size)
            content[node] = content[node][:size].ljust(size, b"\0")
        elif kind == "move":
            volume.rename(node, random_.choice(folders), f"moved {step}.pte")
        elif kind == "drop":
            volume.remove(node)
            del content[node]
    volume.rename(folders[-1], volume.root, "moved folder")
    volume.sync()
    expected = {_path(node): data for node, data in content.items()}
    os.close(fd)
    check = subprocess.run([_FSCK, "-n", image], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout
    fd, again = _open(image)
    assert dict(_files(again, again.root)) == expected
    assert again.free_clusters == volume.free_clusters
    os.close(fd)


def test_full_card(image: Path) -> None:
    fd, volume = _open(image)
    node = volume.create(volume.root, "filler", is_dir=False)
    free = volume.free_clusters * volume.cluster_bytes
    assert volume.write(node, 0, bytes(free - 10)) == free - 10
    assert volume.write(node, free - 10, b"x" * 100) == 10  # a short write, as the kernel's
    with pytest.raises(OSError, match="card full") as caught:
        volume.write(node, free, b"y")
    assert caught.value.errno == errno.ENOSPC
    volume.remove(node)
    assert volume.free_clusters * volume.cluster_bytes == free
    os.close(fd)


def test_removed_file_stays_readable_while_open(image: Path) -> None:
    fd, volume = _open(image)
    before = volume.free_clusters
    node = volume.create(volume.root, "k230_runner", is_dir=False)
    volume.write(node, 0, b"program")
    node.opens += 1
    volume.remove(node)
    assert volume.read(node, 0, 10) == b"program"
    volume.close(node)
    assert volume.free_clusters == before
    os.close(fd)


def test_names_ignore_case_and_keep_it(image: Path) -> None:
    fd, volume = _open(image)
    volume.create(volume.root, "Model.PTE", is_dir=False)
    assert volume.find(volume.root, "mODEL.pte").name == "Model.PTE"
    with pytest.raises(FileExistsError):
        volume.create(volume.root, "MODEL.pte", is_dir=False)
    os.close(fd)


@pytest.mark.parametrize("name", ["a?b", "a:b", 'say"', "back\\slash", "dot.", "", "x" * 256])
def test_names_that_fat_cannot_hold(name: str) -> None:
    assert not fat_names.is_valid(name)


def test_something_else_is_refused(tmp_path: Path) -> None:
    image = tmp_path / "zero.img"
    image.write_bytes(bytes(1 << 20))
    fd = os.open(image, os.O_RDWR)
    with pytest.raises(OSError, match="no FAT"):
        FatVolume(fd)
    os.close(fd)
