"""Tables of kernels: merging, reducing, keys, and reading the generated registration back."""

from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.errors import InputError, RunnerError
from k230_lib.runner.codegen import (
    check_read_back,
    full_name,
    keyed_table,
    merge_tables,
    read_bindings,
    with_keys,
)
from k230_lib.runner.registration import check_possible, portable_entries
from k230_lib.runner.tools import ExecuTorch
from k230_lib.runner.variants import OwnKernel, Variant


def entry(name: str, function: str) -> dict[str, object]:
    return {"op": name, "kernels": [{"arg_meta": None, "kernel_name": function}]}


PORTABLE = [
    entry("add.out", "torch::executor::add_out"),
    entry("relu.out", "torch::executor::relu_out"),
    entry("dim_order_ops::clone.out", "torch::executor::clone_out"),
]
KNOWN = {"aten::add.out", "aten::relu.out", "aten::tan.out"}
RELU = OwnKernel("aten::relu.out", "mine::relu_out")
NEW = OwnKernel("mine::twice.out", "mine::twice_out", "mine::twice.out(Tensor x) -> Tensor")

# as the generator writes it, shortened
GENERATED = """
const Kernel kKernels[] = {
Kernel(
    "aten::add.out",
    [](KernelRuntimeContext & context, Span<EValue*> stack) {
        torch::executor::native::add_out(context, a, b);
    }
),

Kernel(
    "aten::relu.out",
    [](KernelRuntimeContext & context, Span<EValue*> stack) {
        mine::native::relu_out(context, a);
    }
),
};
"""


def names(table: list[dict[str, object]]) -> list[str]:
    return [full_name(item) for item in table]


def test_own_entries_replace_those_of_the_same_operator() -> None:
    merged = merge_tables(PORTABLE, [RELU, NEW], KNOWN, None)
    assert names(merged) == [
        "aten::add.out", "aten::relu.out", "dim_order_ops::clone.out", "mine::twice.out",
    ]  # fmt: skip
    assert merged[1] == entry("relu.out", "mine::relu_out")
    assert merged[3]["func"] == NEW.schema
    assert PORTABLE[1] == entry("relu.out", "torch::executor::relu_out")


def test_an_operator_that_portable_lacks_but_pytorch_has_can_be_added() -> None:
    merged = merge_tables(PORTABLE, [OwnKernel("aten::tan.out", "mine::tan_out")], KNOWN, None)
    assert names(merged)[-1] == "aten::tan.out"


def test_a_selection_keeps_only_what_models_need() -> None:
    selected = {"aten::relu.out", "aten::conv.out", "dim_order_ops::clone.out"}
    merged = merge_tables(PORTABLE, [RELU, NEW], KNOWN, selected)
    assert names(merged) == ["aten::relu.out", "dim_order_ops::clone.out"]


@pytest.mark.parametrize("keys", [(), ("v1/6;0",)])
def test_an_unknown_operator_is_named(keys: tuple[str, ...]) -> None:
    typo = OwnKernel("aten::rellu.out", "mine::relu_out", keys=keys)
    with pytest.raises(InputError, match=r"ExecuTorch knows no operator aten::rellu\.out\."):
        if keys:
            keyed_table([typo], KNOWN)
        else:
            merge_tables(PORTABLE, [typo], KNOWN, None)


def test_bindings_are_read_back_from_the_generated_source() -> None:
    bindings = read_bindings(GENERATED)
    assert bindings == {
        "aten::add.out": "torch::executor::add_out",
        "aten::relu.out": "mine::relu_out",
    }
    check_read_back(bindings, [RELU])
    with pytest.raises(RunnerError, match=r"bound to torch::executor::add_out, expected mine::a\."):
        check_read_back(bindings, [OwnKernel("aten::add.out", "mine::a")])
    with pytest.raises(RunnerError, match="bound to nothing, expected mine::twice_out"):
        check_read_back(bindings, [NEW])


def test_each_key_gets_an_entry_of_its_own() -> None:
    keys = {"aten::add.out": ("v1/6;0|6;0",), "aten::relu.out": ("v1/6;0", "v1/6;0,1")}
    source = with_keys(GENERATED, keys)
    assert source.count("Kernel(\n") == 3
    assert source.count('"aten::add.out",\n    "v1/6;0|6;0",') == 1
    assert source.count('"aten::relu.out",\n    "v1/6;0",') == 1
    assert source.count('"aten::relu.out",\n    "v1/6;0,1",') == 1
    assert read_bindings(source) == read_bindings(GENERATED)
    assert source.endswith("};\n")


def test_functions_that_an_older_prefix_lacks_are_left_out() -> None:
    header = "Tensor & add_out(const Tensor & a, Tensor & out);\nTensor & clone_out(Tensor & a);"
    assert names([dict(item) for item in portable_entries(PORTABLE, header)]) == [
        "aten::add.out", "dim_order_ops::clone.out",
    ]  # fmt: skip
    assert portable_entries(PORTABLE, None) == PORTABLE


def test_the_wheel_takes_kernels_in_front_but_not_instead() -> None:
    wheel = ExecuTorch(Path("/w"), "wheel", "1.5.1")
    instead = Variant("mine", "", kernels=(RELU,))
    with pytest.raises(RunnerError, match=r"replaces aten::relu\.out, which the pip package's"):
        check_possible(instead, wheel)
    check_possible(instead, ExecuTorch(Path("/p"), "prefix", ""))
    in_front = OwnKernel("aten::relu.out", "mine::relu_out", keys=("v1/6;0",))
    check_possible(Variant("mine", "", kernels=(in_front,)), wheel)
