"""Plans for table and partition: what is done, and above all what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from k230_lib.board.gpt import Condition
from k230_lib.board.records import BoardFacts, Mount
from k230_lib.board.sizes import parse_size
from k230_lib.board.storage import (
    check_resized,
    plan_gpt_repair,
    plan_resize,
    repaired,
    resized,
    table_text,
)
from k230_lib.errors import BoardCommandError, StorageError

Facts = Callable[..., BoardFacts]


def _grow(facts: BoardFacts, size: str, **options: object):
    return plan_resize(facts, parse_size(size), **options)  # type: ignore[arg-type]


def test_whole_table_needs_nothing(board_facts: Facts) -> None:
    assert plan_gpt_repair(board_facts("sdk19-provisioned")) == ()


def test_repair_is_one_script_with_all_bytes_in_it(board_facts: Facts) -> None:
    (step,) = plan_gpt_repair(board_facts())
    assert "seek=2097119" in step.script and "seek=1 " in step.script
    backup, primary = step.script.index("seek=2097119"), step.script.index("seek=1 ")
    assert backup < primary
    # every byte is checked before the first is written
    assert step.script.rindex("sha256sum") < backup
    assert "parted" not in step.script


def test_plans_are_the_same_for_the_same_facts(board_facts: Facts) -> None:
    assert plan_gpt_repair(board_facts()) == plan_gpt_repair(board_facts())


def test_damaged_primary_is_repaired_only_when_asked(
    board_facts: Facts, changed_table: Facts
) -> None:
    facts = changed_table(
        board_facts("sdk19-provisioned"),
        condition=Condition.PRIMARY_DAMAGED,
        problem="the primary table is damaged, the backup in sector 2097151 is good",
    )
    with pytest.raises(StorageError, match=r"b1: /dev/mmcblk1: .*repair_primary=true"):
        plan_gpt_repair(facts)
    (step,) = plan_gpt_repair(facts, repair_primary=True)
    assert "count=33" in step.script.partition("seek=1 ")[2]


@pytest.mark.parametrize("condition", [Condition.LOST, Condition.NOT_GPT])
def test_disk_without_table_is_refused(
    board_facts: Facts, changed_table: Facts, condition: Condition
) -> None:
    facts = board_facts()
    assert facts.disk is not None
    gpt = dataclasses.replace(facts.disk.gpt, condition=condition, table=None, problem="is no GPT")
    facts = dataclasses.replace(facts, disk=dataclasses.replace(facts.disk, gpt=gpt))
    for plan in (plan_gpt_repair, lambda f: _grow(f, "100%")):
        with pytest.raises(StorageError, match=r"/dev/mmcblk1: is no GPT"):
            plan(facts)


def test_kernel_and_table_must_agree_on_starts(board_facts: Facts, changed_table: Facts) -> None:
    facts = board_facts("sdk19-provisioned")
    assert facts.disk is not None and facts.disk.gpt.table is not None
    entries = facts.disk.gpt.table.entries
    for number in (1, 4):
        moved = tuple(
            dataclasses.replace(entry, first=entry.first + 8) if entry.number == number else entry
            for entry in entries
        )
        with pytest.raises(StorageError, match=f"mmcblk1p{number} starts in sector"):
            _grow(changed_table(facts, table={"entries": moved}), "100%")


def test_grow_to_the_end_is_one_parted_call_between_umount_and_mount(board_facts: Facts) -> None:
    growth = _grow(repaired(board_facts()), "100%")
    assert growth.last == 2097152 - 34
    (step,) = growth.steps
    lines = step.script.splitlines()
    assert "parted -s -a minimal /dev/mmcblk1 unit s resizepart 4 2097118s" in lines
    assert lines.index("umount /sharefs") < lines.index(
        "parted -s -a minimal /dev/mmcblk1 unit s resizepart 4 2097118s"
    )
    assert any(
        line.startswith("trap") and "mount /dev/mmcblk1p4 /sharefs" in line for line in lines
    )


def test_table_must_be_whole_first(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match="gpt_repair"):
        _grow(board_facts(), "100%")


@pytest.mark.parametrize("size", ["100%", "1572831s", "1572830s", "767.9MiB"])
def test_the_size_it_has_is_no_change_however_it_is_written(board_facts: Facts, size: str) -> None:
    assert not _grow(board_facts("sdk19-provisioned"), size).changed


def test_beyond_the_card_is_refused_with_both_numbers(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match=r"8\.5GB \(7\.9 GiB\).*768\.0 MiB.*nothing was written"):
        _grow(repaired(board_facts()), "8.5GB")


def test_one_sector_too_many_is_refused(board_facts: Facts) -> None:
    facts = repaired(board_facts())
    room = 2097118 - 524288 + 1
    assert _grow(facts, f"{room}s").last == 2097118
    with pytest.raises(StorageError):
        _grow(facts, f"{room + 1}s")


def test_never_smaller(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match=r"768\.0 MiB .* 300MiB is less"):
        _grow(board_facts("sdk19-provisioned"), "300MiB")


def test_other_start_than_expected(board_facts: Facts) -> None:
    facts = repaired(board_facts())
    with pytest.raises(StorageError, match=r"sector 524288, expected 425984"):
        _grow(facts, "100%", starts=(425984,))
    assert _grow(facts, "100%", starts=()).changed


@pytest.mark.parametrize(("number", "words"), [(3, "root file system"), (5, "no partition 5")])
def test_other_partition_than_expected(board_facts: Facts, number: int, words: str) -> None:
    facts = repaired(board_facts(partition_number=number))
    with pytest.raises(StorageError, match=words):
        _grow(facts, "100%", starts=())


def test_partition_in_front_of_another_stops_at_it(board_facts: Facts) -> None:
    facts = dataclasses.replace(repaired(board_facts()), partition_number=1)
    with pytest.raises(StorageError, match="card has"):
        _grow(facts, "21MiB", starts=())
    assert not _grow(facts, "100%", starts=()).changed


def test_swap_is_refused(board_facts: Facts) -> None:
    facts = repaired(board_facts(swaps=("/dev/mmcblk1p4",)))
    with pytest.raises(StorageError, match="holds swap"):
        _grow(facts, "100%")


def test_image_without_parted(board_facts: Facts) -> None:
    facts = repaired(board_facts(tools={"busybox": ""}))
    with pytest.raises(StorageError, match="no parted"):
        _grow(facts, "100%")
    # nothing to do needs no tool
    done = dataclasses.replace(board_facts("sdk19-provisioned"), tools={})
    assert not _grow(done, "100%").changed


def test_busy_partition_names_who(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match=r"in use by .*sleep 5 \(pid 256\) in /sharefs/APP"):
        _grow(repaired(board_facts("sdk19-held")), "100%")


def test_rtsmart_programs_are_cut_off_only_when_told(board_facts: Facts) -> None:
    held = board_facts("sdk19-held")
    daemon = dataclasses.replace(held.holders[0], pid=held.daemon_pid, command="./sharefs")
    facts = repaired(dataclasses.replace(held, holders=(daemon,)))
    with pytest.raises(StorageError, match=r"RT-Smart program has /sharefs/APP open.*stop_users"):
        _grow(facts, "100%")
    (step,) = _grow(facts, "100%", stop_users=True).steps
    assert f"kill {held.daemon_pid}" in step.script and "./sharefs" in step.script


def test_other_storage_command_still_running(board_facts: Facts) -> None:
    with pytest.raises(StorageError, match="has not ended"):
        plan_gpt_repair(board_facts(busy=True))


def test_kernel_that_missed_the_new_size_is_told_again(board_facts: Facts) -> None:
    facts = board_facts("sdk19-provisioned")
    assert facts.disk is not None
    old = tuple(
        dataclasses.replace(part, sectors=524288) if part.number == 4 else part
        for part in facts.disk.partitions
    )
    facts = dataclasses.replace(facts, disk=dataclasses.replace(facts.disk, partitions=old))
    growth = _grow(facts, "100%")
    assert [step.name for step in growth.steps] == ["tell-kernel"]
    assert growth.last == 2097118


def test_kernel_with_more_than_the_table_is_never_cut(board_facts: Facts) -> None:
    """A table restored from an old backup: the running system may have a larger file system."""
    old = board_facts("sdk19-provisioned")
    assert old.disk is not None
    table = repaired(board_facts()).disk.gpt  # type: ignore[union-attr]
    facts = dataclasses.replace(old, disk=dataclasses.replace(old.disk, gpt=table))
    with pytest.raises(StorageError, match="1572831 sectors for the kernel, 524288 in the table"):
        _grow(facts, "300MiB")
    assert _grow(facts, "100%").last == 2097118


def test_after_growing_everything_else_must_be_as_before(board_facts: Facts) -> None:
    before = repaired(board_facts())
    after = resized(before, 2097118)
    assert check_resized(before, after, 2097118)
    assert after.disk is not None
    kernel_old = dataclasses.replace(
        after,
        disk=dataclasses.replace(after.disk, partitions=before.disk.partitions),  # type: ignore[union-attr]
    )
    assert not check_resized(before, kernel_old, 2097118)
    with pytest.raises(BoardCommandError, match=r"ends in sector 1048575, expected 2097118"):
        check_resized(before, before, 2097118)


def test_mounts_elsewhere_are_put_back_too(board_facts: Facts) -> None:
    facts = repaired(board_facts())
    extra = Mount("/dev/mmcblk1p4", "/mnt/x", "vfat", ("ro",), "259:3")
    facts = dataclasses.replace(facts, mounts=(*facts.mounts, extra))
    script = _grow(facts, "100%").steps[0].script
    assert script.index("umount /mnt/x") < script.index("umount /sharefs")
    assert "mount -o ro /dev/mmcblk1p4 /mnt/x" in script


def test_table_text_shows_what_changes(board_facts: Facts) -> None:
    before, after = (
        table_text(repaired(board_facts())),
        table_text(board_facts("sdk19-provisioned")),
    )
    changed = set(before.splitlines()) ^ set(after.splitlines())
    assert {line[0] for line in changed} == {"4"}
