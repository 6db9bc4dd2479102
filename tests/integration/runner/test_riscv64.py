"""The runner for RISC-V, against an ExecuTorch that was installed for it, in an emulator.

Set K230_EXECUTORCH_PREFIX to such an installation (docs/runner.md); without it this is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.errors import RunnerError
from k230_lib.inference.frames import FrameReader
from k230_lib.inference.results import read_results
from k230_lib.runner.build import BuildRequest, BuiltRunner, build_runner
from k230_lib.runner.preflight import check_runner_file

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
PREFIX = os.environ.get("K230_EXECUTORCH_PREFIX", "")
VECTOR = "rv64,v=true,vext_spec=v1.0,vlen="
NO_VECTOR = "rv64,v=false"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PREFIX, reason="K230_EXECUTORCH_PREFIX names no riscv64 ExecuTorch"),
    pytest.mark.skipif(shutil.which("qemu-riscv64") is None, reason="no qemu-riscv64"),
]

REFUSING_RELU = """
#include <executorch/runtime/kernel/kernel_includes.h>
namespace mine::native {
using executorch::aten::Tensor;
Tensor& relu_out(executorch::runtime::KernelRuntimeContext& context, const Tensor&, Tensor& out) {
  context.fail(executorch::runtime::Error::NotSupported);
  return out;
}
}
"""
VARIANTS = """
schema_version: 1
variants:
  small: {}
  mine:
    sources: [relu.cpp]
    kernels:
      - op: relu.out
        kernels: [{arg_meta: null, kernel_name: mine::relu_out}]
"""

Builder = Callable[..., BuiltRunner]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    output = tmp_path_factory.mktemp("riscv64")

    def make(variant: str, **changes: Any) -> BuiltRunner:
        return build_runner(
            BuildRequest(variant, "riscv64-linux", KERNELS, output, prefix=Path(PREFIX), **changes)
        )

    return make


def emulate(
    runner: BuiltRunner, cpu: str, work: Path, *flags: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["qemu-riscv64", "-cpu", cpu, runner.path, *flags],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("tracer", [True, False])
@pytest.mark.parametrize("variant", ["portable", "rvv"])
def test_results_are_those_of_the_host(
    build: Builder, samples: Any, work: Path, variant: str, tracer: bool
) -> None:
    cpu = f"{VECTOR}128" if variant == "rvv" else NO_VECTOR
    runner = build(variant, tracer=tracer)
    facts = check_runner_file(runner.path, "riscv64-linux", variant=variant)
    assert facts.elf.static
    assert facts.elf.has_vector == (variant == "rvv")
    assert ("aten::convolution.out" in runner.document["bindings"]) == (variant == "rvv")
    (work / "s.list").write_text("\n".join(samples.list_lines()) + "\n")
    flags = [f"--model_path={samples.model}", "--inputs_list=s.list", "--results_file=r.res"]
    flags += ["--run_id=r", *(["--etdump_path=t.etdump"] if tracer else [])]
    done = emulate(runner, cpu, work, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert FrameReader().feed(done.stdout)[-1].kind == "end"
    found = np.array([record.logits for record in read_results(work / "r.res").records])
    np.testing.assert_allclose(found, samples.expected(), rtol=1e-5, atol=1e-6)
    if tracer:
        from executorch.devtools import Inspector

        table = Inspector(etdump_path=str(work / "t.etdump")).to_dataframe()
        assert table.event_name.str.endswith("convolution.out").sum() == 2


def test_a_core_without_vectors_is_refused_with_a_sentence(
    build: Builder, samples: Any, work: Path
) -> None:
    done = emulate(build("rvv"), NO_VECTOR, work, f"--model_path={samples.model}")
    assert done.returncode == 1
    (frame,) = FrameReader().feed(done.stdout)
    assert frame.fields["code"] == "cpu"
    assert "no vector extension" in frame.fields["reason"]


def test_the_vector_variant_needs_a_compiler_with_intrinsics(
    build: Builder, tmp_path: Path
) -> None:
    request = BuildRequest(
        "rvv", "riscv64-linux", KERNELS, tmp_path, prefix=Path(PREFIX),
        defines=("K230_RISCV_COMPILER=gcc",),
    )  # fmt: skip
    version = subprocess.run(
        ["riscv64-linux-gnu-g++", "-dumpversion"], capture_output=True, text=True, check=True
    ).stdout
    if int(version.split(".")[0]) >= 14:
        pytest.skip("this gcc has the intrinsics")
    with pytest.raises(RunnerError, match=r"expected V in its ISA, found rv64.*clang 19 or gcc 14"):
        build_runner(request)


def test_only_a_models_operators_and_a_kernel_in_place_of_executorchs(
    build: Builder, samples: Any, work: Path
) -> None:
    (work / "relu.cpp").write_text(REFUSING_RELU)
    (work / "variants.yml").write_text(VARIANTS)
    operators = ["convolution", "relu", "mean", "addmm", "permute_copy"]
    names = [f"aten::{name}.out" for name in operators]
    (work / "model.json").write_text(json.dumps({"name": "small", "operators": names}))
    changes = {"variants": work / "variants.yml", "models": (work / "model.json",)}
    small = build("small", **changes)
    every = build("portable")
    assert small.document["load_bytes"] < every.document["load_bytes"] / 3
    assert "aten::add.out" not in small.document["registered"]
    (work / "one.bin").write_bytes(samples.inputs[1].tobytes())
    flags = [f"--model_path={samples.model}", "--inputs=one.bin", "--output_file=o"]
    assert emulate(small, NO_VECTOR, work, *flags).returncode == 0
    found = np.fromfile(work / "o-0.bin", "<f4")
    np.testing.assert_allclose(found, samples.expected()[1], rtol=1e-5, atol=1e-6)
    mine = build("mine", **changes)
    assert mine.document["bindings"] == {"aten::relu.out": "mine::relu_out"}
    (frame,) = FrameReader().feed(emulate(mine, NO_VECTOR, work, *flags).stdout)
    assert "failed with error 16" in frame.fields["reason"]  # NotSupported: ours was called


def test_missing_operators_are_named_on_the_board_too(
    build: Builder, samples: Any, work: Path
) -> None:
    done = emulate(build("portable"), NO_VECTOR, work, f"--model_path={samples.unknown_model}")
    (frame,) = FrameReader().feed(done.stdout)
    assert frame.fields == {"code": "operators", "reason": "missing demo::twice.out"}
