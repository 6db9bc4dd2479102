"""Facts, read from recorded answers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from k230_lib.board.facts import parse_facts, read_facts
from k230_lib.board.facts_script import facts_script
from k230_lib.board.records import BoardFacts
from k230_lib.errors import BoardCommandError, InputError


def test_stock_board(board_facts: Callable[..., BoardFacts]) -> None:
    facts = board_facts("sdk19-stock")
    assert facts.release == "v1.9-virtual"
    assert (facts.kernel, facts.machine, facts.hostname) == ("5.10.4", "riscv64", "canaan")
    assert facts.image == "linux+rtsmart"
    assert facts.has("parted", "mkfs.ext4", "resize2fs") and not facts.has("python3")
    assert facts.disk is not None and facts.disk.device == "/dev/mmcblk1"
    part = facts.partition
    assert part is not None
    assert (part.device, part.start, part.last) == ("/dev/mmcblk1p4", 524288, 1048575)
    assert facts.filesystem is not None
    assert (facts.filesystem.kind, facts.filesystem.label) == ("fat16", "K230_APP")
    assert facts.filesystem.bytes is not None
    assert 255 * 2**20 < facts.filesystem.bytes <= 256 * 2**20
    mount = facts.sharefs
    assert mount is not None and mount.source == "/dev/mmcblk1p4" and not mount.read_only
    assert facts.mounts_of(part) == (mount,)
    assert not facts.busy and not facts.marker


def test_older_image_has_no_e2fsprogs_and_another_start(
    board_facts: Callable[..., BoardFacts],
) -> None:
    facts = board_facts("sdk18-stock")
    assert facts.has("parted", "mkfs.ext2") and not facts.has("mkfs.ext4")
    assert facts.partition is not None and facts.partition.start == 425984


def test_provisioned_boards_show_what_was_made(board_facts: Callable[..., BoardFacts]) -> None:
    new, old = board_facts("sdk19-provisioned"), board_facts("sdk18-provisioned")
    assert new.disk is not None and new.disk.gpt.whole
    assert new.filesystem is not None and new.filesystem.kind == "ext4"
    assert old.filesystem is not None and old.filesystem.kind == "ext2"
    for facts in (new, old):
        assert facts.partition is not None and facts.filesystem is not None
        assert facts.partition.last == 2097152 - 34
        assert facts.filesystem.bytes is not None
        assert 0 <= facts.partition.sectors * 512 - facts.filesystem.bytes < 4096
        assert facts.filesystem.uuid


def test_holders_are_named_with_command_and_paths(board_facts: Callable[..., BoardFacts]) -> None:
    holders = board_facts("sdk19-held").holders
    assert [holder.pid for holder in holders] == [255, 256]
    assert str(holders[1]) == "sleep 5 (pid 256)"
    assert holders[1].paths == ("/sharefs/APP", "/sharefs/APP/README.TXT")


def test_json_is_plain_and_says_where_things_are(board_facts: Callable[..., BoardFacts]) -> None:
    data = json.loads(json.dumps(board_facts("sdk19-provisioned").to_json()))
    assert data["disk"]["gpt"]["condition"] == "whole"
    assert data["sharefs"]["fstype"] == "ext4"
    assert data["sharefs"]["free_bytes"] > 500 * 1024 * 1024
    assert data["data_partition"]["last"] == 2097118


def test_clock_skew_is_the_boards_clock_minus_ours(transcript: Callable[[str], str]) -> None:
    text = transcript("sdk19-stock")
    clock = parse_facts(text, board="b1", now=0.0).clock_s
    assert parse_facts(text, board="b1", now=clock + 90.0).clock_skew_s == -90.0
    # a board without a battery starts in 1970
    text = text.replace(str(clock), "137")
    assert parse_facts(text, board="b1", now=1.0e9).clock_skew_s < -9.0e8


def test_cut_off_answer_is_an_error_with_the_boards_name(
    transcript: Callable[[str], str],
) -> None:
    text = transcript("sdk19-stock")
    with pytest.raises(BoardCommandError, match=r"b7: .*cut off"):
        parse_facts(text[: len(text) // 2], board="b7", now=0.0)


@pytest.mark.parametrize("text", ["", "login: ", "msh />", "@@end\n"])
def test_something_else_answers(text: str) -> None:
    with pytest.raises(BoardCommandError, match="b7: "):
        parse_facts(text, board="b7", now=0.0)


def test_damaged_sectors_in_the_answer_are_noticed(transcript: Callable[[str], str]) -> None:
    text = transcript("sdk19-stock")
    head, _, rest = text.partition("@@gpt_primary\n")
    damaged = head + "@@gpt_primary\n" + "AAAA" + rest[4:]
    with pytest.raises(BoardCommandError, match="damaged in the answer"):
        parse_facts(damaged, board="b7", now=0.0)


def test_image_without_the_second_system(transcript: Callable[[str], str]) -> None:
    text = transcript("sdk19-stock").replace("@@daemon_program\n/mnt/sharefs", "@@daemon_program")
    lines = text.split("\n")
    at = lines.index("@@daemon")
    lines[at + 1] = ""
    facts = parse_facts(
        "\n".join(lines).replace("@@tools\n", "@@tools\npython3 Python 3.11\n"),
        board="b1",
        now=0.0,
    )
    assert facts.image == "linux-only"


def test_root_that_is_no_card(transcript: Callable[[str], str]) -> None:
    text = transcript("sdk19-stock")
    head, _, _ = text.partition("@@disk\n")
    facts = parse_facts(head + "@@disk\n\n@@end\n", board="b1", now=0.0)
    assert facts.disk is None and facts.partition is None and facts.filesystem is None
    assert facts.to_json()["disk"] is None


def test_emmc_has_another_name(transcript: Callable[[str], str]) -> None:
    text = transcript("sdk19-stock").replace("mmcblk1", "mmcblk0")
    facts = parse_facts(text, board="b1", now=0.0)
    assert facts.disk is not None and facts.disk.device == "/dev/mmcblk0"


def test_read_only_by_mount_or_by_super_block(transcript: Callable[[str], str]) -> None:
    text = transcript("sdk19-provisioned")
    for old, new in (
        (" /sharefs rw,relatime", " /sharefs ro,relatime"),
        ("ext4 /dev/mmcblk1p4 rw", "ext4 /dev/mmcblk1p4 ro"),
    ):
        assert old in text
        mount = parse_facts(text.replace(old, new), board="b1", now=0.0).sharefs
        assert mount is not None and mount.read_only and "rw" not in mount.options


@pytest.mark.parametrize("point", ["sharefs", "/share fs", "/x;reboot", "/a/", "/$(id)", ""])
def test_mount_points_that_are_no_plain_paths_never_reach_a_shell(point: str) -> None:
    class Shell:
        board = "b1"

        def run(self, *args: object, **keywords: object) -> None:
            raise AssertionError("the board was asked")

    with pytest.raises(InputError, match="mount point"):
        read_facts(Shell(), mountpoint=point)  # type: ignore[arg-type]


def test_script_uses_only_what_the_stock_image_has() -> None:
    script = facts_script()
    for absent in ("stat ", "lsblk", "blockdev", "timeout ", "findmnt", "sfdisk", "pgrep"):
        assert absent not in script
