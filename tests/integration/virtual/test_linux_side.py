"""What a user finds on the Linux side of a virtual board."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import time
from pathlib import Path

import pytest

from k230_lib.board.shell import SshShell
from k230_lib.errors import BoardUnreachableError
from k230_lib.virtual import card
from k230_lib.virtual.testing import virtual_board

pytestmark = pytest.mark.board
NUMBER = 230

PRESENT = """
awk base64 blkid chroot cksum cmp cp cpio cut date dd df diff dmesg du env expr fallocate fdisk
find flock free fsck fstrim fuser getopt grep gunzip gzip head hexdump hostname hwclock id
ifconfig ip kill killall ln losetup ls lsmod md5sum sha256sum sha512sum mdev mkdir mkdosfs
mktemp mount mountpoint mv nice nohup nproc od partprobe passwd pidof printf ps readlink
realpath rm route sed seq setsid shuf sort start-stop-daemon stty sync tail tar tee top tr
truncate udhcpc umount uname unzip usleep vi wc wget which whoami xargs xxd parted fsck.fat
mkfs.fat mkfs.vfat bash scp sshd mkfs.ext2 mkfs.ext3 mkfs.ext4 mke2fs e2fsck resize2fs tune2fs
dumpe2fs
"""
ABSENT = """
stat timeout blockdev lsblk sfdisk sgdisk findmnt partx pgrep pkill nc split ntpd taskset script
chpasswd nsenter python python3 perl rsync sudo unshare tac
"""


def test_login_without_password_or_key(bench) -> None:
    assert bench.sh("id -u; hostname; pwd") == "0\ncanaan\n/root\n"


def test_tools_are_those_of_the_image(bench) -> None:
    # `type` asks the shell itself, which would run applets that have no link
    script = "for t in {}; do type $t >/dev/null 2>&1 && echo $t; done; true"
    wanted = PRESENT.split()
    assert bench.sh(script.format(" ".join(wanted))).split() == wanted
    assert bench.sh(script.format(" ".join(ABSENT.split()))) == ""


def test_features_that_the_images_busybox_lacks(bench) -> None:
    bench.sh("cd /tmp; echo x >f; tar cf t.tar f; tar tf t.tar; gzip -c f | gunzip -c")
    for script in ("tar czf t.tgz f", "tar -xzf t.tgz", "find . -name f -delete", "gzip -9 f"):
        assert bench.shell.run(f"cd /tmp; {script}").rc != 0, script
    assert bench.sh("date +%N") == "%N\n"
    assert bench.sh("find /tmp -name f") == "/tmp/f\n"


def test_scp_in_both_protocols_and_sftp(bench, tmp_path: Path) -> None:
    source = tmp_path / "file.bin"
    source.write_bytes(bytes(range(256)) * 1000)
    target = f"root@{bench.board.settings.address}"
    options = bench.board.ssh_options()
    for extra in ([], ["-O"]):
        subprocess.run(
            ["scp", "-q", *extra, *options, source, f"{target}:/sharefs/copy"], check=True
        )
        digest = bench.sh("sha256sum /sharefs/copy; rm /sharefs/copy").split()[0]
        assert digest == hashlib.sha256(source.read_bytes()).hexdigest()


def test_version_command_line_and_model(bench) -> None:
    assert bench.sh("cat /etc/version/release_version").startswith("v1.9")
    assert "root=/dev/mmcblk1p3 " in bench.sh("cat /proc/cmdline")
    assert bench.sh("uname -rm") == "5.10.4 riscv64\n"
    assert "k230" in bench.sh("cat /sys/firmware/devicetree/base/model")


def test_sharefs_is_the_fourth_partition_with_the_demo_files(bench) -> None:
    line = bench.sh("grep ' /sharefs ' /proc/mounts").split()
    assert line[0] == "/dev/mmcblk1p4"
    assert line[2].endswith("vfat")
    assert 'LABEL="K230_APP"' in bench.sh("blkid /dev/mmcblk1p4")
    assert int(bench.sh("du -sk /sharefs/app").split()[0]) > 2000
    assert bench.sh("pidof sharefs").strip().isdigit()


def test_parted_sees_a_card_larger_than_its_table(bench) -> None:
    result = bench.shell.run("parted -s -m /dev/mmcblk1 unit s print")
    assert b"Not all of the space available" in result.stderr
    rows = [line.split(":") for line in result.text.splitlines()]
    assert rows[1][0] == "/dev/mmcblk1"
    assert int(rows[1][1].rstrip("s")) == (1 << 30) // 512
    parts = {row[0]: (row[1], row[2], row[5]) for row in rows[2:]}
    assert parts == {
        "1": ("20480s", "61439s", "rtt"),
        "2": ("61440s", "163839s", "linux"),
        "3": ("262144s", "524287s", "rootfs"),
        "4": ("524288s", "1048575s", "fat32appfs"),
    }
    assert bench.sh("cat /sys/class/block/mmcblk1p4/size /sys/class/block/mmcblk1p4/start") == (
        "524288\n524288\n"
    )
    assert "mmcblk1p4" in bench.sh("cat /proc/partitions")


def test_boot_area_is_recognisable(bench) -> None:
    for name, (offset, size) in card.BOOT_AREAS.items():
        script = f"dd if=/dev/mmcblk1 bs=512 skip={offset // 512} count={size // 512} 2>/dev/null"
        digest = bench.sh(f"{script} | sha256sum").split()[0]
        assert digest == hashlib.sha256(card.boot_area_content(name)).hexdigest(), name


def test_fat_behaves_as_the_kernels(bench) -> None:
    bench.sh("cd /sharefs; echo one >a.txt; echo two >>A.TXT; chmod 600 a.txt; mv a.txt b")
    assert bench.sh("cat /sharefs/B; ls -l /sharefs/b | cut -c1-10") == "one\ntwo\n-rwxr-xr-x\n"
    bench.sh("rm /sharefs/b; echo new >/sharefs/B; rm /sharefs/B")
    assert bench.shell.run("cat /sharefs/b").rc != 0
    bench.sh("echo one >/sharefs/b")
    assert bench.shell.run("ln -s b /sharefs/link").rc != 0
    assert bench.shell.run("chown 5 /sharefs/b").rc != 0
    assert b"busy" in bench.shell.run("mkfs.vfat /dev/mmcblk1p4").stderr
    data = bytes(range(256)) * 20000
    bench.shell.run("cat >/sharefs/data.part && mv /sharefs/data.part /sharefs/data", stdin=data)
    bench.sh("umount /sharefs && fsck.fat -n /dev/mmcblk1p4 && mount /dev/mmcblk1p4 /sharefs")
    digest = bench.sh("sha256sum /sharefs/data").split()[0]
    assert digest == hashlib.sha256(data).hexdigest()
    bench.sh("umount /sharefs; mount -o ro /dev/mmcblk1p4 /sharefs")
    assert b"Read-only" in bench.shell.run("touch /sharefs/x").stderr
    bench.sh("umount /sharefs; mount /dev/mmcblk1p4 /sharefs; rm /sharefs/data /sharefs/b")


def test_official_enlarging_works(bench) -> None:
    bench.sh("umount /sharefs")
    assert bench.shell.run("parted -s /dev/mmcblk1 resizepart 4 100%").rc != 0
    bench.sh("printf 'fix\\n' | parted ---pretend-input-tty /dev/mmcblk1 print >/dev/null")
    bench.sh("parted -s -a minimal /dev/mmcblk1 resizepart 4 100%")
    size = int(bench.sh("cat /sys/class/block/mmcblk1p4/size"))
    assert size > (1 << 30) // 512 - 524288 - 2048
    bench.sh("mkfs.ext4 -q -F /dev/mmcblk1p4 && mount /dev/mmcblk1p4 /sharefs")
    assert " ext4 " in bench.sh("grep ' /sharefs ' /proc/mounts")
    bench.board.reboot()
    assert " ext4 " in bench.sh("grep ' /sharefs ' /proc/mounts")


def test_older_image_on_emmc() -> None:
    with virtual_board(NUMBER + 1, sdk="1.8", disk="mmcblk0", card_size="700MB") as board:
        shell = SshShell(board.name, f"root@{board.settings.address}", board.ssh_options())
        assert "mmcblk0p3" in shell.run("cat /proc/cmdline").text
        assert shell.run("type mkfs.ext4 e2fsck resize2fs").rc != 0
        script = "umount /sharefs && mkfs.ext2 /dev/mmcblk0p4 && mount /dev/mmcblk0p4 /sharefs"
        assert shell.run(script).rc == 0
        assert "/dev/mmcblk0p4 /sharefs ext" in shell.run("cat /proc/mounts").text
        assert "425984s" in shell.run("parted -s -m /dev/mmcblk0 unit s print").text


def test_ssh_answers_before_sharefs_is_mounted() -> None:
    with virtual_board(NUMBER + 2, card_size="700MB", mount_delay=2) as board:
        shell = SshShell(board.name, f"root@{board.settings.address}", board.ssh_options())
        board.faults.reboot()
        seen = []
        deadline = time.monotonic() + 20
        while "mounted" not in seen:
            assert time.monotonic() < deadline, seen
            with contextlib.suppress(BoardUnreachableError):
                script = "grep -q ' /sharefs ' /proc/mounts && echo mounted || echo bare"
                seen.append(shell.run(script, timeout=5).text.strip())
        assert "bare" in seen
