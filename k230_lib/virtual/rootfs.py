"""The root file system of the virtual board: the tools of the stock image and nothing else."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from . import board_files, busybox
from .tools import SFTP_SERVERS, path_of

_FOLDERS = (
    "bin sbin usr/bin usr/sbin usr/libexec usr/lib/board lib lib64 etc/init.d etc/ssh etc/version"
    " etc/network dev proc sys tmp run root/.ssh sharefs mnt var/log var/empty var/run"
)
# host program -> where the image has it
_PROGRAMS = {
    "bash": "bin/bash",
    "cksum": "usr/bin/cksum",
    "flock": "usr/bin/flock",
    "fsck": "sbin/fsck",
    "fsck.fat": "sbin/fsck.fat",
    "install": "usr/bin/install",
    "mkfs.fat": "sbin/mkfs.fat",
    "mountpoint": "bin/mountpoint",
    "nice": "usr/bin/nice",
    "nohup": "usr/bin/nohup",
    "parted": "usr/sbin/parted",
    "printenv": "bin/printenv",
    "scp": "usr/bin/scp",
    "ssh": "usr/bin/ssh",
    "ssh-keygen": "usr/bin/ssh-keygen",
    "sshd": "usr/sbin/sshd",
    # behind wrappers
    "blkid": "usr/lib/board/blkid",
}
_E2FSPROGS = ("mke2fs", "e2fsck", "resize2fs", "tune2fs", "dumpe2fs")
_SCRIPTS = {
    "rcS.sh": "etc/init.d/rcS",
    "rcK.sh": "etc/init.d/rcK",
    "S50sshd.sh": "etc/init.d/S50sshd",
    "sharefs.sh": "mnt/sharefs",
    "mount.vfat.sh": "sbin/mount.vfat",
    "udevadm.sh": "sbin/udevadm",
    "uname.sh": "bin/uname",
    "fuser.sh": "usr/bin/fuser",
    "blkid.sh": "sbin/blkid",
    "nproc.sh": "usr/bin/nproc",
}
_TEXTS = {"inittab.txt": "etc/inittab", "sshd_config.txt": "etc/ssh/sshd_config"}
_ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:33:33:sshd:/var/empty:/bin/false\n",
    "etc/group": "root:x:0:\nsshd:x:33:\n",
    "etc/shadow": "root::10933:0:99999:7:::\nsshd:*:::::::\n",
    "etc/hostname": "canaan\n",
    "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 canaan\n",
    "etc/os-release": "NAME=Buildroot\nID=buildroot\nVERSION_ID=2021.02-git\n",
    "etc/profile": "export PATH=/bin:/sbin:/usr/bin:/usr/sbin\n",
    "etc/shells": "/bin/sh\n/bin/bash\n",
    # the order in which mount tries types; the host's kernel may lack vfat
    "etc/filesystems": "ext4\nvfat\n",
    "etc/fstab": "/dev/root / ext2 rw,noauto 0 1\n",
    "etc/fw_env.config": "/dev/mmcblk1 0x1e0000 0x10000\n",
    "etc/network/interfaces": "auto lo\niface lo inet loopback\nauto eth0\niface eth0 inet dhcp\n",
}
# applets that a program of another package replaces
_REPLACED = ("blkid", "mkdosfs", "nproc", "uname")
# applets that the board's busybox has with fewer features
_LIMITED = {"tar": "bin/tar", "find": "usr/bin/find", "gzip": "bin/gzip", "date": "bin/date"}


def has_e2fsprogs(sdk: str) -> bool:
    """Whether the image of an SDK version has mkfs.ext4 and friends (since 1.9)."""
    numbers = [int(part) for part in re.findall(r"\d+", sdk)]
    return numbers[:2] >= [1, 9]


def fingerprint(sdk: str) -> bytes:
    """Changes when the root file system would."""
    digest = hashlib.sha256(sdk.encode())
    digest.update(Path(__file__).read_bytes())
    for name in (*_SCRIPTS, *_TEXTS, "applets.txt", "limited.sh"):
        digest.update(board_files.text(name).encode())
    for program in ("busybox", *_PROGRAMS, *_E2FSPROGS):
        stat = path_of(program).stat()
        digest.update(f"{program} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.digest()


def build(root: Path, sdk: str) -> None:
    """Make the tree in the new folder ``root``; owners are right when this runs as root."""
    for folder in _FOLDERS.split():
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for private in ("root", "root/.ssh", "var/empty"):
        (root / private).chmod(0o700)
    e2fsprogs = has_e2fsprogs(sdk)
    _install_busybox(root, e2fsprogs)
    for program, place in _PROGRAMS.items():
        _install_program(root, path_of(program), place)
    sftp_server = next(Path(server) for server in SFTP_SERVERS if Path(server).exists())
    _install_program(root, sftp_server, "usr/libexec/sftp-server")
    _link(root, "sbin/mkfs.vfat", "mkfs.fat")
    _link(root, "sbin/mkdosfs", "mkfs.fat")
    if e2fsprogs:
        for program in _E2FSPROGS:
            _install_program(root, path_of(program), f"sbin/{program}")
        for kind in ("ext2", "ext3", "ext4"):
            _link(root, f"sbin/mkfs.{kind}", "mke2fs")
        shutil.copy("/etc/mke2fs.conf", root / "etc/mke2fs.conf")
    else:
        _write(root / "sbin/mkfs.ext2", '#!/bin/sh\nexec busybox mke2fs "$@"\n', 0o755)
    for name, place in _SCRIPTS.items():
        _write(root / place, board_files.text(name), 0o755)
    for name, place in _TEXTS.items():
        _write(root / place, board_files.text(name), 0o644)
    for place, text in _ETC.items():
        _write(root / place, text, 0o600 if place.endswith("shadow") else 0o644)
    _write(root / "etc/version/release_version", f"v{sdk}-virtual\n", 0o644)
    _link(root, "etc/mdev.conf", "/run/mdev.conf")


def _install_busybox(root: Path, e2fsprogs: bool) -> None:
    source = path_of("busybox")
    table = busybox.applets_of(source)
    wanted = set(board_files.text("applets.txt").split()) - {*_REPLACED, *_LIMITED}
    if e2fsprogs:
        wanted.discard("mke2fs")
    target = root / "bin/busybox"
    image = busybox.hide(source.read_bytes(), table, set(table) - wanted)
    target.write_bytes(image)
    target.chmod(0o755)
    shutil.copy(source.resolve(), root / "usr/lib/board/busybox")
    _write(root / "usr/lib/board/limited", board_files.text("limited.sh"), 0o755)
    for place in _LIMITED.values():
        _link(root, place, "/usr/lib/board/limited")
    for name, place in busybox.places_of(source).items():
        if name in wanted and name not in ("busybox", "linuxrc"):
            _link(root, place, "../" * place.count("/") + "bin/busybox")


def _install_program(root: Path, source: Path, place: str) -> None:
    target = root / place
    shutil.copy(source.resolve(), target)
    listing = subprocess.run(["ldd", source], capture_output=True, text=True, check=False)
    for library in re.findall(r"(/\S+)\s+\(0x", listing.stdout):
        copy = root / library.lstrip("/")
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), copy)


def _link(root: Path, place: str, target: str) -> None:
    (root / place).symlink_to(target)


def _write(path: Path, text: str, mode: int) -> None:
    path.write_text(text)
    path.chmod(mode)
