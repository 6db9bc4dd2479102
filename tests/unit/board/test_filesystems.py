"""What is done with a file system that is there, and what is left alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from k230_lib.board.filesystems import Action, Wish, check_fits, decide, make_commands, plan_grow
from k230_lib.board.records import BoardFacts
from k230_lib.board.signatures import BLANK, UNKNOWN, Filesystem
from k230_lib.errors import InputError, StorageError

Facts = Callable[..., BoardFacts]
_ROOM = 1572831 * 512  # bytes of the provisioned partition
_REPLACE = Wish(replace=True)


def _with(facts: BoardFacts, kind: str, size: int | None = _ROOM) -> BoardFacts:
    return dataclasses.replace(facts, filesystem=Filesystem(kind, bytes=size))


@pytest.mark.parametrize("wish", [Wish(), _REPLACE])
def test_ext_on_the_whole_partition_is_kept(board_facts: Facts, wish: Wish) -> None:
    for name in ("sdk19-provisioned", "sdk18-provisioned"):
        assert decide(board_facts(name), wish).action is Action.KEEP


def test_fat_is_kept_unless_told_to_replace(board_facts: Facts) -> None:
    kept = decide(board_facts(), Wish())
    assert kept.action is Action.KEEP and "replace=true" in kept.reason
    assert decide(board_facts(), _REPLACE).action is Action.REPLACE


def test_auto_makes_what_the_image_can(board_facts: Facts) -> None:
    assert decide(board_facts("sdk19-stock"), _REPLACE).kind == "ext4"
    assert decide(board_facts("sdk18-stock"), _REPLACE).kind == "ext2"


def test_ext4_without_e2fsprogs_is_refused_before_anything(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match=r"no mkfs\.ext4.*1\.9"):
        decide(board_facts("sdk18-stock"), Wish(fstype="ext4", replace=True))


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4"])
def test_small_ext_grows_in_place(board_facts: Facts, kind: str) -> None:
    facts = _with(board_facts("sdk19-provisioned"), kind, 256 * 2**20)
    decision = decide(facts, _REPLACE)
    assert (decision.action, decision.kind) == (Action.GROW, kind)
    script = plan_grow(facts, _REPLACE)[0].script
    assert script.index("umount /sharefs") < script.index("e2fsck -f -p /dev/mmcblk1p4")
    assert script.index("e2fsck") < script.index("resize2fs /dev/mmcblk1p4")


def test_small_ext_without_e2fsprogs_is_kept_or_made_anew(board_facts: Facts) -> None:
    facts = _with(board_facts("sdk18-provisioned"), "ext2", 100 * 2**20)
    assert decide(facts, Wish()).action is Action.KEEP
    assert decide(facts, _REPLACE).action is Action.REPLACE


@pytest.mark.parametrize("kind", [UNKNOWN, "luks", "lvm", "swap", "xfs", "btrfs", "ntfs", "gpt"])
def test_what_cannot_be_saved_is_left_alone(board_facts: Facts, kind: str) -> None:
    facts = _with(board_facts(), kind, None)
    for wish in (Wish(), _REPLACE, Wish(preserve=False)):
        with pytest.raises(StorageError, match=rf"/dev/mmcblk1p4 .*\({kind}\).*preserve=false"):
            decide(facts, wish)
    assert decide(facts, Wish(replace=True, preserve=False)).action is Action.REPLACE


def test_blank_needs_no_permission(board_facts: Facts) -> None:
    assert decide(_with(board_facts(), BLANK, None), Wish()).action is Action.MAKE


def test_file_system_larger_than_its_partition_is_left_alone(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match=r"needs 1\.0 GiB"):
        decide(_with(board_facts("sdk19-provisioned"), "ext4", 2**30), _REPLACE)


def test_ext_is_replaced_by_fat_only_when_both_are_said(board_facts: Facts) -> None:
    facts = board_facts("sdk19-provisioned")
    assert decide(facts, Wish(fstype="vfat")).action is Action.KEEP
    assert decide(facts, Wish(fstype="vfat", replace=True)).kind == "fat32"


def test_no_partition(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match="no partition 7"):
        decide(board_facts(partition_number=7, filesystem=None), Wish())


@pytest.mark.parametrize(
    "values", [{"fstype": "zfs"}, {"label": "a b"}, {"label": "x" * 12}, {"label": "';reboot"}]
)
def test_bad_wishes(values: dict[str, str]) -> None:
    with pytest.raises(InputError):
        Wish(**values)  # type: ignore[arg-type]


def test_busybox_mkfs_gets_only_options_it_has(board_facts: Facts) -> None:
    old = make_commands(board_facts("sdk18-stock"), "ext2", "K230_APP")
    new = make_commands(board_facts("sdk19-stock"), "ext4", "K230_APP")
    assert "mkfs.ext2 -F -m 0 -L K230_APP /dev/mmcblk1p4" in old
    assert any("-E nodiscard" in command for command in new)
    for commands in (old, new):
        assert commands[0].startswith("dd if=/dev/zero of=/dev/mmcblk1p4")


def test_files_must_fit_before_their_file_system_goes(board_facts: Facts) -> None:
    check_fits(board_facts(), 100 * 2**20, "ext4")
    with pytest.raises(StorageError, match=r"250\.0 MiB"):
        check_fits(board_facts(), 250 * 2**20, "ext4")
