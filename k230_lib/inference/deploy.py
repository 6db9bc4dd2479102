"""Put a checked runner on a board, keep a few earlier ones, remove leftovers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..board.files import PutRequest, file_sha256, put_many, remove_files, would_change
from ..board.shell import BoardShell, checked
from ..errors import InputError

_HISTORY = "history"
_NAME = re.compile(r"k230_runner-[\w.-]+-[0-9a-f]{12}")


@dataclass(frozen=True)
class DeployPlan:
    """What is to be done in the board's folder of runners.

    Attributes:
        path: the runner's path on the board; its name carries variant and content.
        sha256: of the runner.
        send: whether it has to be sent.
        remove: paths of earlier runners and broken transfers that go.
        history: names of runners, oldest first, as it is to be written.
    """

    path: str
    sha256: str
    send: bool
    remove: tuple[str, ...]
    history: tuple[str, ...]


@dataclass(frozen=True)
class DeployOutcome:
    """Path on the board, whether anything changed, bytes sent, runners removed."""

    path: str
    changed: bool
    bytes_sent: int
    removed: tuple[str, ...]


def runner_name(variant: str, sha256: str) -> str:
    """The runner's file name on a board. It must not contain ``.sh``, which msh takes for a script.

    Raises:
        InputError: the variant cannot be part of a name that msh runs.
    """
    name = f"k230_runner-{variant}-{sha256[:12]}"
    if not _NAME.fullmatch(name) or ".sh" in name:
        raise InputError(
            f"variant {variant!r} cannot be part of a program's name",
            hint="use letters, digits, '.', '_' and '-', and not '.sh'.",
        )
    return name


def plan_history(
    folder: str, current: str, *, history: Sequence[str], present: Sequence[str], keep: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which runners stay and which go. Pure.

    The board's clock starts at 1970, so file times say nothing: the order is kept in a file.

    Args:
        folder: the board's folder of runners.
        current: name of the runner in use now.
        history: names, oldest first, as read from the board.
        present: names found in ``folder``.
        keep: how many earlier runners stay.

    Returns:
        Names that stay, oldest first, and paths to remove.
    """
    earlier = [name for name in dict.fromkeys(history) if name in present and name != current]
    kept = earlier[len(earlier) - keep :] if keep else []
    known = {*kept, current}
    doomed = [
        str(PurePosixPath(folder) / name)
        for name in sorted(present)
        if name.startswith("k230_runner-") and name not in known and name != f"{current}.part"
    ]
    return (*kept, current), tuple(doomed)


def plan_deploy(
    shell: BoardShell, runner: Path, folder: str, variant: str, *, keep: int
) -> DeployPlan:
    """What deploying ``runner`` would do, in two round trips; the board is not changed."""
    if keep < 0:
        raise InputError(f"keep is {keep}", hint="give 0 or more earlier runners to keep.")
    sha256 = file_sha256(runner)
    name = runner_name(variant, sha256)
    path = str(PurePosixPath(folder) / name)
    send = would_change(shell, [PutRequest(runner, path, sha256, 0o755)])[0]
    listing = checked(
        shell,
        f"cat {folder}/{_HISTORY} 2>/dev/null; echo --; ls -1 {folder} 2>/dev/null; true",
    )
    before, _, names = listing.partition("--\n")
    history, remove = plan_history(
        folder, name, history=before.split(), present=names.split(), keep=keep
    )
    return DeployPlan(path, sha256, send, remove, history)


def deploy(shell: BoardShell, runner: Path, plan: DeployPlan) -> DeployOutcome:
    """Carry out ``plan``. The history is written last: an interrupted run is planned again."""
    target = PurePosixPath(plan.path)
    sent = put_many(shell, [PutRequest(runner, plan.path, plan.sha256, 0o755)])
    remove_files(shell, plan.remove)
    text = "".join(f"{name}\n" for name in plan.history).encode()
    written = put_many(shell, [PutRequest(text, str(target.parent / _HISTORY))])
    return DeployOutcome(
        plan.path,
        # The order of use alone is no change: runs that take turns with runners note it each time.
        sent[0].changed or bool(plan.remove),
        sum(outcome.bytes_sent for outcome in (*sent, *written)),
        plan.remove,
    )
