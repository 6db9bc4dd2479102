"""The documentation of each module loads, and its options are those that its action takes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.loader import fragment_loader, init_plugin_loader
from ansible.utils.plugin_docs import get_docstring

REPOSITORY = Path(__file__).resolve().parents[3]
MODULES = REPOSITORY / "plugins" / "modules"
NAMES = sorted(path.stem for path in (REPOSITORY / "plugins" / "action").glob("[!_]*.py"))


@pytest.fixture(scope="session", autouse=True)
def collections() -> None:
    init_plugin_loader([str(REPOSITORY / ".ansible" / "collections")])


def documented(name: str) -> dict[str, Any]:
    """The documentation of a module with its fragments, as Ansible itself joins them."""
    document, examples, returned, _ = get_docstring(
        str(MODULES / f"{name}.py"),
        fragment_loader,
        collection_name="k230.executorch",
        plugin_type="module",
    )
    assert document and examples and returned, name
    return dict(document)


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_of_the_action(name: str) -> None:
    document = documented(name)
    assert document["module"] == name and document["short_description"]
    told = document.get("options", {})
    plugin = importlib.import_module(f"ansible_collections.k230.executorch.plugins.action.{name}")
    taken = plugin.ActionModule.ARGUMENTS
    assert sorted(told) == sorted(taken)
    for option, spec in taken.items():
        said = told[option]
        assert bool(said.get("required")) == bool(spec.get("required")), option
        for key in ("type", "default", "choices", "elements"):
            assert said.get(key) == spec.get(key), f"{name}.{option}: {key}"


@pytest.mark.parametrize("name", NAMES)
def test_async_check_mode_and_diff_mode_are_told(name: str) -> None:
    attributes = documented(name)["attributes"]
    assert sorted(attributes) == ["action", "async", "check_mode", "diff_mode"]
    for said in attributes.values():
        assert said["description"] and said["support"]


def test_ansible_doc_shows_every_module() -> None:
    assert sorted(path.stem for path in MODULES.glob("[!_]*.py")) == NAMES
    full = [f"k230.executorch.{name}" for name in NAMES]
    for form in ([], ["--json"]):
        shown = subprocess.run(
            [sys.executable, "-m", "ansible.cli.doc", "-t", "module", *form, *full],
            capture_output=True,
            text=True,
            check=False,
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
        )
        assert shown.returncode == 0, shown.stderr
    assert sorted(json.loads(shown.stdout)) == full


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
