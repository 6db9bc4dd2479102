"""What a light virtual board needs of this machine; one error names all that is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..errors import EnvironmentProblemError

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")

# program -> Debian package
_PACKAGES = {
    "bash": "bash",
    "blkid": "util-linux",
    "busybox": "busybox-static",
    "dumpe2fs": "e2fsprogs",
    "ip": "iproute2",
    "ldd": "libc-bin",
    "mcopy": "mtools",
    "mke2fs": "e2fsprogs",
    "mkfs.fat": "dosfstools",
    "mount": "mount",
    "nsenter": "util-linux",
    "parted": "parted",
    "partx": "util-linux",
    "setpriv": "util-linux",
    "setsid": "util-linux",
    "sleep": "coreutils",
    "prlimit": "util-linux",
    "resize2fs": "e2fsprogs",
    "scp": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "tc": "iproute2",
    "unshare": "util-linux",
}


def find(name: str) -> str | None:
    """Path of a system program, also when the user's PATH lacks the sbin folders."""
    return shutil.which(name, path=SYSTEM_PATH)


def path_of(name: str) -> Path:
    """Path of a system program that :func:`require` has checked."""
    found = find(name)
    if found is None:
        raise EnvironmentProblemError(_missing_text([name]), hint=_install_hint([name]))
    return Path(found)


def require() -> None:
    """Check everything a light board needs.

    Raises:
        EnvironmentProblemError: not root, or programs are missing (all are named at once).
    """
    if os.geteuid() != 0:
        raise EnvironmentProblemError(
            "light virtual boards need root (namespaces, loop devices, mounts)",
            hint="run the same command with sudo, or in a privileged container.",
        )
    missing = sorted(name for name in _PACKAGES if find(name) is None)
    if missing:
        raise EnvironmentProblemError(_missing_text(missing), hint=_install_hint(missing))
    if not any(Path(server).exists() for server in SFTP_SERVERS):
        raise EnvironmentProblemError(
            "sftp-server is missing", hint="apt-get install -y openssh-sftp-server"
        )


def _missing_text(names: list[str]) -> str:
    return f"programs are missing: {', '.join(names)}"


def _install_hint(names: list[str]) -> str:
    packages = sorted({_PACKAGES.get(name, name) for name in names})
    return f"apt-get install -y {' '.join(packages)}"
