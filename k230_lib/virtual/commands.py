"""``k230 boards``: bring virtual boards up and down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from ..errors import InputError
from ..terminal import AsJson, run
from .board import DEFAULT_STATE_ROOT, BoardSettings
from .light import LightBoard, check_distinct

app = typer.Typer(
    help="Virtual boards: stand-ins for real ones, with the real tools.", no_args_is_help=True
)
_DEFAULT_INVENTORY = Path("inventory/virtual")
# Starting is mostly waiting; more at once only fight for the processor.
_AT_ONCE = 4

Names = Annotated[list[str] | None, typer.Argument(help="Boards; all of the inventory if none.")]
Inventory = Annotated[
    Path, typer.Option("--inventory", "-i", help="Ansible inventory (YAML) with virtual_board.")
]
StateRoot = Annotated[Path, typer.Option(help="Folder for cards and logs of the boards.")]


def boards_of(inventory: Path, names: Iterable[str] = (), *, state_root: Path) -> list[LightBoard]:
    """The virtual boards of an inventory file or folder: hosts with ``virtual_board`` variables.

    Raises:
        InputError: file missing or not YAML, unknown names, or settings that cannot be used.
    """
    found: dict[str, dict[str, Any]] = {}
    files = sorted(inventory.glob("*.y*ml")) if inventory.is_dir() else [inventory]
    for file in files:
        for group in _load(file).values():
            _collect(group, {}, found)
    hosts = {name: vars_ for name, vars_ in found.items() if vars_}
    wanted = list(names) or sorted(hosts)
    unknown = [name for name in wanted if name not in hosts]
    if unknown or not wanted:
        raise InputError(
            f"{inventory} has no virtual board {', '.join(unknown) or 'at all'}",
            hint=f"it has {', '.join(sorted(hosts)) or 'no host with virtual_board'}.",
        )
    boards = []
    for name in wanted:
        try:
            settings = BoardSettings.from_vars(hosts[name])
        except InputError as error:
            raise InputError(error.message, board=name, hint=error.hint) from None
        boards.append(LightBoard(name, settings, state_root=state_root))
    check_distinct(boards)
    return boards


def _load(file: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(file.read_text())
    except OSError as error:
        raise InputError(
            f"inventory {file}: {error.strerror}", hint="give one with --inventory."
        ) from None
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise InputError(f"inventory {file} is not YAML: {first}") from None
    return tree if isinstance(tree, dict) else {}


def _collect(group: Any, inherited: dict[str, Any], found: dict[str, dict[str, Any]]) -> None:
    if not isinstance(group, dict):
        return
    own = (group.get("vars") or {}).get("virtual_board") or {}
    settings = {**inherited, **own}
    for host, values in (group.get("hosts") or {}).items():
        mine = (values or {}).get("virtual_board") or {}
        found[host] = {**settings, **found.get(host, {}), **mine}
    for child in (group.get("children") or {}).values():
        _collect(child, settings, found)


def _each(boards: list[LightBoard], action: Callable[[LightBoard], bool]) -> dict[str, bool]:
    """Do ``action`` on all boards; the first failure is raised after all have had their turn."""
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        futures = {board.name: pool.submit(action, board) for board in boards}
    return {name: future.result() for name, future in futures.items()}


def _tell(boards: list[LightBoard], changed: dict[str, bool], as_json: bool) -> None:
    if as_json:
        states = [asdict(board.status()) for board in boards]
        print(json.dumps({"changed": any(changed.values()), "boards": states}))
        return
    for board in boards:
        status = board.status()
        note = " (changed)" if changed.get(board.name) else ""
        line = f"{status.name:<12} {status.state:<8}"
        if status.state not in ("absent", "held"):
            line += f" ssh root@{status.address}  console {status.console}  {status.rfc2217}"
        print(line + note)


@app.command()
def up(
    names: Names = None,
    inventory: Inventory = _DEFAULT_INVENTORY,
    state_root: StateRoot = DEFAULT_STATE_ROOT,
    as_json: AsJson = False,
) -> None:
    """Start the virtual boards; those that run already stay as they are."""
    boards = boards_of(inventory, names or (), state_root=state_root)
    _tell(boards, _each(boards, LightBoard.start), as_json)


@app.command()
def down(
    names: Names = None,
    inventory: Inventory = _DEFAULT_INVENTORY,
    state_root: StateRoot = DEFAULT_STATE_ROOT,
    fresh: Annotated[bool, typer.Option(help="Throw the cards away too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the virtual boards; their cards stay."""
    boards = boards_of(inventory, names or (), state_root=state_root)
    changed = _each(boards, LightBoard.stop)
    if fresh:
        for board in boards:
            changed[board.name] |= board.card_image.exists()
            board.reflash()
    _tell(boards, changed, as_json)


@app.command()
def status(
    names: Names = None,
    inventory: Inventory = _DEFAULT_INVENTORY,
    state_root: StateRoot = DEFAULT_STATE_ROOT,
    as_json: AsJson = False,
) -> None:
    """Show which virtual boards run, and where to reach them."""
    boards = boards_of(inventory, names or (), state_root=state_root)
    _tell(boards, {}, as_json)


if __name__ == "__main__":
    run(app)
