"""Make or replace the file system on the data partition without losing a file.

The order is: make it read-only, list and hash, copy to the controller, verify, make the new one,
send back to a staging directory, mount anew, verify, move into place. :class:`Folder` keeps the
journal; :meth:`Replacement.run` starts from whatever phase it tells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..errors import BoardCommandError, StorageError, TransferError
from .facts import read_facts
from .filesystems import check_fits
from .journal import Folder, Journal, Phase, card_identity
from .listing import STAGING, Manifest, missing, parcels, parse_listing, pieces, write_pieces
from .records import BoardFacts
from .replacement_plan import plan_replacement
from .shell import BoardShell
from .signatures import BLANK, MOUNTABLE_KINDS, UNKNOWN
from .sizes import human
from .steps import Step, run_step

_ATTEMPTS = 3


class Replacement:
    """Runs a replacement to its end, from the phase that the journal tells."""

    def __init__(
        self,
        shell: BoardShell,
        folder: Folder,
        *,
        stop_users: bool = False,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._shell = shell
        self._folder = folder
        self._stop_users = stop_users
        self._progress = progress

    def run(self, facts: BoardFacts, journal: Journal) -> BoardFacts:
        """Do what is left.

        Args:
            facts: the board as it is now.
            journal: a new one, or the one that an earlier run left.

        Returns:
            The facts after it.

        Raises:
            StorageError: the board's state contradicts the journal; nothing is overwritten.
            BoardUnreachableError: the connection broke; the next run goes on.
        """
        self._require_same_card(facts, journal)
        journal = self._folder.save(journal)
        journal = self._look(facts, journal)
        fresh = journal.phase is not Phase.RESTORING
        if journal.phase is Phase.SAVING:
            journal = self._save(facts, journal)
        if fresh:
            journal = self._make(facts, journal)
        if journal.preserve:
            self._restore(facts, journal, fresh=fresh)
        after = self._read(facts)
        if journal.preserve and journal.mounted == "rw" and after.sharefs is None:
            raise BoardCommandError(
                f"{facts.mountpoint} is not mounted after all files were put back",
                board=facts.board,
                hint="run again.",
            )
        self._folder.discard()
        return after

    def _look(self, facts: BoardFacts, journal: Journal) -> Journal:
        """Correct the phase by what is there: a step may have run without its answer arriving."""
        now = facts.filesystem
        kind, uuid = (now.kind, now.uuid) if now else (BLANK, "")
        old = (kind, uuid) == (journal.old_kind, journal.old_uuid)
        if journal.phase is Phase.SAVING and not old:
            raise self._contradiction(facts, kind, f"the {journal.old_kind} that is to be saved")
        if journal.phase is Phase.RESTORING and kind == BLANK:
            # somebody blanked it; all files are here
            return self._folder.save(dataclasses.replace(journal, phase=Phase.MAKING))
        if journal.phase is Phase.RESTORING and uuid != journal.new_uuid:
            raise self._contradiction(facts, kind, f"the {journal.kind} that was made for them")
        if journal.phase is not Phase.MAKING:
            return journal
        if old and journal.preserve and not facts.marker:
            raise self._contradiction(facts, kind, "the note of the run that saved its files")
        if old and journal.preserve:
            # the partition was not touched yet; its files may have changed since they were saved
            return self._folder.save(dataclasses.replace(journal, phase=Phase.SAVING))
        if old or kind in (BLANK, UNKNOWN):
            return journal
        plan = plan_replacement(facts, journal, self._folder, stop_users=self._stop_users)
        if kind in MOUNTABLE_KINDS and self._listing(plan.list).empty:
            return journal
        if kind != journal.kind:
            raise self._contradiction(facts, kind, f"an empty {journal.kind}")
        # it was made and somebody has put files on it since: they stay, the saved ones are added
        return self._folder.save(dataclasses.replace(journal, phase=Phase.RESTORING, new_uuid=uuid))

    def _save(self, facts: BoardFacts, journal: Journal) -> Journal:
        plan = plan_replacement(facts, journal, self._folder, stop_users=self._stop_users)
        manifest = self._listing(plan.list)
        check_fits(facts, manifest.bytes, journal.kind)
        _require_names(facts, manifest, journal.kind)
        journal = self._folder.save(dataclasses.replace(journal, manifest=manifest))
        wanted = tuple(file for file in manifest.files if not self._folder.has(file))
        self._folder.require_space(wanted)
        done = manifest.bytes - sum(file.bytes for file in wanted)
        for batch in pieces(wanted, self._folder.partial(wanted)):
            orders = "".join(piece.order for piece in batch).encode("utf-8", "surrogateescape")
            data = run_step(self._shell, plan.save, stdin=orders)
            if not write_pieces(batch, data, self._folder.store):
                raise TransferError(
                    f"{len(data)} bytes of files arrived, expected "
                    f"{sum(piece.bytes for piece in batch)}",
                    board=facts.board,
                    hint="run again, it goes on from here.",
                )
            done += len(data)
            self._progress(f"saved {human(done)} of {human(manifest.bytes)}")
        return journal

    def _make(self, facts: BoardFacts, journal: Journal) -> Journal:
        damaged = [file for file in journal.manifest.files if not self._folder.has(file)]
        if damaged:
            raise StorageError(
                f"the saved copy of {damaged[0].path} in {self._folder.path} is not whole",
                board=facts.board,
                hint="check the controller's disk, then run again.",
            )
        plan = plan_replacement(facts, journal, self._folder, stop_users=self._stop_users)
        self._folder.save(dataclasses.replace(journal, phase=Phase.MAKING))
        run_step(self._shell, plan.make)
        made = self._read(facts).filesystem
        if made is None or made.kind != journal.kind:
            raise BoardCommandError(
                f"the partition holds {made.kind if made else 'nothing'} after {journal.kind} was "
                "made",
                board=facts.board,
                hint=f"saved files are in {self._folder.path}; run again.",
            )
        return self._folder.save(
            dataclasses.replace(journal, phase=Phase.RESTORING, new_uuid=made.uuid)
        )

    def _restore(self, facts: BoardFacts, journal: Journal, *, fresh: bool) -> None:
        plan = plan_replacement(facts, journal, self._folder, stop_users=self._stop_users)
        rest = journal.manifest
        if not fresh:
            rest = missing(rest, self._listing(plan.verify), board=facts.board)
        for _ in range(_ATTEMPTS):
            if rest.empty:
                break
            done = 0
            for parcel in parcels(rest, self._folder.blob):
                run_step(self._shell, plan.restore, stdin=parcel)
                done += len(parcel)
                self._progress(f"put back {human(done)} of {human(rest.bytes)}")
            rest = missing(journal.manifest, self._listing(plan.verify), board=facts.board)
        if not rest.empty:
            names = [file.path for file in rest.files] or list(rest.dirs)
            raise TransferError(
                f"{names[0]} is not on the board as it was sent, after {_ATTEMPTS} attempts",
                board=facts.board,
                hint=f"the files are safe in {self._folder.path}; check the card and run again.",
            )
        run_step(self._shell, plan.publish)

    def _listing(self, step: Step) -> Manifest:
        text = run_step(self._shell, step).decode("utf-8", "surrogateescape")
        return parse_listing(text, board=self._shell.board)

    def _read(self, facts: BoardFacts) -> BoardFacts:
        return read_facts(self._shell, facts.partition_number, facts.mountpoint)

    def _require_same_card(self, facts: BoardFacts, journal: Journal) -> None:
        if journal.card != card_identity(facts):
            raise StorageError(
                f"{self._folder.path} has files saved from another card than the one in the board",
                board=facts.board,
                hint="put the other card in, or move that folder away if its files are not needed.",
            )

    def _contradiction(self, facts: BoardFacts, kind: str, expected: str) -> StorageError:
        hint = "save what is on it, blank its first MiB (dd if=/dev/zero), then run again."
        if expected.endswith("to be saved"):
            hint = "put its card back as it was, or move that folder away if nothing is missed."
        return StorageError(
            f"the partition holds {kind}, expected {expected}; it is left alone, the files saved "
            f"from it are in {self._folder.path}",
            board=facts.board,
            hint=hint,
        )


def _require_names(facts: BoardFacts, manifest: Manifest, kind: str) -> None:
    """Refuse names that could not be put back.

    FAT has no symbolic links and takes names for equal that differ in case only.
    """
    if STAGING in manifest.dirs:
        raise StorageError(
            f"{facts.mountpoint}/{STAGING} is there already, from some other run",
            board=facts.board,
            hint="look into it and rename or delete it, then run again.",
        )
    if kind != "fat32":
        return
    names = [path.lower() for path in (*manifest.dirs, *(file.path for file in manifest.files))]
    twice = sorted({name for name in names if names.count(name) > 1})
    if manifest.links or twice:
        what = (
            f"the link {manifest.links[0][0]}" if manifest.links else f"two names like {twice[0]}"
        )
        raise StorageError(
            f"{kind} cannot hold {what}; nothing was written",
            board=facts.board,
            hint="rename or delete it, or ask for ext4.",
        )
