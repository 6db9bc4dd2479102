from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k230_lib.errors import RunnerError
from k230_lib.runner.prebuilt import flags_of, least_release, runs_models
from k230_lib.runner.preflight import check_runner_file

FIRST = ("model_path", "inputs", "output_file", "num_executions", "print_all_output")


def strings(*words: str) -> bytes:
    return b"\0" + b"\0".join(word.encode() for word in words) + b"\0"


@pytest.mark.parametrize(
    ("flags", "release"),
    [
        (FIRST, "1.2"),
        ((*FIRST[:4], "print_output", "method_name"), "1.3"),
        ((*FIRST[:4], "print_output", "method_name", "server_mode"), "1.4"),
        (FIRST[:3], ""),
        ((), ""),
    ],
)
def test_the_release_shows_in_the_flags(flags: tuple[str, ...], release: str) -> None:
    found = flags_of(strings("other", *flags))
    assert found == set(flags)
    assert least_release(found) == release
    assert runs_models(found) == bool(release)


def test_a_name_inside_another_word_is_no_flag() -> None:
    assert flags_of(strings("my_model_path", "inputs_", "xinputs")) == frozenset()


def test_a_prebuilt_program_is_taken_by_its_flags_and_operators(
    elf_file: Any, tmp_path: Path
) -> None:
    runner = tmp_path / "executor_runner"
    content = strings(*FIRST, "etdump_path", "aten::add.out")
    runner.write_bytes(elf_file(sections={".rodata": content}))
    facts = check_runner_file(runner, "k230-rtsmart", variant="prebuilt")
    assert "etdump_path" in facts.flags
    model = tmp_path / "model.json"
    model.write_text('{"name": "m", "operators": ["aten::add.out"]}')
    check_runner_file(runner, "k230-rtsmart", variant="prebuilt", model=model)
    model.write_text('{"name": "m", "operators": ["aten::add.out", "aten::mul.out"]}')
    with pytest.raises(RunnerError, match=r"lacks operators of model m: aten::mul\.out"):
        check_runner_file(runner, "k230-rtsmart", variant="prebuilt", model=model)


def test_a_program_that_runs_no_models_is_refused(elf_file: Any, tmp_path: Path) -> None:
    runner = tmp_path / "hello"
    runner.write_bytes(elf_file())
    with pytest.raises(RunnerError, match="hello is neither k230_runner nor executor_runner"):
        check_runner_file(runner, "k230-rtsmart", variant="prebuilt")
