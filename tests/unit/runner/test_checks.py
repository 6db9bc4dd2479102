"""What is refused before it reaches a board, on ELF files made by the assembler of test_elf."""

from __future__ import annotations

import json
from typing import Any

import pytest

from k230_lib.errors import RunnerError
from k230_lib.runner.build import failure_reason
from k230_lib.runner.checks import ModelNeeds, check_runner, model_needs
from k230_lib.runner.manifest import SECTION
from k230_lib.runner.operators import (
    RegisteredKernel,
    check_bindings,
    kernels_in_file,
    parse_listing,
)
from k230_lib.runner.targets import TARGETS
from k230_lib.runner.variants import OwnKernel, Variant

RTSMART, HOST = TARGETS["k230-rtsmart"], TARGETS["host"]
MODEL = ModelNeeds("m", ("aten::add.out", "aten::convolution.out"), "1.5.1", 14 << 20, 10 << 20)


def manifest(**changes: Any) -> dict[str, bytes]:
    document = {
        "schema_version": 1,
        "variant": "rvv",
        "target": "k230-rtsmart",
        "tracer": True,
        "needs_vector": True,
        "operators": ["aten::convolution.out"],
        "executorch": {"version": "1.5.1", "form": "prefix"},
        **changes,
    }
    return {SECTION: json.dumps(document).encode() + b"\0"}


@pytest.fixture
def rtsmart(elf_file: Any, riscv_attributes: Any) -> Any:
    """A runner for RT-Smart as it should be, with changes."""

    def make(arch: str = "rv64i2p0_v1p0", sections: Any = None, **changes: Any) -> bytes:
        found = manifest() if sections is None else sections
        data: bytes = elf_file(
            sections={**found, ".riscv.attributes": riscv_attributes(arch)}, **changes
        )
        return data

    return make


def test_a_fit_runner_passes_with_size_and_load_time(rtsmart: Any) -> None:
    facts = check_runner(rtsmart(), RTSMART, variant="rvv", model=MODEL)
    assert facts.manifest is not None
    assert facts.manifest.variant == "rvv"
    assert facts.pages == 1
    assert facts.load_ms == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": 62}, "is for x86-64, expected riscv64"),
        ({"interpreter": b"/lib/ld-musl.so", "needed": b"libc.so"}, "needs libc.so: .*static"),
        ({"entry": 0x10000}, "starts at 0x10000: expected an executable at 0x200000000"),
        ({"kind": 3}, "is position-independent and starts at"),
        ({"arch": "rv64i2p0_c2p0"}, "expected V in its ISA, found rv64i2p0_c2p0"),
        ({"sections": {}}, "carries no manifest: expected variant rvv"),
        ({"sections": {SECTION: b"{"}}, "is damaged"),
        ({"sections": manifest(schema_version=9)}, "has schema version 9"),
        ({"sections": manifest(variant="portable")}, "is variant portable, expected rvv"),
        ({"sections": manifest(target="host")}, "was built for host, expected k230-rtsmart"),
        ({"sections": manifest(executorch={"version": "1.3.1"})}, "has ExecuTorch 1.3, model m"),
    ],
)
def test_an_unfit_runner_is_refused(rtsmart: Any, changes: Any, message: str) -> None:
    with pytest.raises(RunnerError, match=message):
        check_runner(rtsmart(**changes), RTSMART, name="b1: runner", variant="rvv", model=MODEL)


def test_a_runner_one_minor_version_behind_the_model_is_taken(rtsmart: Any) -> None:
    older = rtsmart(sections=manifest(executorch={"version": "1.4.1"}))
    check_runner(older, RTSMART, variant="rvv", model=MODEL)


def test_lacking_operators_are_listed(rtsmart: Any) -> None:
    registered = {"aten::add.out"}
    with pytest.raises(RunnerError, match=r"lacks operators of model m: aten::convolution\.out\."):
        check_runner(rtsmart(), RTSMART, registered=registered, model=MODEL)
    check_runner(rtsmart(), RTSMART, registered=set(MODEL.operators), model=MODEL)


def test_a_model_too_big_for_the_core_is_refused(rtsmart: Any) -> None:
    big = ModelNeeds("big", (), "1.5.1", 60 << 20, 20 << 20)
    with pytest.raises(RunnerError, match="takes 80 MiB, RT-Smart leaves about 78 MiB"):
        check_runner(rtsmart(), RTSMART, model=big)


def test_a_prebuilt_program_without_manifest_is_taken_when_no_variant_is_asked(
    rtsmart: Any, elf_file: Any
) -> None:
    assert check_runner(rtsmart(sections={}), RTSMART).manifest is None
    x86 = elf_file(machine=62, kind=3, interpreter=b"/lib64/ld.so", needed=b"libx.so")
    assert check_runner(x86, HOST).manifest is None


def test_needs_are_read_from_the_models_description() -> None:
    document = {
        "name": "m",
        "operators": ["aten::add.out"],
        "versions": {"executorch": "1.5.1"},
        "pte": {"bytes": 5},
        "planned_buffers": [1, 2],
    }
    assert model_needs(document) == ModelNeeds("m", ("aten::add.out",), "1.5.1", 5, 3)
    with pytest.raises(RunnerError, match="names no model or no operators"):
        model_needs({"name": "m"})


def test_a_variant_must_have_its_own_kernels() -> None:
    listing = "aten::add.out\tfallback\naten::convolution.out\tv1/6;0,1\nnoise\n"
    kernels = parse_listing(listing)
    assert kernels[1] == RegisteredKernel("aten::convolution.out", "v1/6;0,1")
    assert len(kernels) == 2
    check_bindings(Variant("rvv", "", operators=("aten::convolution.out",)), kernels)
    with pytest.raises(RunnerError, match=r"its own kernels for aten::add\.out, but none"):
        check_bindings(Variant("rvv", "", operators=("aten::add.out",)), kernels)


def test_a_runner_that_cannot_start_here_tells_its_kernels_by_their_names() -> None:
    data = b"\0aten::add.out\0aten::mul.out\0k230::add.out\0k230::fused.out\0v1/6;0|6;0\0v1/x\0"
    kernels = kernels_in_file(data)
    registered = {kernel.operator for kernel in kernels}
    assert registered >= {"aten::add.out", "aten::mul.out", "k230::fused.out"}
    check_bindings(Variant("rvv", "", operators=("aten::add.out",)), kernels)
    with pytest.raises(RunnerError, match=r"its own kernels for aten::mul\.out, but none"):
        check_bindings(Variant("rvv", "", operators=("aten::mul.out",)), kernels)
    mine = OwnKernel("aten::mul.out", "mine::mul_out", keys=("v1/6;0|6;0",))
    check_bindings(Variant("mine", "", kernels=(mine,)), kernels)
    other = OwnKernel("aten::mul.out", "mine::mul_out", keys=("v1/6;0",))
    with pytest.raises(RunnerError, match=r"its own kernels for aten::mul\.out, but none"):
        check_bindings(Variant("mine", "", kernels=(other,)), kernels)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "-- ok\nCMake Error at x.cmake:3 (message):\n  k230: no ExecuTorch package\n  here\n"
            "Call Stack (most recent call first):\n  CMakeLists.txt:3\n",
            "no ExecuTorch package here",
        ),
        ("[1/2] a.cpp\na.cpp:3:1: error: no\nninja: stopped", "a.cpp:3:1: error: no"),
        ("ld: undefined reference to `f'\nninja: stopped\n", "ld: undefined reference to `f'"),
        ("something\n\n", "something"),
        ("", "no output"),
    ],
)
def test_the_reason_of_a_failed_build_is_one_line(output: str, reason: str) -> None:
    assert failure_reason(output.split("\n")) == reason
