"""Run a playbook through ansible-runner with one live progress bar per board.

The plain way stays ``ansible-playbook evaluate.yml``; this is the same run with bars instead of
progress lines. Only this module starts ansible-runner.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from .errors import InputError

PROGRESS_MARK = "K230PROGRESS "


@dataclass(frozen=True)
class BoardProgress:
    """One progress line of a board plugin."""

    board: str
    done: int
    total: int
    note: str


def parse_progress(line: str) -> BoardProgress | None:
    """The progress in a line of Ansible's output, or None for any other line."""
    _, mark, payload = line.partition(PROGRESS_MARK)
    if not mark:
        return None
    try:
        event = json.loads(payload)
    except ValueError:
        return None
    if not isinstance(event, dict) or not {"board", "done", "total"} <= event.keys():
        return None
    parts = []
    if event.get("rate") is not None:
        parts.append(f"{event['rate']:.1f}/s")
    if event.get("top1") is not None:
        parts.append(f"top-1 {100 * event['top1']:.1f} %")
    return BoardProgress(
        str(event["board"]), int(event["done"]), int(event["total"]), " ".join(parts)
    )


def find_playbook(name: str, root: Path) -> Path:
    """``evaluate`` or ``evaluate.yml`` below ``root``, or any path that exists.

    Raises:
        InputError: no such playbook; the known ones are named.
    """
    for candidate in (Path(name), root / name, root / f"{name}.yml"):
        if candidate.is_file():
            return candidate.resolve()
    known = ", ".join(sorted(path.stem for path in (root / "playbooks").glob("*.yml")))
    raise InputError(f"there is no playbook {name}", hint=f"choose one of: {known}.")


def play(
    context: typer.Context,
    playbook: str = typer.Argument(help="evaluate, provision, ... or a file."),
) -> None:
    """Run a playbook with progress bars; further options go to ansible-playbook."""
    root = Path.cwd()
    raise typer.Exit(run_playbook(find_playbook(playbook, root), context.args, root))


def run_playbook(playbook: Path, arguments: Sequence[str], root: Path) -> int:
    """Start ansible-runner on ``playbook`` and show its output; returns its exit status.

    Args:
        arguments: options of ``ansible-playbook``.
        root: folder whose ``ansible.cfg`` is used.
    """
    import ansible_runner

    events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def enqueue(event: dict[str, Any]) -> bool:
        events.put(event)
        return False  # the runner need not keep it as a file

    # The handler runs in the runner's reading loop: anything slow there would stall the play.
    shower = threading.Thread(target=_show, args=(events,), name="progress")
    shower.start()
    inventory = _option(arguments, "-i", "--inventory") or _default_inventory(root)
    with tempfile.TemporaryDirectory(prefix="k230-play-") as private:
        try:
            outcome = ansible_runner.run(
                private_data_dir=private,
                playbook=str(playbook),
                project_dir=str(root),
                inventory=inventory,
                cmdline=shlex.join(_without_option(arguments, "-i", "--inventory")) or None,
                envvars={
                    **os.environ,
                    "K230_PROGRESS": "json",
                    "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
                },
                quiet=True,
                event_handler=enqueue,
            )
        finally:
            events.put(None)
            shower.join()
    return int(outcome.rc or 0)


def _default_inventory(root: Path) -> str:
    return str(root / "inventory" / "virtual")


def _option(arguments: Sequence[str], *names: str) -> str | None:
    for position, argument in enumerate(arguments[:-1]):
        if argument in names:
            return str(Path(arguments[position + 1]).resolve())
    return None


def _without_option(arguments: Sequence[str], *names: str) -> list[str]:
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in names:
            skip = True
        else:
            kept.append(argument)
    return kept


def _show(events: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    columns = (
        TextColumn("{task.description:12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns) as progress:
        bars: dict[str, Any] = {}
        while (event := events.get()) is not None:
            for line in str(event.get("stdout") or "").splitlines():
                state = parse_progress(line)
                if state is None:
                    progress.console.print(Text.from_ansi(line), soft_wrap=True)
                    continue
                if state.board not in bars:
                    bars[state.board] = progress.add_task(state.board, total=state.total, note="")
                progress.update(
                    bars[state.board], completed=state.done, total=state.total, note=state.note
                )
