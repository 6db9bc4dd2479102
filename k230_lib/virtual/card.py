"""The virtual SD card: partition table, boot area, root file system and demo files of the image."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, VirtualBoardError
from . import rootfs
from .tools import path_of

MIB = 1 << 20
IMAGE_BYTES = 600 * MIB
# Raw areas that no partition covers; a provisioning step that touches them bricks a board.
BOOT_AREAS = {
    "uboot_spl_1": (1 * MIB, 512 << 10),
    "uboot_spl_2": (0x180000, 384 << 10),
    "uboot_env": (0x1E0000, 128 << 10),
    "uboot": (2 * MIB, 1536 << 10),
    "rtt": (10 * MIB, 2 * MIB),
    "linux": (30 * MIB, 4 * MIB),
}
_DEMO_FILES = {
    "app/face_detect/face_detect.elf": 1400 << 10,
    "app/face_detect/face_detection_320.kmodel": 900 << 10,
    "app/cloudplat_deploy_code/cloudplat_deploy_code.elf": 1900 << 10,
    "app/rtsp_server/rtsp_server.elf": 1100 << 10,
    "app/README.txt": 200,
}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}
_LARGEST = 64 * 10**9


@dataclass(frozen=True)
class Layout:
    """Byte ranges of partitions 3 and 4 for one SDK generation."""

    root_start: int
    root_bytes: int
    app_start: int
    app_bytes: int = 256 * MIB


def layout_of(sdk: str) -> Layout:
    """The partition layout of an SDK generation, given as e.g. ``1.9`` or ``1.8``."""
    if rootfs.has_e2fsprogs(sdk):
        return Layout(128 * MIB, 128 * MIB, 256 * MIB)
    return Layout(128 * MIB, 80 * MIB, 208 * MIB)


def parse_size(text: str | int) -> int:
    """Bytes of ``4GiB``, ``64GB``, ``700M`` or a plain number.

    Raises:
        InputError: not a size, or not one of a card (600 MiB to 64 GB).
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?)?B?\s*", str(text), re.IGNORECASE)
    if match is None:
        raise InputError(f"card size {text!r} is not a size", hint="write it like 4GiB or 64GB.")
    size = int(float(match[1]) * _UNITS[(match[2] or "").upper()])
    if not IMAGE_BYTES <= size <= _LARGEST:
        raise InputError(
            f"card size {text} is outside 600 MiB to 64 GB", hint="choose a card in this range."
        )
    return size // 512 * 512


def boot_area_content(name: str) -> bytes:
    """What the image holds in a raw area: repeatable bytes that name their place."""
    _, size = BOOT_AREAS[name]
    head = f"virtual K230 {name}\n".encode()
    return head + random.Random(name).randbytes(size - len(head))


def template(cache: Path, sdk: str) -> Path:
    """The card image of an SDK generation, built once per state of the tools.

    Raises:
        VirtualBoardError: a tool failed.
    """
    cache.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256()
    for part in (rootfs.fingerprint(sdk), Path(__file__).read_bytes()):
        key.update(part)
    image = cache / f"card-{sdk}-{key.hexdigest()[:12]}.img"
    with locked(cache / "lock"):
        if not image.exists():
            for old in cache.glob(f"card-{sdk}-*"):
                old.unlink()
            _build(image, sdk)
    return image


def make(image: Path, source: Path, size: int) -> None:
    """Put the card ``source`` into a larger card ``image``: its table then ends too early."""
    part = image.with_suffix(".part")
    _run("cp", "--sparse=always", "--reflink=auto", str(source), str(part))
    os.truncate(part, size)
    part.rename(image)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive file lock."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(image: Path, sdk: str) -> None:
    layout = layout_of(sdk)
    part = image.with_suffix(".part")
    with tempfile.TemporaryDirectory(prefix="k230-card-") as scratch:
        tree = Path(scratch) / "root"
        rootfs.build(tree, sdk)
        part.unlink(missing_ok=True)
        part.touch()
        os.truncate(part, IMAGE_BYTES)
        ends = (
            ("rtt", "", 10 * MIB, 20 * MIB),
            ("linux", "", 30 * MIB, 50 * MIB),
            ("rootfs", "ext4", layout.root_start, layout.root_bytes),
            ("fat32appfs", "fat16", layout.app_start, layout.app_bytes),
        )
        commands = ["mklabel", "gpt"]
        for name, kind, start, size in ends:
            commands += ["mkpart", name, *([kind] if kind else [])]
            commands += [f"{start}B", f"{start + size - 1}B"]
        _run(str(path_of("parted")), "-s", "--", str(part), *commands)
        _write_boot_areas(part)
        _run(
            *(str(path_of("mke2fs")), "-q", "-F", "-t", "ext4", "-L", "rootfs", "-d", str(tree)),
            *("-E", f"offset={layout.root_start}", str(part), f"{layout.root_bytes >> 20}m"),
        )
        _fill_app_partition(part, layout, Path(scratch) / "app")
    part.rename(image)


def _write_boot_areas(image: Path) -> None:
    with image.open("r+b") as file:
        for name, (offset, _) in BOOT_AREAS.items():
            file.seek(offset)
            file.write(boot_area_content(name))


def _fill_app_partition(image: Path, layout: Layout, scratch: Path) -> None:
    _run(
        *(str(path_of("mkfs.fat")), "-F16", "-s", "32", "-n", "K230_APP"),
        *("--offset", str(layout.app_start // 512), str(image), str(layout.app_bytes >> 10)),
    )
    for name, size in _DEMO_FILES.items():
        file = scratch / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(random.Random(name).randbytes(size))
    target = f"{image}@@{layout.app_start}"
    _run(str(path_of("mcopy")), "-s", "-i", target, str(scratch / "app"), "::")
    shutil.rmtree(scratch)


def _run(*command: str) -> None:
    environment = {**os.environ, "LC_ALL": "C", "MTOOLS_SKIP_CHECK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise VirtualBoardError(
            f"{Path(command[0]).name} failed: {lines[-1] if lines else done.returncode}",
            hint="look at the free space and the tool's version.",
        )
