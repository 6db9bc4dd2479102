"""The controller's record: it survives anything, and is never applied to the wrong card."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from k230_lib.board.filesystems import Action, Decision, Wish
from k230_lib.board.journal import Folder, Journal, Phase, card_identity
from k230_lib.board.listing import MIB, Manifest, Piece, SavedFile
from k230_lib.board.records import BoardFacts
from k230_lib.board.replacement_plan import new_journal, plan_replacement
from k230_lib.errors import StorageError

Facts = Callable[..., BoardFacts]
_DATA = bytes(range(256)) * 8192  # 2 MiB
_FILE = SavedFile("f", hashlib.sha256(_DATA).hexdigest(), len(_DATA), False)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, "b1")


@pytest.fixture
def journal(board_facts: Facts) -> Journal:
    return new_journal(board_facts(), Decision(Action.REPLACE, "ext4", ""), Wish(replace=True))


def test_what_is_saved_is_loaded(folder: Folder, journal: Journal) -> None:
    assert folder.load() is None
    full = dataclasses.replace(journal, manifest=Manifest(("d",), (_FILE,), (("l", "t"),)))
    folder.save(full)
    assert folder.load() == full


def test_new_journal_remembers_how_things_were(board_facts: Facts, journal: Journal) -> None:
    assert (journal.phase, journal.old_kind, journal.mounted) == (Phase.SAVING, "fat16", "rw")
    thrown = new_journal(
        board_facts(), Decision(Action.REPLACE, "ext4", ""), Wish(replace=True, preserve=False)
    )
    assert thrown.phase is Phase.MAKING and not thrown.preserve


def test_unreadable_journal_is_an_error_that_warns(folder: Folder, journal: Journal) -> None:
    folder.save(journal)
    (folder.path / "journal.json").write_text('{"schema_version": 1, "phase"')
    with pytest.raises(StorageError, match="do not delete it unseen"):
        folder.load()
    (folder.path / "journal.json").write_text('{"schema_version": 99}')
    with pytest.raises(StorageError, match="another version"):
        folder.load()


def test_half_written_journal_does_not_replace_the_good_one(
    folder: Folder, journal: Journal
) -> None:
    folder.save(journal)
    (folder.path / "journal.new").write_text("{")
    assert folder.load() == journal


def test_blob_gets_its_name_only_when_whole_and_right(folder: Folder, journal: Journal) -> None:
    folder.save(journal)
    folder.store(Piece(_FILE, 0, 1), _DATA[:MIB])
    assert not folder.has(_FILE)
    assert folder.partial((_FILE,)) == {_FILE.sha256: MIB}
    folder.store(Piece(_FILE, 1, 1), _DATA[MIB:])
    assert folder.has(_FILE)
    assert folder.blob(_FILE).read_bytes() == _DATA
    # damage on the controller's disk is seen before the board's copy is given up
    folder.blob(_FILE).write_bytes(_DATA[:-1] + b"!")
    assert not folder.has(_FILE)


def test_bytes_that_differ_from_the_boards_checksum(folder: Folder, journal: Journal) -> None:
    folder.save(journal)
    with pytest.raises(StorageError, match="f came with other bytes"):
        folder.store(Piece(_FILE), b"x" * len(_DATA))
    assert folder.partial((_FILE,)) == {}


def test_discard_leaves_nothing(folder: Folder, journal: Journal) -> None:
    folder.save(journal)
    folder.store(Piece(_FILE), _DATA)
    folder.discard()
    assert not folder.path.exists()
    folder.discard()


def test_other_controllers_run_is_named(
    folder: Folder, journal: Journal, board_facts: Facts
) -> None:
    mine = board_facts(marker=f"{journal.id} here:/folder")
    folder.require_own(mine, journal)
    folder.require_own(board_facts(), None)
    foreign = board_facts(marker="0123456789ab lab-pc:/home/x/.k230/storage/b1")
    for own in (None, journal):
        with pytest.raises(StorageError, match=r"saved to lab-pc:/home/x"):
            folder.require_own(foreign, own)


def test_identity_tells_cards_from_the_same_image_apart(
    board_facts: Facts,
) -> None:
    facts = board_facts()
    assert facts.disk is not None
    other = dataclasses.replace(facts, disk=dataclasses.replace(facts.disk, card_id="0353445344"))
    assert card_identity(facts) != card_identity(other)


def test_check_mode_and_run_have_the_same_scripts(
    folder: Folder, journal: Journal, board_facts: Facts
) -> None:
    plans = [
        plan_replacement(board_facts(), journal, folder, stop_users=False).remaining(journal)
        for _ in range(2)
    ]
    assert plans[0] == plans[1]
    names = [step.name for step in plans[0]]
    assert names == ["list", "save", "make", "restore", "verify", "publish"]
    later = dataclasses.replace(journal, phase=Phase.RESTORING)
    plan = plan_replacement(board_facts(), later, folder, stop_users=False)
    assert [step.name for step in plan.remaining(later)] == ["restore", "verify", "publish"]


def test_making_needs_an_unbroken_read_only_mount(
    folder: Folder, journal: Journal, board_facts: Facts
) -> None:
    script = plan_replacement(board_facts(), journal, folder, stop_users=False).make.script
    check = script.index("not read-only any more")
    assert check < script.index("umount /sharefs") < script.index("mkfs.ext4")
