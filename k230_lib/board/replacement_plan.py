"""The scripts that make or replace a file system, and the journal that such a run begins with."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ..errors import StorageError
from .facts_script import MARKER
from .filesystems import Action, Decision, Wish, make_commands
from .journal import Folder, Journal, Phase, card_identity
from .listing import LIST_COMMANDS, STAGING
from .mounts import (
    daemon_holds,
    mount_command,
    mounted_test,
    read_only_test,
    require_free,
    start_daemon_command,
    stop_daemon_commands,
)
from .records import BoardFacts
from .signatures import BLANK
from .steps import Step, guard, guarded_step

_FETCH = """cd {mount} || exit 1
while IFS= read -r line; do
  s=${{line%% *}}; line=${{line#* }}; n=${{line%% *}}; p=${{line#* }}
  if [ "$n" = 0 ]; then cat "$p" || exit 1
  else dd if="$p" bs=1048576 skip="$s" count="$n" 2>/dev/null || exit 1; fi
done
"""
_RESTORE = """mkdir -p {mount}/{staging} && cd {mount}/{staging} || exit 1
IFS= read -r line
case $line in
tar) tar -xf - || exit 1 ;;
*) s=${{line%% *}}; line=${{line#* }}; m=${{line%% *}}; p=${{line#* }}
  [ "$s" != 0 ] || {{ : >"$p" && chmod "$m" "$p"; }} || exit 1
  dd of="$p" bs=1048576 seek="$s" conv=notrunc 2>/dev/null || exit 1 ;;
esac
sync
"""
_PUBLISH = (
    "if [ -d {staging} ]; then cd {staging}",
    'find . -type d | while IFS= read -r d; do mkdir -p "../$d"; done',
    "find . ! -type d >/tmp/.k230-publish",
    "while IFS= read -r f; do",
    '  if [ -e "../$f" ] || [ -L "../$f" ]; then echo "$f is there already"; exit 1; fi',
    '  mv "$f" "../$f"',
    "done </tmp/.k230-publish",
    "rm /tmp/.k230-publish; cd ..",
    'find {staging} -depth -type d | while IFS= read -r d; do rmdir "$d"; done; fi',
    "cd /; sync",
)


@dataclass(frozen=True)
class Plan:
    """The steps of a replacement, with exactly the scripts that are run.

    ``save`` and ``restore`` get names (and bytes) on standard input and run once per transfer, so
    their scripts are the same for each.
    """

    list: Step
    save: Step
    make: Step
    restore: Step
    verify: Step
    publish: Step

    def remaining(self, journal: Journal) -> tuple[Step, ...]:
        """What is still to do, in order."""
        if not journal.preserve:
            return (self.make,)
        steps = (self.list, self.save, self.make, self.restore, self.verify, self.publish)
        return steps[{Phase.SAVING: 0, Phase.MAKING: 2, Phase.RESTORING: 3}[journal.phase] :]


def new_journal(facts: BoardFacts, decision: Decision, wish: Wish) -> Journal:
    """The journal of a replacement that begins."""
    now = facts.filesystem
    mounted = "no"
    if facts.sharefs is not None:
        mounted = "ro" if facts.sharefs.read_only else "rw"
    preserve = decision.action is Action.REPLACE and wish.preserve
    return Journal(
        phase=Phase.SAVING if preserve else Phase.MAKING,
        card=card_identity(facts),
        old_kind=now.kind if now else BLANK,
        old_uuid=now.uuid if now else "",
        kind=decision.kind,
        label=wish.label,
        mounted=mounted,
        daemon_stopped=daemon_holds(facts),
        preserve=preserve,
    )


def plan_replacement(
    facts: BoardFacts, journal: Journal, folder: Folder, *, stop_users: bool
) -> Plan:
    """The scripts for a board as it is now.

    Raises:
        StorageError: the mount point is in use, or the partition is mounted elsewhere.
    """
    require_free(facts, stop_users=stop_users)
    require_only_mount(facts)
    point = shlex.quote(facts.mountpoint)
    mounted = mounted_test(facts)
    unmount = f"if {mounted}; then umount {point}; fi"
    # the note is on the card before anything else happens
    stop = [folder.mark_command(journal), "sync", *stop_daemon_commands(facts)]
    names = {"mount": point, "staging": STAGING}
    finish = _as_found(facts, journal)
    made = make_commands(facts, journal.kind, journal.label)
    if journal.preserve:
        # a file system that was not read-only ever since it was listed may have changed
        failure = f"{facts.mountpoint} is not read-only any more, its files may have changed"
        check = f"{read_only_test(facts)} || {{ echo '{failure}'; exit 1; }}"
        still = [check] if journal.phase is Phase.SAVING else []
        make = [*stop, *still, unmount, *made, f"mkdir -p {point}", mount_command(facts)]
    else:
        make = [*stop, unmount, *made, f"mkdir -p {point}", mount_command(facts), *finish]
    return Plan(
        list=guarded_step(
            facts,
            "list",
            f"make {facts.mountpoint} read-only and list its files with checksums",
            [
                *stop,
                f"mkdir -p {point}",
                f"if {mounted}; then mount -o remount,ro {point}",
                f"else {mount_command(facts, read_only=True)}; fi",
                f"cd {point}",
                *LIST_COMMANDS,
            ],
        ),
        save=Step(
            "save", "copy its files to the controller", guard(facts) + _FETCH.format(**names)
        ),
        make=guarded_step(facts, "make", f"make {journal.kind} with label {journal.label}", make),
        restore=Step(
            "restore",
            "send the files back to a staging directory",
            guard(facts) + _RESTORE.format(**names),
        ),
        verify=guarded_step(
            facts,
            "verify",
            "mount it anew and list what is back, with checksums",
            ["sync", unmount, mount_command(facts), f"cd {point}", *LIST_COMMANDS],
        ),
        publish=guarded_step(
            facts,
            "publish",
            f"move the files to their places, leave {facts.mountpoint} as it was found",
            [f"cd {point}", *(line.format(**names) for line in _PUBLISH), *finish],
        ),
    )


def require_only_mount(facts: BoardFacts) -> None:
    """Refuse when the partition is mounted elsewhere, or something else at the mount point.

    Raises:
        StorageError: names what is where.
    """
    part = facts.partition
    mounts = facts.mounts_of(part) if part else ()
    strange = [mount for mount in mounts if mount.mountpoint != facts.mountpoint]
    if facts.sharefs is not None and facts.sharefs not in mounts:
        strange.append(facts.sharefs)
    if strange or len(mounts) > 1:
        mount = (strange or list(mounts))[0]
        raise StorageError(
            f"{mount.source} is mounted at {mount.mountpoint}, expected only the data partition, "
            f"once, at {facts.mountpoint}",
            board=facts.board,
            hint=f"unmount it (umount {mount.mountpoint}), then run again.",
        )


def is_given_up(facts: BoardFacts, journal: Journal, wish: Wish) -> bool:
    """Whether a replacement that is not wished for any more has not touched anything yet."""
    now = facts.filesystem
    untouched = now is not None and (now.kind, now.uuid) == (journal.old_kind, journal.old_uuid)
    return journal.phase is Phase.SAVING and untouched and not wish.replace


def plan_give_up(facts: BoardFacts, journal: Journal) -> Step:
    """Leaves the old file system mounted as the run that began found it."""
    point = shlex.quote(facts.mountpoint)
    mounted = mounted_test(facts)
    read_only = journal.mounted == "ro"
    mount = mount_command(facts, read_only=read_only)
    option = "ro" if read_only else "rw"
    back = f"if {mounted}; then mount -o remount,{option} {point}; else {mount}; fi"
    if journal.mounted == "no":
        back = f"if {mounted}; then umount {point}; fi"
    does = "give the replacement up, leave the old file system as it was found"
    return guarded_step(
        facts, "give-up", does, [back, *_restart(journal), f"rm -f {MARKER}", "sync"]
    )


def _as_found(facts: BoardFacts, journal: Journal) -> list[str]:
    point = shlex.quote(facts.mountpoint)
    commands = {"rw": [], "ro": [f"mount -o remount,ro {point}"], "no": [f"umount {point}"]}
    return [*commands[journal.mounted], *_restart(journal), f"rm -f {MARKER}", "sync"]


def _restart(journal: Journal) -> list[str]:
    daemon = f"pidof sharefs >/dev/null || {start_daemon_command()}"
    return [daemon] if journal.daemon_stopped else []
