"""The four jobs of provisioning storage, each: look, plan, show or do, look again.

A job in check mode returns the steps that it would run and changes nothing. Later jobs predict
what earlier ones would have done, so that the prediction for all together is that of a real run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import BoardCommandError, StorageError
from .facts import read_facts
from .filesystems import Action, Wish, decide, fills_partition, plan_grow
from .gpt import SECTOR
from .journal import Folder, Journal
from .mounts import check_mounted, persistent, plan_mount, plan_unmount
from .records import BoardFacts
from .replacement_plan import is_given_up, new_journal, plan_give_up, plan_replacement
from .replacing import Replacement
from .shell import BoardShell
from .sizes import Size, human
from .steps import Step, run_step
from .storage import (
    KNOWN_STARTS,
    check_resized,
    plan_gpt_repair,
    plan_resize,
    repaired,
    require_partition,
    resized,
    table_text,
)

_T = TypeVar("_T")


@dataclass(frozen=True)
class Target:
    """The data partition of a board and how it is meant to be.

    ``starts`` are the sectors it may start with (empty: any).
    """

    partition: int = 4
    mountpoint: str = "/sharefs"
    starts: tuple[int, ...] = KNOWN_STARTS
    repair_primary: bool = False
    stop_users: bool = False

    def read(self, shell: BoardShell) -> BoardFacts:
        """The facts of the board; one round trip."""
        return read_facts(shell, self.partition, self.mountpoint)


@dataclass(frozen=True)
class Outcome:
    """What a job did, or in check mode would do.

    ``before`` and ``after`` are for people, as a diff shows them.
    """

    facts: BoardFacts
    steps: tuple[Step, ...] = ()
    before: str = ""
    after: str = ""
    message: str = ""
    reboot_required: bool = False
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return bool(self.steps)


def ensure_table(shell: BoardShell, target: Target, *, check: bool = False) -> Outcome:
    """Make the partition table whole."""
    return _ensure_table(shell, target, target.read(shell), check=check)


def ensure_size(shell: BoardShell, target: Target, size: Size, *, check: bool = False) -> Outcome:
    """Grow the data partition.

    In check mode a table that is not whole yet is taken as repaired.
    """
    facts = target.read(shell)
    if check:
        plan_gpt_repair(facts, repair_primary=target.repair_primary)
        facts = repaired(facts)
    growth = plan_resize(facts, size, starts=target.starts, stop_users=target.stop_users)
    before = table_text(facts)
    if not growth.changed:
        return Outcome(facts, (), before, before, "the partition has that size")
    if check:
        after = resized(facts, growth.last)
        return Outcome(after, growth.steps, before, table_text(after), growth.steps[0].does)
    _run(shell, target, growth.steps)
    after = target.read(shell)
    agreed = check_resized(facts, after, growth.last)
    message = growth.steps[0].does
    if not agreed:
        message = (
            f"{shell.board}: the partition table has the new size, the kernel has not. "
            "Next: reboot the board, then run again."
        )
    return Outcome(
        after, growth.steps, before, table_text(after), message, reboot_required=not agreed
    )


def ensure_filesystem(
    shell: BoardShell,
    target: Target,
    wish: Wish,
    folder: Folder,
    *,
    check: bool = False,
    size: Size | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Keep, grow, make or replace the file system; goes on with what an earlier run began.

    Args:
        size: what the partition will have been grown to, for the prediction in check mode.
    """
    facts = target.read(shell)
    if check:
        facts = _predicted(facts, target, size)
    require_partition(facts, target.starts)
    before = _filesystem_text(facts)
    journal = folder.load()
    folder.require_own(facts, journal)
    done: tuple[Step, ...] = ()
    message = ""
    if journal is not None and is_given_up(facts, journal, wish):
        done = (plan_give_up(facts, journal),)
        message = f"the replacement by {journal.kind} that was begun is given up; "
        if not check:
            _run(shell, target, done)
            folder.discard()
            facts = target.read(shell)
    elif journal is not None:
        done, facts = _replace(
            shell, target, folder, facts, journal, check=check, progress=progress
        )
        message = f"went on with {journal.kind} from {journal.phase}; "
        if check:
            return Outcome(facts, done, before, f"{journal.kind} {journal.label}\n", message)
    decision = decide(facts, wish)
    if decision.action is Action.KEEP:
        return Outcome(facts, done, before, _filesystem_text(facts), message + decision.reason)
    if decision.action is Action.GROW:
        steps = plan_grow(facts, wish)
        if not check:
            _run(shell, target, steps)
            facts = _grown(target.read(shell), wish)
    else:
        fresh = new_journal(facts, decision, wish)
        steps, facts = _replace(shell, target, folder, facts, fresh, check=check, progress=progress)
    after = _filesystem_text(facts)
    if check:
        label = wish.label if decision.action is not Action.GROW else _label(facts)
        room = facts.partition.sectors * SECTOR if facts.partition else 0
        after = _text(decision.kind, label, room, room)
    return Outcome(facts, (*done, *steps), before, after, message + decision.reason)


def ensure_mount(
    shell: BoardShell,
    target: Target,
    *,
    mounted: bool = True,
    daemon: bool = True,
    check: bool = False,
) -> Outcome:
    """Mount the data partition read-write and have the sharefs daemon run, or unmount it."""
    facts = target.read(shell)
    require_partition(facts, target.starts)
    before = _mount_text(facts)
    if not mounted:
        steps = plan_unmount(facts, stop_users=target.stop_users)
    else:
        # in check mode a blank partition is one that the filesystem module would have filled
        steps = plan_mount(facts, stop_users=target.stop_users, daemon=daemon, predicted=check)
    if not check and steps:
        _run(shell, target, steps)
        facts = target.read(shell)
    wrong = check_mounted(facts) if mounted and not check else ""
    if wrong:
        raise BoardCommandError(
            wrong, board=facts.board, hint="look at dmesg on the board, then run again."
        )
    after = _mount_text(facts)
    if check and steps:
        device = facts.partition.device if facts.partition else ""
        after = _mount_line(facts, f"{device}, read-write" if mounted else "nothing")
    return Outcome(
        facts,
        steps,
        before,
        after,
        extra={
            "mount": _mount_record(facts),
            "persistent": persistent(facts),
            "boot_mount": list(facts.boot_mount),
        },
    )


def foresee(shell: BoardShell, target: Target, size: Size, wish: Wish, folder: Folder) -> Outcome:
    """All steps that the four jobs would run, or the first thing that speaks against one of them.

    One round trip; run before the first write, so that nothing is written on a board on which a
    later job would have to give up.
    """
    facts = target.read(shell)
    before = table_text(facts) + _filesystem_text(facts) + _mount_text(facts)
    table = _ensure_table(shell, target, facts, check=True)
    growth = plan_resize(table.facts, size, starts=target.starts, stop_users=target.stop_users)
    grown = resized(table.facts, growth.last) if growth.changed else table.facts
    journal = folder.load()
    folder.require_own(facts, journal)
    steps: tuple[Step, ...] = ()
    given_up: tuple[Step, ...] = ()
    if journal is not None and is_given_up(grown, journal, wish):
        given_up = (plan_give_up(grown, journal),)
        journal = None
    if journal is None:
        decision = decide(grown, wish)
        message = decision.reason
        if decision.action is Action.GROW:
            steps = plan_grow(grown, wish)
        elif decision.action is not Action.KEEP:
            journal = new_journal(grown, decision, wish)
    else:
        message = f"goes on with {journal.kind} from {journal.phase}"
    if journal is not None:
        plan = plan_replacement(grown, journal, folder, stop_users=target.stop_users)
        steps = plan.remaining(journal)
    mount = plan_mount(grown, stop_users=target.stop_users, predicted=True)
    return Outcome(
        grown,
        (*table.steps, *growth.steps, *given_up, *steps, *mount),
        before,
        table_text(grown),
        message,
    )


def _ensure_table(shell: BoardShell, target: Target, facts: BoardFacts, *, check: bool) -> Outcome:
    require_partition(facts, target.starts)
    steps = plan_gpt_repair(facts, repair_primary=target.repair_primary)
    before = table_text(facts)
    if not steps:
        return Outcome(facts, (), before, before, "the table is whole")
    message = facts.disk.gpt.problem if facts.disk else ""
    if check:
        after = repaired(facts)
        return Outcome(after, steps, before, table_text(after), message)
    _run(shell, target, steps)
    after = target.read(shell)
    if after.disk is None or not after.disk.gpt.whole:
        raise BoardCommandError(
            f"after the repair: {after.disk.gpt.problem if after.disk else 'no disk'}",
            board=shell.board,
            hint="do not reboot; look at the table with parted.",
        )
    return Outcome(after, steps, before, table_text(after), message)


def _replace(
    shell: BoardShell,
    target: Target,
    folder: Folder,
    facts: BoardFacts,
    journal: Journal,
    *,
    check: bool,
    progress: Callable[[str], None],
) -> tuple[tuple[Step, ...], BoardFacts]:
    plan = plan_replacement(facts, journal, folder, stop_users=target.stop_users)
    if not check:
        work = Replacement(shell, folder, stop_users=target.stop_users, progress=progress)
        facts = _naming_holders(shell, target, lambda: work.run(facts, journal))
    return plan.remaining(journal), facts


def _predicted(facts: BoardFacts, target: Target, size: Size | None) -> BoardFacts:
    plan_gpt_repair(facts, repair_primary=target.repair_primary)
    facts = repaired(facts)
    if size is None:
        return facts
    growth = plan_resize(facts, size, starts=target.starts, stop_users=target.stop_users)
    return resized(facts, growth.last) if growth.changed else facts


def _grown(facts: BoardFacts, wish: Wish) -> BoardFacts:
    decision = decide(facts, wish)
    if decision.action is Action.GROW:
        raise BoardCommandError(
            f"the file system was not grown: {decision.reason}",
            board=facts.board,
            hint="look at dmesg on the board, then run again.",
        )
    return facts


def _run(shell: BoardShell, target: Target, steps: Sequence[Step]) -> None:
    def run_all() -> None:
        for step in steps:
            run_step(shell, step)

    _naming_holders(shell, target, run_all)


def _naming_holders(shell: BoardShell, target: Target, work: Callable[[], _T]) -> _T:
    """Name who holds the mount point when a step failed because somebody came meanwhile."""
    try:
        return work()
    except BoardCommandError as error:
        if "busy" not in error.message.lower():
            raise
        holders = target.read(shell).holders
        if not holders:
            raise
        raise StorageError(
            f"{target.mountpoint} is in use by {', '.join(map(str, holders[:3]))}",
            board=shell.board,
            hint="end these processes or let them leave the directory, then run again.",
        ) from error


def _filesystem_text(facts: BoardFacts) -> str:
    now = facts.filesystem
    part = facts.partition
    if now is None or part is None:
        return "no partition\n"
    return _text(now.kind, now.label, now.bytes, part.sectors * SECTOR)


def _text(kind: str, label: str, size: int | None, room: int) -> str:
    fills = size is None or fills_partition(size, room)
    where = "on all" if fills else f"of {human(size or 0)} on a part"
    return f"{kind} {label} {where} of {human(room)}\n"


def _label(facts: BoardFacts) -> str:
    return facts.filesystem.label if facts.filesystem else ""


def _mount_record(facts: BoardFacts) -> dict[str, object] | None:
    mount = facts.sharefs
    if mount is None:
        return None
    return {
        "device": mount.source,
        "dev": mount.dev,
        "fstype": mount.fstype,
        "options": list(mount.options),
    }


def _mount_text(facts: BoardFacts) -> str:
    mount = facts.sharefs
    if mount is None:
        return _mount_line(facts, "nothing")
    return _mount_line(facts, f"{mount.source}, read-{'only' if mount.read_only else 'write'}")


def _mount_line(facts: BoardFacts, what: str) -> str:
    # without type and options, which follow from the file system
    daemon = "runs" if facts.daemon_pid else "does not run"
    return f"{facts.mountpoint}: {what}\nsharefs daemon {daemon}\n"
