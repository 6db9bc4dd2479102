"""The documented options of each module are those that its action plugin takes."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.loader import init_plugin_loader

REPOSITORY = Path(__file__).resolve().parents[3]
NAMES = sorted(path.stem for path in (REPOSITORY / "plugins" / "action").glob("[!_]*.py"))


@pytest.fixture(scope="session", autouse=True)
def collections() -> None:
    init_plugin_loader([str(REPOSITORY / ".ansible" / "collections")])


def documented(name: str) -> dict[str, Any]:
    """DOCUMENTATION of a module, read without importing it."""
    tree = ast.parse((REPOSITORY / "plugins" / "modules" / f"{name}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return dict(yaml.safe_load(ast.literal_eval(node.value)))
    raise AssertionError(f"{name} has no DOCUMENTATION")


def fragment_options(document: dict[str, Any]) -> dict[str, Any]:
    """Options that come from the collection's own documentation fragments."""
    options: dict[str, Any] = {}
    for full in document.get("extends_documentation_fragment", []):
        # namespace.collection.fragment, perhaps with .section
        _, _, fragment, *section = full.split(".")
        module = importlib.import_module(
            f"ansible_collections.k230.executorch.plugins.doc_fragments.{fragment}"
        )
        name = section[0].upper() if section else "DOCUMENTATION"
        options |= yaml.safe_load(getattr(module.ModuleDocFragment, name)).get("options") or {}
    return options


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_of_the_action(name: str) -> None:
    document = documented(name)
    assert document["module"] == name
    told = {**fragment_options(document), **document.get("options", {})}
    plugin = importlib.import_module(f"ansible_collections.k230.executorch.plugins.action.{name}")
    taken = plugin.ActionModule.ARGUMENTS
    assert sorted(told) == sorted(taken)
    for option, spec in taken.items():
        said = told[option]
        assert bool(said.get("required")) == bool(spec.get("required")), option
        for key in ("type", "default", "choices", "elements"):
            assert said.get(key) == spec.get(key), f"{name}.{option}: {key}"


def test_every_board_module_is_in_the_action_group() -> None:
    runtime = yaml.safe_load((REPOSITORY / "meta" / "runtime.yml").read_text())
    group = {entry.rsplit(".", 1)[1] for entry in runtime["action_groups"]["board"]}
    board_action = importlib.import_module(
        "ansible_collections.k230.executorch.plugins.plugin_utils.board_action"
    ).BoardAction
    boards = set()
    for name in NAMES:
        plugin = importlib.import_module(
            f"ansible_collections.k230.executorch.plugins.action.{name}"
        )
        if issubclass(plugin.ActionModule, board_action):
            boards.add(name)
    assert group == boards
