"""Role options may come from ``-e name=value``, where everything is a string."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ROLES = sorted((Path(__file__).resolve().parents[3] / "roles").iterdir())


def options_of(role: Path) -> dict[str, str]:
    """Type of every option of a role, by name."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    return {
        name: option.get("type", "str")
        for spec in specs.values()
        for name, option in spec.get("options", {}).items()
    }


def tasks_of(role: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((role / "tasks").glob("*.yml")):
        yield from yaml.safe_load(path.read_text())


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings_in(part)


@pytest.fixture
def jinja() -> jinja2.Environment:
    """Jinja with what the roles use of Ansible's filters; other variables are undefined."""
    environment = jinja2.Environment(undefined=jinja2.ChainableUndefined)
    environment.filters["bool"] = lambda value: str(value).lower() in ("true", "yes", "on", "1")
    for name in ("basename", "from_json", "regex_replace"):
        environment.filters[name] = lambda value, *_: value
    environment.globals |= {"query": lambda *_: [], "omit": "omit"}
    return environment


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_conditions_are_boolean_for_strings_too(role: Path, jinja: jinja2.Environment) -> None:
    given = dict.fromkeys(options_of(role), "true")
    for task in tasks_of(role):
        conditions = task.get("when", [])
        for condition in [conditions] if isinstance(conditions, str) else conditions:
            expression = jinja.compile_expression(condition, undefined_to_none=False)
            assert isinstance(expression(**given), bool), f"{task['name']}: {condition}"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_word_false_is_false(role: Path, jinja: jinja2.Environment) -> None:
    options = options_of(role)
    given = {name: "x" for name, kind in options.items() if kind != "bool"}
    flags = [name for name, kind in options.items() if kind == "bool"]
    for text in strings_in(list(tasks_of(role))):
        if "{{" not in text or not any(flag in text for flag in flags):
            continue
        template = jinja.from_string(text)
        word = template.render(**given, **dict.fromkeys(flags, "false"))
        value = template.render(**given, **dict.fromkeys(flags, False))
        assert word.lower() == value.lower(), text
