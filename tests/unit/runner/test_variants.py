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
        ("{base: other}", "its base 'other' must be a variant described before it"),
        ("{kernels: {op: a}}", "kernels must be a list"),
        ("{kernels: [{op: a.out}]}", r"needs 'op' or 'func' and one kernel, found aten::a\.out"),
        ("{kernels: [{op: a.out, kernels: [{kernel_name: f}]}]}", "expected arg_meta: null and"),
        ("{kernels: [{op: a.out, kernel: []}]}", "unknown key kernel"),
        (
            "{kernels: [{op: a.out, kernels: [{kernel_name: 'a::f'}], keys: [x]}]}",
            r"aten::a\.out: keys: 'x' is not of the form",
        ),
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
        parse_variants(text, Path("my.yml"))


KERNELS_OF_A_USER = """
schema_version: 1
variants:
  first: {needs_vector: true, libraries: [one], operators: ['aten::add.out']}
  mine:
    base: first
    libraries: [two]
    sources: [relu.cpp]
    kernels:
      - op: relu.out
        kernels: [{arg_meta: null, kernel_name: mine::relu_out}]
        keys: ['v1/6;0,1|6;0,1']
      - func: mine::twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
        kernels: [{arg_meta: null, kernel_name: mine::twice_out}]
"""


def test_a_user_adds_kernels_in_the_form_of_executorch(tmp_path: Path) -> None:
    (tmp_path / "relu.cpp").write_text("")
    path = tmp_path / "variants.yml"
    path.write_text(KERNELS_OF_A_USER)
    mine = load_variants(path)["mine"]
    assert mine.needs_vector
    assert mine.libraries == ("one", "two")
    assert mine.operators == ("aten::add.out",)
    assert mine.sources == (tmp_path / "relu.cpp",)
    assert [kernel.operator for kernel in mine.keyed] == ["aten::relu.out"]
    assert mine.keyed[0].function == "mine::relu_out"
    assert mine.keyed[0].keys == ("v1/6;0,1|6;0,1",)
    assert [kernel.operator for kernel in mine.replacing] == ["mine::twice.out"]
    assert mine.replacing[0].schema.startswith("mine::twice.out(Tensor x")


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "variants.yml"
    path.write_text(KERNELS_OF_A_USER)
    with pytest.raises(InputError, match=rf"variant 'mine': no file {tmp_path}/relu\.cpp"):
        load_variants(path)


def test_unknown_names_list_the_known_ones() -> None:
    variants = parse_variants("schema_version: 1\nvariants: {b: {}, a: {}}\n")
    with pytest.raises(InputError, match="no runner variant 'c': there are a, b"):
        choose_variant(variants, "c")
    with pytest.raises(InputError, match="there are host, riscv64-linux, k230-rtsmart"):
        choose_target("arm")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"variants\.yml: No such file"):
        load_variants(tmp_path / "variants.yml")
