from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.errors import InputError
from k230_lib.runner.targets import choose_target
from k230_lib.runner.variants import choose_variant, load_variants, parse_variants

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def test_the_variants_of_the_project() -> None:
    variants = load_variants(KERNELS / "variants.yml")
    assert variants["portable"].libraries == ()
    assert not variants["portable"].needs_vector
    assert variants["rvv"].needs_vector
    assert "aten::convolution.out" in variants["rvv"].operators


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{kernals: []}", "variant 'mine': unknown key kernals"),
        ("{needs_vector: perhaps}", "needs_vector must be true or false"),
        ("{operators: aten::add.out}", "operators must be a list"),
        ("{operators: [add]}", "operators: 'add' is not of the form"),
        ("{libraries: ['-lm']}", "libraries: '-lm' is not of the form"),
    ],
)
def test_a_mistake_names_variant_and_key(entry: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_variants(f"schema_version: 1\nvariants: {{mine: {entry}}}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is no YAML"),
        ("schema_version: 2\nvariants: {a: {}}", "expected schema_version: 1"),
        ("schema_version: 1\n", "expected a table 'variants'"),
        ("schema_version: 1\nvariants: {'../x': {}}", "lower-case letters"),
    ],
)
def test_other_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_variants(text, "my.yml")


def test_unknown_names_list_the_known_ones() -> None:
    variants = parse_variants("schema_version: 1\nvariants: {b: {}, a: {}}\n")
    with pytest.raises(InputError, match="no runner variant 'c': there are a, b"):
        choose_variant(variants, "c")
    with pytest.raises(InputError, match="there are host, riscv64-linux, k230-rtsmart"):
        choose_target("arm")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"variants\.yml: No such file"):
        load_variants(tmp_path / "variants.yml")
