"""What is wrong with a card or a wish is told in one line, and nothing is written."""

from __future__ import annotations

import ctypes
import fcntl
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from k230_lib.board.filesystems import Wish
from k230_lib.board.provisioning import Target
from k230_lib.errors import EnvironmentProblemError, StorageError

pytestmark = pytest.mark.board


@contextmanager
def _refused(bench, words: str) -> Iterator[None]:
    """The block fails with these words, on one line, and the table is as before."""
    before = bench.table_bytes()
    with pytest.raises(StorageError, match=words) as caught:
        yield
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("vb: ") and " Next: " in str(caught.value)
    assert bench.table_bytes() == before


def _corrupt(bench, sector: str) -> None:
    bench.sh(
        "n=$(cat /sys/block/mmcblk1/size);"
        f"tr '\\000' '\\252' </dev/zero | dd of=/dev/mmcblk1 bs=512 count=1 seek=$(({sector}))"
        " conv=notrunc,fsync 2>/dev/null"
    )


def test_sizes_that_cannot_be(bench) -> None:
    """Beyond the card, then smaller than it is; asked before and after the repair."""
    with _refused(bench, r"cannot have 8\.5GB .*nothing was written"):
        bench.foresee("8.5GB")
    with _refused(bench, r"100MiB is less; partitions are never made smaller"):
        bench.foresee("100MiB")
    bench.table()
    with _refused(bench, r"cannot have 2097152s"):
        bench.resize("2097152s")
    assert [bench.resize().changed for _ in range(3)] == [True, False, False]
    with _refused(bench, r"500MiB is less"):
        bench.resize("500MiB")


def test_backup_table_damaged_is_repaired(bench) -> None:
    bench.table()
    assert not bench.table().changed
    for sector in ("n-1", "n-33"):
        _corrupt(bench, sector)
        job = bench.table()
        assert job.changed and "backup table is damaged" in job.message
    assert job.facts.disk.gpt.whole
    assert "gpt" in bench.sh("parted -s /dev/mmcblk1 print 2>&1")


def test_primary_table_damaged_is_repaired_only_when_asked(bench) -> None:
    bench.table()
    good = bench.table_bytes()
    _corrupt(bench, "1")
    with _refused(bench, "primary table is damaged.*repair_primary=true"):
        bench.table()
    with _refused(bench, "primary table is damaged"):
        bench.foresee()
    bench.target = Target(repair_primary=True)
    assert bench.table().changed
    assert bench.table_bytes() == good


def test_primary_damaged_on_a_card_larger_than_its_image(bench) -> None:
    bench.sh("printf x | dd of=/dev/mmcblk1 bs=1 seek=570 conv=notrunc,fsync")
    with _refused(bench, r"primary table is damaged, the backup in sector 1228799 is good"):
        bench.foresee()
    bench.target = Target(repair_primary=True)
    before = bench.files()
    assert [job.changed for job in bench.provision()] == [True, True, True, False]
    assert bench.files() == before


def test_kernel_that_missed_the_new_size_is_told(bench) -> None:
    """The table was written by a run that died before the kernel heard of it."""
    bench.table()
    bench.resize()
    bench.sh("umount /sharefs")
    _kernel_size(bench, 524288, 524288)
    assert bench.mount(check=True).facts.partition.sectors == 524288
    job = bench.resize()
    assert [step.name for step in job.steps] == ["tell-kernel"]
    assert not job.reboot_required
    assert job.facts.partition.last == 2097118


def _kernel_size(bench, start: int, sectors: int) -> None:
    """Give the kernel another size of partition 4 than the table has (BLKPG)."""
    image = str(bench.board.card_image)
    (loop,) = (
        path.parents[1].name
        for path in Path("/sys/block").glob("loop*/loop/backing_file")
        if path.read_text().strip() == image
    )
    data = ctypes.create_string_buffer(
        struct.pack("@qqi64s64s", start * 512, sectors * 512, 4, b"", b"")
    )
    resize = 3
    request = struct.pack("@iiiP", resize, 0, len(data), ctypes.addressof(data))
    with Path(f"/dev/{loop}").open("rb") as device:
        fcntl.ioctl(device, 0x1269, request)


def test_card_full_of_garbage(bench) -> None:
    bench.sh(
        "n=$(cat /sys/block/mmcblk1/size);"
        "dd if=/dev/urandom of=/dev/mmcblk1 bs=512 count=34 conv=notrunc,fsync;"
        "dd if=/dev/urandom of=/dev/mmcblk1 bs=512 count=33 seek=$((n-33)) conv=notrunc,fsync;"
        "dd if=/dev/urandom of=/dev/mmcblk1 bs=512 count=33 seek=1228767 conv=notrunc,fsync"
    )
    for job in (bench.foresee, bench.table, bench.resize, bench.filesystem):
        with _refused(bench, "/dev/mmcblk1: the disk has no partition table"):
            job()


def test_mbr_disk(bench) -> None:
    bench.sh(
        "dd if=/dev/zero of=/dev/mmcblk1 bs=512 count=34 conv=notrunc,fsync;"
        "dd if=/dev/zero of=/dev/mmcblk1 bs=512 count=33 seek=1228767 conv=notrunc,fsync;"
        "printf '\\125\\252' | dd of=/dev/mmcblk1 bs=1 seek=510 conv=notrunc,fsync"
    )
    with _refused(bench, "has an MBR, not a GPT"):
        bench.foresee()


def test_unknown_content_is_left_alone(bench) -> None:
    bench.sh("umount /sharefs; dd if=/dev/urandom of=/dev/mmcblk1p4 bs=65536 count=20 conv=fsync")
    before = bench.sh("sha256sum </dev/mmcblk1p4")
    with _refused(bench, r"mmcblk1p4 holds something .*\(unknown\); it is left alone"):
        bench.foresee()
    with _refused(bench, r"\(unknown\)"):
        bench.filesystem()
    assert bench.sh("sha256sum </dev/mmcblk1p4") == before
    # said in so many words it goes
    bench.wish = Wish(replace=True, preserve=False)
    assert bench.provision()[-1].facts.filesystem.kind == "ext4"


def test_partition_that_is_not_the_expected_one(bench) -> None:
    bench.target = Target(starts=(425984,))
    with _refused(bench, "starts in sector 524288, expected 425984"):
        bench.foresee()
    bench.target = Target(partition=3, starts=())
    with _refused(bench, "holds the root file system"):
        bench.foresee()
    bench.target = Target(partition=7)
    with _refused(bench, "has no partition 7"):
        bench.foresee()


def test_image_without_parted(bench) -> None:
    bench.sh("rm /usr/sbin/parted")
    with _refused(bench, "no parted"):
        bench.foresee()
    # the table can be repaired without it
    assert bench.table().changed


def test_busy_partition_names_process_and_folder(bench) -> None:
    bench.table()
    host = f"root@{bench.board.settings.address}"
    command = ["ssh", *bench.board.ssh_options(), host, "cd /sharefs/app && exec sleep 60"]
    with subprocess.Popen(command) as holder:
        while "sleep 60" not in bench.sh("ps"):
            time.sleep(0.1)
        for job in (bench.foresee, bench.resize, bench.filesystem):
            with _refused(bench, r"/sharefs is in use by sleep 60 \(pid \d+\) in /sharefs/app"):
                job()
        assert bench.mount().changed is False
        holder.terminate()
    bench.sh("kill $(pidof sleep) 2>/dev/null; true")


def test_rtsmart_user_is_stopped_only_when_told(bench) -> None:
    """A file that the sharefs daemon holds is one that an RT-Smart program has open."""
    bench.sh(
        "kill $(pidof sharefs); cp /mnt/sharefs /tmp/real;"
        "printf '#!/bin/sh\\nexec 7<>/sharefs/app/README.txt\\n' >/mnt/sharefs;"
        "sed 1d /tmp/real >>/mnt/sharefs; cd /mnt; setsid ./sharefs </dev/null >/dev/null 2>&1 &"
        "sleep 1; cp /tmp/real /mnt/sharefs.real"
    )
    before = bench.files()
    with _refused(bench, "an RT-Smart program has /sharefs/app/README.txt open"):
        bench.foresee()
    old = bench.mount(check=True).facts.daemon_pid
    bench.sh("cp /mnt/sharefs.real /mnt/sharefs; rm /mnt/sharefs.real")
    bench.target = Target(stop_users=True)
    bench.wish = Wish(replace=True, stop_users=True)
    facts = bench.provision()[-1].facts
    assert bench.files() == before
    assert facts.daemon_pid not in (None, old)


def test_read_only_partition_is_mounted_anew(bench) -> None:
    bench.provision()
    files = bench.files()
    bench.sh("mount -o remount,ro /sharefs")
    assert bench.mount(check=True).changed
    assert bench.mount().facts.sharefs.read_only is False
    assert bench.files() == files
    assert not bench.mount().changed


def test_jobs_leave_the_mount_as_they_found_it(bench) -> None:
    bench.sh("mount -o remount,ro /sharefs")
    bench.table(), bench.resize(), bench.filesystem()
    facts = bench.mount(check=True).facts
    assert facts.sharefs.read_only and facts.filesystem.kind == "ext4"
    bench.sh("umount /sharefs; dd if=/dev/zero of=/dev/mmcblk1p4 bs=65536 count=16 conv=fsync")
    bench.filesystem()
    facts = bench.mount(check=True).facts
    assert facts.sharefs is None and facts.filesystem.kind == "ext4"


def test_dead_daemon_is_started(bench) -> None:
    bench.board.faults.stop_sharefs()
    assert bench.mount(check=True).facts.daemon_pid is None
    job = bench.mount()
    assert [step.name for step in job.steps] == ["daemon"]
    assert job.facts.daemon_pid
    assert not bench.mount().changed


def test_something_else_mounted_there(bench) -> None:
    bench.sh("umount /sharefs; mount -t tmpfs nothing /sharefs")
    for job in (bench.foresee, bench.filesystem, bench.mount):
        with _refused(bench, "nothing .*is mounted at /sharefs"):
            job()
    bench.sh("umount /sharefs")
    assert bench.mount().changed


def test_other_storage_command_is_waited_for(bench) -> None:
    """A mkfs whose connection broke still runs: nothing is decided before it ends."""
    bench.table()
    bench.sh(
        "(exec 9>>/tmp/.k230-storage.lock; flock 9; sleep 3) </dev/null >/dev/null 2>&1 &sleep 0.3"
    )
    begun = time.monotonic()
    assert bench.resize().changed
    assert time.monotonic() - begun > 2


def test_full_controller_disk_is_seen_before_the_first_byte(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage("/")._replace(free=10**6)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    before = bench.files()
    with pytest.raises(EnvironmentProblemError, match=r"vb: .* has 976\.6 KiB free"):
        bench.filesystem()
    assert bench.files() == before
    assert bench.foresee().facts.filesystem.kind == "fat16"


def test_files_that_appear_later_are_kept(bench_with: Callable) -> None:
    bench = bench_with()
    bench.provision()
    bench.sh("echo mine >/sharefs/mine.txt; sync")
    files = bench.files()
    bench.wish = Wish(fstype="ext2", replace=True)
    assert bench.filesystem().facts.filesystem.kind == "ext2"
    assert bench.files() == files
