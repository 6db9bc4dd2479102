"""From a model to ``model.pte``, ``model.etrecord`` and ``model.json``: verified, incremental."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dataset.locks import only_one
from ..errors import InputError, ModelError
from . import contract as contracts
from .bundle import ModelBundle
from .contract import FileRef, InputSpec, ModelContract, OutputSpec, file_sha256
from .host import HostProgram
from .quiet import quiet_torch
from .versions import check, installed
from .zoo import ModelRequest, build, check_request

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

Say = Callable[[str], None]

BOARD_PROGRAM_MEMORY = 78 * 1024 * 1024
"""Bytes that user programs have on the RT-Smart core, about: SDK default less the system."""

TOLERANCE = 1e-4
"""Largest allowed difference to eager, in units of the largest score."""

_CACHE = ".weights"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Passes:
    """Optional changes; ``fuse_clamp`` needs a runner built with our kernels."""

    fold_batch_norm: bool = True
    constants: bool = True
    fuse_clamp: bool = False


@dataclass(frozen=True)
class ExportPlan:
    """What to export and where to: ``<out>/<name>/``."""

    request: ModelRequest
    out: Path
    name: str
    passes: Passes
    key: str
    versions: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """The model's folder."""
        return self.out / self.name


@dataclass(frozen=True)
class Exported:
    """The outcome; ``seconds`` by step, empty when nothing was to be done."""

    folder: Path
    contract: ModelContract
    changed: bool
    seconds: Mapping[str, float]


def plan(
    request: ModelRequest, out: Path, name: str | None = None, passes: Passes = Passes()
) -> ExportPlan:
    """Check the request and identify its inputs; torch is not imported, nothing written.

    Raises:
        InputError: the request cannot work.
        EnvironmentProblemError: torch and executorch are not the expected pair.
    """
    check_request(request)
    chosen = name or re.sub(r"[^A-Za-z0-9._-]+", "-", request.model)
    if not _NAME.fullmatch(chosen):
        raise InputError(
            f"model name {chosen!r} cannot be a folder name",
            hint="use letters, digits, dots, dashes and underscores.",
        )
    versions = installed()
    check(versions)
    inputs = {
        "format": 1,
        "request": asdict(request),
        "weights_sha256": file_sha256(request.weights_file) if request.weights_file else None,
        "code_sha256": _code_hash(request),
        "passes": asdict(passes),
        "versions": versions,
    }
    key = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
    return ExportPlan(request, out, chosen, passes, key, versions)


def unchanged(todo: ExportPlan) -> ModelContract | None:
    """The contract, if it was exported from these very inputs and its files are whole."""
    try:
        contract = contracts.load(todo.folder, verify_files=True)
    except ModelError:
        return None
    return contract if contract.export.get("key") == todo.key else None


def export(todo: ExportPlan, say: Say = lambda text: None) -> Exported:
    """Export, verify and write the model's folder; does nothing if nothing changed.

    Raises:
        ModelError: torch cannot export it, or the result disagrees with the original.
    """
    with only_one(todo.folder, say):
        existing = unchanged(todo)
        if existing is not None:
            return Exported(todo.folder, existing, False, {})
        return _export(todo, say)


def _export(todo: ExportPlan, say: Say) -> Exported:
    quiet_torch()
    clock = _Clock(say)
    bundle = build(todo.request, todo.out / _CACHE, say)
    clock.step("build")
    staging = todo.out / f".{todo.name}.partial"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        contract = _lower(todo, bundle, staging, clock)
        _replace_files(staging, todo.folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return Exported(todo.folder, contract, True, clock.seconds)


def _lower(todo: ExportPlan, bundle: ModelBundle, staging: Path, clock: _Clock) -> ModelContract:
    import torch

    side = bundle.preprocessing.crop_size
    example = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    state = bundle.module.state_dict().values()
    # known before the work; what the planned buffers add is known after it
    _check_memory(todo.name, sum(part.numel() * part.element_size() for part in state))
    with torch.no_grad():
        expected = bundle.module(example)
    if not isinstance(expected, torch.Tensor) or expected.shape != (1, len(bundle.classes)):
        found = list(expected.shape) if isinstance(expected, torch.Tensor) else type(expected)
        raise ModelError(
            f"{todo.name} gives {found}, scores [1, {len(bundle.classes)}] expected",
            hint="export a classifier whose class list is as long as its output.",
        )
    module, folded = bundle.module, 0
    if todo.passes.fold_batch_norm:
        from .passes.fold_batch_norm import fold

        module, folded = fold(module)
    program = _exported(module, example, todo.name)
    clock.step("export")
    program, fused = _changed(program, todo.passes)
    error = 0.0
    if fused:
        with torch.no_grad():
            error = _agree(program.module()(example), expected, "the graph with fused clamps")
    clock.step("passes")
    lowered = _to_executorch(program)
    clock.step("lower")
    pte, etrecord = staging / "model.pte", staging / "model.etrecord"
    with pte.open("wb") as stream:
        lowered.write_to_file(stream)
    lowered.get_etrecord().save(str(etrecord))
    clock.step("write")
    _check_record(etrecord)
    if not fused:
        # the host runtime lacks the fused operator
        error = _agree(HostProgram(pte).run_tensor(example), expected, "the exported program")
    clock.step("verify")
    steps = lowered.executorch_program.execution_plan[0]
    contract = ModelContract(
        name=todo.name,
        source=bundle.source,
        input=InputSpec(tuple(example.shape), bundle.preprocessing),
        output=OutputSpec(tuple(expected.shape)),
        classes=bundle.classes,
        operators=tuple(sorted({_operator(entry) for entry in steps.operators})),
        # the first entry of ExecuTorch's list is reserved and always 0
        planned_buffers=tuple(int(size) for size in steps.non_const_buffer_sizes[1:]),
        pte=FileRef.of(pte),
        etrecord=FileRef.of(etrecord),
        versions=todo.versions,
        label_offset=bundle.label_offset,
        published=bundle.published,
        export={
            "key": todo.key,
            "passes": {**asdict(todo.passes), "folded": folded, "fused": fused},
            "error_to_eager": error,
        },
    )
    _check_memory(contract.name, contract.pte.bytes + sum(contract.planned_buffers))
    contracts.save(contract, staging)
    return contract


def _exported(module: torch.nn.Module, example: torch.Tensor, name: str) -> ExportedProgram:
    import torch

    # constants that were computed from trainable parameters cannot be copied
    module.requires_grad_(False)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.export(module, (example,), strict=True)
    except Exception as problem:
        line = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
        raise ModelError(
            f"{name} cannot be exported by torch.export: {line}",
            hint="remove control flow that depends on data from the model.",
        ) from problem


def _changed(program: ExportedProgram, passes: Passes) -> tuple[ExportedProgram, int]:
    from .passes import constants, fuse_clamp

    if passes.constants:
        program = constants.propagate(program)
    elif passes.fuse_clamp:
        program = program.run_decompositions()
    return fuse_clamp.fuse(program) if passes.fuse_clamp else (program, 0)


def _to_executorch(program: ExportedProgram) -> Any:
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = to_edge_transform_and_lower(
            program,
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
            generate_etrecord=True,
        )
        return edge.to_executorch()


def _check_record(etrecord: Path) -> None:
    """Open the ETRecord that was written."""
    from executorch.devtools.etrecord import parse_etrecord

    record = parse_etrecord(str(etrecord))
    if record.edge_dialect_program is None or not record._debug_handle_map:
        raise ModelError("the ETRecord holds no graph", hint="report this, with the model.")


def _agree(found: torch.Tensor, expected: torch.Tensor, what: str) -> float:
    scale = max(float(expected.abs().max()), 1e-30)
    error = float((found - expected).abs().max()) / scale
    # written this way round, so that a NaN fails too
    if not error <= TOLERANCE:
        raise ModelError(
            f"{what} differs from the original by {error:.1e} of the largest score, "
            f"{TOLERANCE:.0e} allowed",
            hint="export without optional passes to find the one that does it.",
        )
    return error


def _check_memory(name: str, needed: int) -> None:
    """A program that does not fit into the core's memory cannot start there."""
    if needed > BOARD_PROGRAM_MEMORY:
        raise ModelError(
            f"{name} needs {needed / 2**20:.0f} MiB for weights and buffers, the RT-Smart core "
            f"has about {BOARD_PROGRAM_MEMORY / 2**20:.0f} MiB for programs",
            hint="use a smaller model or input.",
        )


def _operator(entry: Any) -> str:
    return f"{entry.name}.{entry.overload}" if entry.overload else str(entry.name)


def _replace_files(staging: Path, folder: Path) -> None:
    """Move the files in; the contract goes first out and last in, so it never names others."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / contracts.FILE_NAME).unlink(missing_ok=True)
    for name in ("model.pte", "model.etrecord", contracts.FILE_NAME):
        (staging / name).replace(folder / name)


def _code_hash(request: ModelRequest) -> str | None:
    """Hash of a user's model source, so that an edited model is exported again."""
    import importlib.util

    from .zoo import user_function

    path = user_function(request.model)
    if path is None:
        return None
    try:
        spec = importlib.util.find_spec(path.partition(":")[0])
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.has_location:
        raise InputError(
            f"model {path}: no such Python module",
            hint="give module:function, with the module's folder in PYTHONPATH.",
        )
    return file_sha256(Path(spec.origin))


class _Clock:
    """Wall time by step."""

    def __init__(self, say: Say) -> None:
        self.seconds: dict[str, float] = {}
        self._say = say
        self._last = time.monotonic()

    def step(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = round(now - self._last, 3)
        self._last = now
        self._say(f"{name}: {self.seconds[name]:.1f} s")
