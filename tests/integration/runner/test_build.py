"""Building: once per change, with a user's own kernels, and every way it can be refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.errors import EnvironmentProblemError, InputError, RunnerError
from k230_lib.runner.build import BuildRequest, build_runner, needs_build
from k230_lib.runner.elf import parse_elf
from k230_lib.runner.manifest import manifest_of_elf
from k230_lib.runner.preflight import check_runner_file
from k230_lib.runner.tools import find_build_tools, find_wheel

KERNELS = Path(__file__).resolve().parents[3] / "kernels"

# Ours adds one to what ReLU gives: whoever calls it, it shows in the output.
RELU = """
#include <executorch/runtime/kernel/kernel_includes.h>

namespace mine {
namespace native {

using executorch::aten::Tensor;

Tensor& relu_out(executorch::runtime::KernelRuntimeContext&, const Tensor& in, Tensor& out) {
  const float* from = in.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (ssize_t i = 0; i < in.numel(); ++i) {
    to[i] = (from[i] > 0 ? from[i] : 0) + 1;
  }
  return out;
}

}  // namespace native
}  // namespace mine
"""

VARIANTS = """
schema_version: 1
variants:
  plain: {}
  in-front:
    summary: our ReLU for float32 images
    sources: [relu.cpp]
    kernels:
      - op: relu.out
        kernels: [{arg_meta: null, kernel_name: mine::relu_out}]
        keys: ['v1/6;0,1,2,3|6;0,1,2,3|6;0,1,2,3']
  instead:
    sources: [relu.cpp]
    kernels:
      - op: relu.out
        kernels: [{arg_meta: null, kernel_name: mine::relu_out}]
  misspelt:
    sources: [relu.cpp]
    kernels:
      - op: rellu.out
        kernels: [{arg_meta: null, kernel_name: mine::relu_out}]
        keys: ['v1/6;0,1,2,3|6;0,1,2,3|6;0,1,2,3']
  no-library:
    libraries: [k230_kernels_of_nobody]
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user with a kernel and variants of their own, and what is built of them."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "relu.cpp").write_text(RELU)
    (folder / "variants.yml").write_text(VARIANTS)
    return folder


@pytest.fixture
def request_of(user: Path) -> Any:
    """A request for a variant of the user's file."""

    def make(variant: str, **changes: Any) -> BuildRequest:
        described = user / "variants.yml"
        return BuildRequest(variant, "host", KERNELS, user / "out", variants=described, **changes)

    return make


def test_the_manifest_is_in_the_file_and_beside_it(built: Any) -> None:
    data = built.path.read_bytes()
    embedded = manifest_of_elf(data, parse_elf(data))
    beside = json.loads(built.manifest_path.read_text())
    assert embedded is not None
    for key, value in embedded.document.items():
        assert beside[key] == value
    assert (embedded.variant, embedded.target, embedded.tracer) == ("portable", "host", True)
    assert embedded.executorch.startswith(find_wheel().version)
    assert embedded.document["compiler"]["version"]
    assert "-O3" in embedded.document["flags"]
    assert beside["bytes"] == len(data)
    assert beside["load_ms"]["origin"] == "modelled"
    assert check_runner_file(built.path, "host", variant="portable").manifest == embedded


def test_a_second_build_does_nothing_until_something_changes(built: Any) -> None:
    request = BuildRequest("portable", "host", KERNELS, built.path.parents[1])
    assert not needs_build(request)
    lines: list[str] = []
    again = build_runner(request, lines.append)
    assert (again.built, again.changed, again.sha256) == (False, False, built.sha256)
    assert lines == ["portable-host: up to date"]
    assert needs_build(
        BuildRequest("portable", "host", KERNELS, built.path.parents[1], defines=("A=1",))
    )
    data = built.path.read_bytes()
    built.path.write_bytes(data[:-1])
    assert needs_build(request)
    built.path.write_bytes(data)


def test_a_users_kernel_in_front_of_executorchs_is_called(
    request_of: Any, samples: Any, run: Any, work: Path
) -> None:
    lines: list[str] = []
    mine = build_runner(request_of("in-front", tracer=False), lines.append)
    assert mine.document["bindings"] == {"aten::relu.out": "mine::relu_out"}
    assert lines[0].startswith("in-front-host-notrace: configuring")
    assert lines[-1].endswith("operators")
    (work / "one.bin").write_bytes(samples.inputs[0].tobytes())
    flags = ("--inputs=one.bin", "--print_output=none")
    run(*flags, "--output_file=theirs")
    command = [mine.path, f"--model_path={samples.model}", *flags, "--output_file=ours"]
    subprocess.run(command, cwd=work, check=True, capture_output=True)
    theirs, ours = (np.fromfile(work / f"{name}-0.bin", "<f4") for name in ("theirs", "ours"))
    assert np.abs(ours - theirs).min() > 1e-3
    refused = subprocess.run(
        [*command, "--etdump_path=t"], cwd=work, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "built without tracer" in refused.stdout


@pytest.mark.parametrize(
    ("variant", "kind", "message"),
    [
        ("instead", RunnerError, r"variant instead replaces aten::relu\.out, which the pip"),
        ("misspelt", InputError, r"ExecuTorch knows no operator aten::rellu\.out"),
        ("no-library", RunnerError, "'no-library' names 'k230_kernels_of_nobody', which is no"),
        (
            "nothing",
            InputError,
            "no runner variant 'nothing': there are in-front, instead, misspelt, no-library, plain",
        ),
    ],
)
def test_a_variant_that_cannot_be_built_says_why(
    request_of: Any, variant: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        build_runner(request_of(variant))


def test_a_failed_build_says_why_and_is_tried_again(request_of: Any, user: Path) -> None:
    request = request_of("in-front", tracer=False)
    for text, reason in (("no C++", r"relu\.cpp:1:1: error"), ("", "undefined reference to `mine")):
        (user / "relu.cpp").write_text(text)
        with pytest.raises(
            RunnerError, match=rf"build of the runner failed: .*{reason}.*look into"
        ):
            build_runner(request)
        assert needs_build(request)
    (user / "relu.cpp").write_text(RELU)
    assert build_runner(request).built
    assert not needs_build(request)


def test_a_prefix_that_is_none_is_refused(request_of: Any, tmp_path: Path) -> None:
    for prefix, message in (
        (tmp_path / "gone", "no folder .*gone for the ExecuTorch prefix"),
        (tmp_path, "is no installed ExecuTorch: expected lib/cmake"),
    ):
        with pytest.raises(RunnerError, match=message):
            build_runner(request_of("plain", prefix=prefix))


@pytest.mark.parametrize(
    ("version", "targets", "message"),
    [
        ("1.5.0", [], r"has no C\+\+ libraries"),
        ("1.1.0", ["executorch"], r"prefix has version '1\.1\.0': 1\.2 or later is needed"),
        ("1.2.0", ["executorch"], r"lacks 'extension_data_loader': build it with EXECUTORCH_BUILD"),
        (
            "1.4.1",
            ["executorch", "extension_data_loader", "portable_ops_lib"],
            "no event tracer: build the prefix with EXECUTORCH_BUILD_DEVTOOLS=ON",
        ),
    ],
)
def test_a_prefix_is_probed_for_what_it_lacks(
    request_of: Any, tmp_path: Path, version: str, targets: list[str], message: str
) -> None:
    config = tmp_path / "lib" / "cmake" / "ExecuTorch" / "executorch-config.cmake"
    header = tmp_path / "include" / "executorch" / "runtime" / "core" / "version.h"
    for path in (config, header):
        path.parent.mkdir(parents=True)
    header.write_text(f'#define ET_VERSION_MAJOR 1\n#define ET_VERSION "{version}"\n')
    lines = [f"set(EXECUTORCH_INCLUDE_DIRS {tmp_path}/include)", "set(EXECUTORCH_FOUND ON)"]
    lines += [f"add_library({target} INTERFACE IMPORTED)" for target in targets]
    config.write_text("\n".join(lines))
    with pytest.raises(RunnerError, match=message):
        build_runner(request_of("plain", prefix=tmp_path))


def test_an_old_or_missing_cmake_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblemError, match=r"cmake is not installed.*pip install"):
        find_build_tools()
    for name in ("cmake", "ninja"):
        (tmp_path / name).write_text("#!/bin/sh\necho cmake version 3.25.1\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(
        EnvironmentProblemError,
        match=r"CMake 3\.28 or later is needed, found 3\.25\.1 .*pip install",
    ):
        find_build_tools()


def test_an_old_or_missing_wheel_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "old" / "executorch"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("")
    info = tmp_path / "old" / "executorch-1.4.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: executorch\nVersion: 1.4.1\n")
    kept = [path for path in sys.path if not (Path(path) / "executorch").exists()]
    monkeypatch.setattr(sys, "path", kept)
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if "editable" not in repr(f)])
    for name in [name for name in sys.modules if name.split(".")[0] == "executorch"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        RunnerError, match=r"executorch package is not installed .*executorch>=1\.5"
    ):
        find_wheel()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "old"), *kept])
    with pytest.raises(RunnerError, match=r"executorch package 1\.4\.1 has no C\+\+ libraries"):
        find_wheel()


def test_another_program_is_refused_for_the_board(built: Any) -> None:
    with pytest.raises(RunnerError, match="is for x86-64, expected riscv64 for k230-rtsmart"):
        check_runner_file(built.path, "k230-rtsmart")
    with pytest.raises(RunnerError, match="is variant portable, expected rvv"):
        check_runner_file(built.path, "host", variant="rvv")
    with pytest.raises(RunnerError, match="carries no manifest: expected variant portable"):
        check_runner_file(Path("/bin/true"), "host", variant="portable")


def test_a_model_with_operators_that_the_runner_lacks(built: Any, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    model.write_text(
        json.dumps({"name": "odd", "operators": ["aten::relu.out", "demo::twice.out"]})
    )
    with pytest.raises(RunnerError, match=r"lacks operators of model odd: demo::twice\.out\."):
        check_runner_file(built.path, "host", model=model)
    model.write_text(json.dumps({"name": "plain", "operators": ["aten::relu.out"]}))
    check_runner_file(built.path, "host", model=model)


def test_the_commands_answer_in_json(built: Any) -> None:
    def k230(*words: str) -> Any:
        program = "from k230_lib.runner.commands import app; app()"
        done = subprocess.run(
            [sys.executable, "-c", program, *words, "--json"],
            capture_output=True,
            text=True,
            check=True,
            cwd=KERNELS.parent,
        )
        return json.loads(done.stdout)

    output = str(built.path.parents[1])
    assert k230("build", "--output", output, "--check")["changed"] is False
    assert k230("build", "--output", output, "--check", "--define", "A=1") == {"changed": True}
    answer = k230("build", "--output", output)
    assert answer["path"] == str(built.path)
    assert answer["manifest"]["sha256"] == built.sha256
    assert k230("check", str(built.path))["machine"] == "x86-64"
