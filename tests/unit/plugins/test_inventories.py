"""The inventories that users copy name variables that the roles know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = REPOSITORY / "inventory" / "example"


def role_options() -> set[str]:
    options: set[str] = set()
    for path in REPOSITORY.glob("roles/*/meta/argument_specs.yml"):
        for spec in yaml.safe_load(path.read_text())["argument_specs"].values():
            options |= set(spec.get("options", {}))
    return options


def used_by_defaults_and_playbooks() -> set[str]:
    texts = [path.read_text() for path in REPOSITORY.glob("roles/*/*/*.yml")]
    texts += [path.read_text() for path in REPOSITORY.glob("playbooks/*.yml")]
    return set(re.findall(r"\bk230_[a-z_]+\b", "\n".join(texts)))


@pytest.mark.parametrize("commented", [False, True])
def test_every_variable_of_the_example_is_known(commented: bool) -> None:
    text = (EXAMPLE / "group_vars" / "k230.yml").read_text()
    if commented:
        text = re.sub(r"^# ([a-z0-9_]+: )", r"\1", text, flags=re.MULTILINE)
    names = {name for name in yaml.safe_load(text) if not name.startswith("ansible_")}
    assert names - role_options() - used_by_defaults_and_playbooks() == set()


def test_every_example_board_has_a_console() -> None:
    hosts = yaml.safe_load((EXAMPLE / "hosts.yml").read_text())["k230"]["hosts"]
    consoles = [host["k230_console"] for host in hosts.values()]
    assert len(set(consoles)) == len(consoles) > 1


def test_every_variable_for_a_rack_is_explained() -> None:
    """All options with a default of their own; what roles hand to each other is computed."""
    text = (EXAMPLE / "group_vars" / "k230.yml").read_text()
    explained = set(re.findall(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b", text))
    for path in sorted(REPOSITORY.glob("roles/*/defaults/main.yml")):
        if "virtual_boards" not in path.parts:
            defaults = yaml.safe_load(path.read_text())
            own = {name for name, value in defaults.items() if "{{" not in str(value)}
            assert own - explained == set(), path
