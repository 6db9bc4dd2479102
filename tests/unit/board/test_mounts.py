"""Mounting: the end state, and what is in the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from k230_lib.board.mounts import check_mounted, persistent, plan_mount, plan_unmount
from k230_lib.board.records import BoardFacts, Mount
from k230_lib.board.signatures import BLANK, Filesystem
from k230_lib.errors import StorageError

Facts = Callable[..., BoardFacts]


def _mounts(facts: BoardFacts, **changes: object) -> BoardFacts:
    """The facts with another mount at /sharefs, or with none."""
    others = tuple(mount for mount in facts.mounts if mount.mountpoint != "/sharefs")
    if not changes:
        return dataclasses.replace(facts, mounts=others)
    assert facts.sharefs is not None
    fresh = dataclasses.replace(facts.sharefs, **changes)  # type: ignore[arg-type]
    return dataclasses.replace(facts, mounts=(*others, fresh))


def test_mounted_and_daemon_running_needs_nothing(board_facts: Facts) -> None:
    for name in ("sdk19-stock", "sdk19-provisioned", "sdk18-provisioned"):
        assert plan_mount(board_facts(name)) == ()
        assert check_mounted(board_facts(name)) == ""


def test_unmounted_is_checked_and_mounted_without_a_type(board_facts: Facts) -> None:
    (step,) = plan_mount(_mounts(board_facts("sdk19-provisioned")))
    lines = step.script.splitlines()
    assert "mount /dev/mmcblk1p4 /sharefs 9>&-" in lines
    assert "e2fsck -p /dev/mmcblk1p4 || [ $? -le 1 ]" in lines
    assert not any(line.startswith("umount") for line in lines)


def test_image_without_checkers_mounts_all_the_same(board_facts: Facts) -> None:
    (step,) = plan_mount(_mounts(board_facts("sdk18-provisioned")))
    assert "e2fsck" not in step.script and "mount /dev/mmcblk1p4 /sharefs" in step.script


def test_read_only_is_mounted_anew(board_facts: Facts) -> None:
    facts = _mounts(board_facts("sdk19-provisioned"), options=("ro", "relatime"))
    assert check_mounted(facts) == "/sharefs is read-only"
    (step,) = plan_mount(facts)
    assert step.script.index("umount /sharefs") < step.script.index("mount /dev/mmcblk1p4")


def test_read_only_and_busy_names_the_holder(board_facts: Facts) -> None:
    facts = _mounts(board_facts("sdk19-held"), options=("ro",))
    with pytest.raises(StorageError, match=r"sleep 5 \(pid 256\)"):
        plan_mount(facts)


def test_something_else_there_is_left_alone(board_facts: Facts) -> None:
    nfs = {"source": "10.0.0.1:/srv", "fstype": "nfs", "dev": "0:99"}
    facts = _mounts(board_facts("sdk19-provisioned"), **nfs)
    with pytest.raises(StorageError, match=r"10\.0\.0\.1:/srv \(nfs\) is mounted at /sharefs"):
        plan_mount(facts)
    assert "not /dev/mmcblk1p4" in check_mounted(facts)


def test_device_under_another_name_is_the_same_device(board_facts: Facts) -> None:
    facts = _mounts(board_facts("sdk19-provisioned"), source="/dev/disk/by-label/K230_APP")
    assert facts.partition is not None and facts.sharefs is not None
    assert facts.sharefs.dev == facts.partition.dev
    assert plan_mount(facts) == ()


def test_blank_partition_cannot_be_mounted(board_facts: Facts) -> None:
    facts = dataclasses.replace(_mounts(board_facts()), filesystem=Filesystem(BLANK))
    with pytest.raises(StorageError, match="holds no file system"):
        plan_mount(facts)
    # in check mode the filesystem module would have made one
    assert [step.name for step in plan_mount(facts, predicted=True)] == ["mount"]


def test_dead_daemon_is_started_again(board_facts: Facts) -> None:
    (step,) = plan_mount(board_facts("sdk19-stock", daemon_pid=None))
    assert step.name == "daemon" and "./sharefs" in step.script and "9>&-" in step.script
    assert plan_mount(board_facts("sdk19-stock", daemon_pid=None), daemon=False) == ()
    # an image without RT-Smart has none to start
    assert plan_mount(board_facts("sdk19-stock", daemon_pid=None, daemon_program="")) == ()


def test_unmount_takes_every_mount_of_the_device(board_facts: Facts) -> None:
    facts = board_facts("sdk19-provisioned")
    extra = Mount("/dev/mmcblk1p4", "/mnt/x", "ext4", ("rw",), "259:3")
    facts = dataclasses.replace(facts, mounts=(*facts.mounts, extra))
    (step,) = plan_unmount(facts)
    assert step.script.index("umount /mnt/x") < step.script.index("umount /sharefs")
    assert plan_unmount(_mounts(board_facts())) == ()


def test_persistence_is_what_the_boot_scripts_say(board_facts: Facts) -> None:
    assert persistent(board_facts())
    assert not persistent(board_facts(boot_mount=()))
    assert not persistent(board_facts(boot_mount=("# mount /dev/mmcblk1p4 /sharefs",)))
    assert not persistent(board_facts(boot_mount=("mount /dev/mmcblk0p4 /sharefs",)))
