"""Builds ``k230_runner`` with CMake, only when something changed, and proves what came out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import RunnerError
from . import tools
from .checks import RunnerFacts, check_runner
from .manifest import embedded_document, git_revision, source_digest
from .operators import RegisteredKernel, check_bindings, registered_kernels
from .preflight import read_model_needs
from .registration import Registration, check_possible, make_registration
from .targets import Target, choose_target
from .variants import Variant, choose_variant, load_variants

RUNNER_NAME: Final = "k230_runner"
MANIFEST_NAME: Final = "manifest.json"
_STAMP_NAME: Final = "inputs.json"
_LOG_NAME: Final = "build.log"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class BuildRequest:
    """What to build.

    Attributes:
        variant: name in ``variants.yml``.
        target: name in :data:`k230_lib.runner.targets.TARGETS`.
        source: the folder ``kernels/``.
        output: folder of all runners; each gets ``<variant>-<target>[-notrace]`` below it.
        tracer: whether ETDumps can be written.
        prefix: installed ExecuTorch for the target; none means the pip package (host only).
        defines: further CMake cache entries, e.g. paths of the SDK.
        variants: file that describes the variants; by default ``variants.yml`` in ``source``.
        models: ``model.json`` files; only their operators are linked in. None means all.
    """

    variant: str
    target: str
    source: Path
    output: Path
    tracer: bool = True
    prefix: Path | None = None
    defines: tuple[str, ...] = ()
    variants: Path | None = None
    models: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """Where this runner, its manifest and its build tree go."""
        suffix = "" if self.tracer else "-notrace"
        return self.output / f"{self.variant}-{self.target}{suffix}"


@dataclass(frozen=True)
class BuiltRunner:
    """What a build left.

    Attributes:
        path: the ELF.
        manifest_path: JSON beside it: the embedded manifest and facts of the file.
        sha256: of the ELF.
        changed: whether the ELF is another than before.
        built: whether CMake ran.
    """

    path: Path
    manifest_path: Path
    sha256: str
    changed: bool
    built: bool
    document: dict[str, Any]


@dataclass(frozen=True)
class _Plan:
    request: BuildRequest
    variant: Variant
    target: Target
    build_tools: tools.BuildTools
    executorch: tools.ExecuTorch
    embedded: dict[str, Any]
    selected: frozenset[str] | None

    def inputs(self) -> dict[str, Any]:
        """Everything that decides what comes out; equal inputs need no build."""
        return {
            "manifest": self.embedded,
            "executorch": [str(self.executorch.root), self.executorch.version],
            "cmake": self.build_tools.cmake_version,
            "compiler": [os.environ.get("CXX", ""), os.environ.get("CXXFLAGS", "")],
            "defines": list(self.request.defines),
            "selected": None if self.selected is None else sorted(self.selected),
        }


def needs_build(request: BuildRequest) -> bool:
    """Whether :func:`build_runner` would run CMake. Nothing is written.

    Raises:
        RunnerError, InputError, EnvironmentProblemError: it could not build.
    """
    return not _is_current(_plan(request))


def build_runner(request: BuildRequest, progress: Progress | None = None) -> BuiltRunner:
    """Configure and build what ``request`` describes, unless it is there already.

    Args:
        progress: called with one line for each step.

    Raises:
        InputError: variant or target is unknown.
        EnvironmentProblemError: CMake or Ninja is missing or too old.
        RunnerError: ExecuTorch is missing or too old, the build failed, or what came out is not
            what was asked for.
    """
    say = progress or (lambda line: None)
    plan = _plan(request)
    before = _sha256_if_there(request.folder / RUNNER_NAME)
    if _is_current(plan):
        say(f"{request.folder.name}: up to date")
        return _result(request, before, built=False)
    request.folder.mkdir(parents=True, exist_ok=True)
    (request.folder / _STAMP_NAME).unlink(missing_ok=True)
    registration = make_registration(
        plan.variant, plan.executorch, plan.selected, request.source, request.folder / "generated"
    )
    _run_cmake(plan, registration, say)
    _publish(plan, registration, say)
    _write_json(request.folder / _STAMP_NAME, plan.inputs())
    return _result(request, before, built=True)


def _plan(request: BuildRequest) -> _Plan:
    target = choose_target(request.target)
    described = request.variants or request.source / "variants.yml"
    variant = choose_variant(load_variants(described), request.variant)
    if request.prefix is not None:
        executorch = tools.check_prefix(request.prefix)
    elif target.from_wheel:
        executorch = tools.find_wheel()
    else:
        raise RunnerError(
            f"target {target.name} needs an ExecuTorch that was installed for it.",
            hint="give one (runner_prefix, --prefix); docs/runner.md says how it is made.",
        )
    check_possible(variant, executorch)
    embedded = embedded_document(
        variant,
        target.name,
        tracer=request.tracer,
        source_sha256=source_digest(request.source, variant.sources),
        revision=git_revision(request.source),
    )
    build_tools = tools.find_build_tools()
    return _Plan(
        request, variant, target, build_tools, executorch, embedded, _selection(request.models)
    )


def _selection(models: tuple[Path, ...]) -> frozenset[str] | None:
    if not models:
        return None
    return frozenset(name for path in models for name in read_model_needs(path).operators)


def _is_current(plan: _Plan) -> bool:
    folder = plan.request.folder
    try:
        stamp = json.loads((folder / _STAMP_NAME).read_text("utf-8"))
        recorded = json.loads((folder / MANIFEST_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    built = _sha256_if_there(folder / RUNNER_NAME)
    return bool(stamp == plan.inputs() and built and built == recorded.get("sha256"))


def _run_cmake(plan: _Plan, registration: Registration, say: Progress) -> None:
    request = plan.request
    tree = request.folder / "build"
    manifest = request.folder / "embedded.json"
    _write_json(manifest, plan.embedded)
    preset = plan.target.preset + ("" if request.tracer else "-notrace")
    defines = {
        "CMAKE_PREFIX_PATH": str(plan.executorch.root),
        "CMAKE_MAKE_PROGRAM": str(plan.build_tools.ninja),
        "K230_VARIANT": plan.variant.name,
        "K230_MANIFEST": str(manifest.resolve()),
        "K230_KERNEL_LIBRARIES": ";".join(plan.variant.libraries),
        "K230_REQUIRE_RVV": "ON" if plan.variant.needs_vector else "OFF",
        **registration.defines,
    }
    headers = tools.etdump_headers()
    if plan.executorch.form == "prefix" and headers is not None:
        defines["K230_ETDUMP_HEADERS"] = str(headers)
    cmake = str(plan.build_tools.cmake)
    log = request.folder / _LOG_NAME
    log.unlink(missing_ok=True)
    say(f"{request.folder.name}: configuring against ExecuTorch at {plan.executorch.root}")
    _run(
        # Fresh: a cache would keep the place of another ExecuTorch, or an entry no longer given.
        [cmake, "--fresh", "-S", str(request.source.resolve()), "-B", str(tree.resolve())]
        + ["--preset", preset]
        + [f"-D{key}={value}" for key, value in defines.items()]
        + [f"-D{define}" for define in request.defines],
        request.source,
        log,
        say,
    )
    say(f"{request.folder.name}: compiling")
    _run([cmake, "--build", str(tree.resolve()), "--target", RUNNER_NAME], tree, log, say)


def _run(command: list[str], folder: Path, log: Path, say: Progress) -> None:
    """Run one step with its output in the log; a failure becomes one line."""
    lines: list[str] = []
    with (
        log.open("a", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            lines.append(line.rstrip("\n"))
            if line.startswith("["):
                say(line.rstrip("\n"))
    if process.returncode != 0:
        raise RunnerError(
            f"the build of the runner failed: {failure_reason(lines)}", hint=f"look into {log}."
        )


def failure_reason(lines: list[str]) -> str:
    """The line of a build's output that says most about why it failed."""
    for index, line in enumerate(lines):
        if line.startswith("CMake Error") and "k230:" in (
            text := " ".join(part.strip() for part in lines[index : index + 8])
        ):
            message = text[text.index("k230:") + len("k230:") :]
            return message.split("Call Stack")[0].split("-- ")[0].strip()
    for line in lines:
        if "error:" in line or "undefined reference" in line or line.startswith("CMake Error"):
            return line.strip()
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _publish(plan: _Plan, registration: Registration, say: Progress) -> None:
    """Check the linked file and put it, with its manifest, where others look for it."""
    folder = plan.request.folder
    linked = folder / "build" / "runner" / RUNNER_NAME
    data = linked.read_bytes()
    # also refuses a file without the manifest of this variant
    facts = check_runner(data, plan.target, name=str(linked), variant=plan.variant.name)
    kernels = registered_kernels(linked, plan.target, data)
    check_bindings(plan.variant, kernels)
    document = _document(facts, data, kernels, registration)
    temporary = folder / f".{RUNNER_NAME}.new"
    temporary.write_bytes(data)
    temporary.chmod(0o755)
    temporary.replace(folder / RUNNER_NAME)
    _write_json(folder / MANIFEST_NAME, document)
    say(f"{folder.name}: {len(data)} bytes, {len(document['registered'])} operators")


def _document(
    facts: RunnerFacts,
    data: bytes,
    kernels: tuple[RegisteredKernel, ...],
    registration: Registration,
) -> dict[str, Any]:
    ours = sorted({kernel.operator for kernel in kernels if kernel.key and kernel.operator})
    embedded = facts.manifest.document if facts.manifest else {}
    return {
        **embedded,
        "file": RUNNER_NAME,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "registered": sorted({kernel.operator for kernel in kernels} - {""}),
        "bindings": {**dict.fromkeys(ours, "k230"), **registration.bindings},
        "arch": facts.elf.arch,
        "load_bytes": facts.elf.load_bytes,
        "memory_bytes": facts.elf.memory_bytes,
        "load_ms": {"value": facts.load_ms, "origin": "modelled"},
    }


def _result(request: BuildRequest, before: str, *, built: bool) -> BuiltRunner:
    manifest_path = request.folder / MANIFEST_NAME
    document = json.loads(manifest_path.read_text("utf-8"))
    return BuiltRunner(
        path=request.folder / RUNNER_NAME,
        manifest_path=manifest_path,
        sha256=document["sha256"],
        changed=document["sha256"] != before,
        built=built,
        document=document,
    )


def _sha256_if_there(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _write_json(path: Path, document: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", "utf-8")
    temporary.replace(path)
