"""The same program on the controller: the reference that boards are compared with."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..dataset import manifest
from ..dataset.locks import temporary
from ..dataset.preprocess import normalise
from ..dataset.shards import read_samples
from ..dataset.workers import ordered
from ..errors import DatasetError, ModelError
from . import contract as contracts
from .contract import ModelContract
from .quiet import quiet_torch, without_cpu_notes

if TYPE_CHECKING:
    import torch

Progress = Callable[[int, int], None]
Logits = npt.NDArray[np.float32]

_PART = 64
_PART_SECONDS = 20.0
"""Results are written after so many, or so much time: what a crash loses at most."""

_WORTH_WORKERS = 20.0
"""Seconds of work on one core that are worth the start of worker processes."""

_MAX_WORKERS = 16
"""Each holds torch and the program, about half a gigabyte."""


class HostProgram:
    """A ``.pte`` loaded into the ExecuTorch runtime of the wheel (portable and optimised)."""

    def __init__(self, pte: Path) -> None:
        quiet_torch()
        from executorch.runtime import Runtime, Verification

        self._first = True
        try:
            program = Runtime.get().load_program(pte, verification=Verification.Minimal)
            # the method does not keep its program alive
            self._program: Any = program
            self._method: Any = program.load_method("forward")
        except RuntimeError as problem:
            line = str(problem).splitlines()[0]
            raise ModelError(
                f"{pte} does not load on the host runtime: {line}",
                hint="export again; programs with k230:: operators run in k230_runner only.",
            ) from None

    def run_tensor(self, example: torch.Tensor) -> torch.Tensor:
        """The first output for one input."""
        # the cores are counted in the first execution of a process
        with without_cpu_notes() if self._first else nullcontext():
            outputs = self._method.execute([example])
        self._first = False
        return cast("torch.Tensor", outputs[0]).clone()

    def run(self, tensor: npt.NDArray[np.float32]) -> Logits:
        """Scores float32 [classes] for an input float32 [1, 3, H, W]."""
        import torch

        result = self.run_tensor(torch.from_numpy(tensor)).numpy()
        return cast(Logits, result.reshape(-1))


@dataclass(frozen=True)
class HostResults:
    """Scores by sample id: ``logits[k]`` (float32 [N, classes]) is that of ``indices[k]``."""

    indices: tuple[int, ...]
    logits: Logits
    computed: int


def run_dataset(
    model: Path,
    dataset: Path,
    cache: Path,
    indices: Sequence[int] | None = None,
    *,
    progress: Progress = lambda done, total: None,
) -> HostResults:
    """Scores of the host runtime for a dataset; what is in ``cache`` is not computed again.

    Args:
        model: folder with ``model.json`` and ``model.pte``.
        dataset: folder with ``dataset.json``.
        cache: folder; results are kept by the hashes of program and sample.
        indices: the sample ids wanted; all when none.
        progress: called with (done, total).

    Raises:
        DatasetError: an index is not in the dataset, or the shards are damaged.
        ModelError: the program is missing, changed, or does not run on the host.
    """
    contract = contracts.load(model, verify_files=True)
    described = manifest.load(dataset)
    _check_fit(contract, described)
    samples = {sample.index: sample for sample in manifest.read_manifest(dataset)}
    wanted = sorted(samples) if indices is None else list(indices)
    unknown = [index for index in wanted if index not in samples]
    if unknown:
        raise DatasetError(
            f"sample {unknown[0]} is not in {dataset} ({len(samples)} samples)",
            hint="give indices of the manifest.",
        )
    store = _Store(cache / _store_name(contract, described), contract.class_count)
    missing = {index for index in wanted if samples[index].sha256 not in store}
    total, done = len(wanted), len(wanted) - len(missing)
    progress(done, total)
    if missing:
        inputs = _tensors(dataset, described, missing)
        try:
            for index, logits in _computed(model / contract.pte.file, inputs, len(missing)):
                store.add(samples[index].sha256, logits)
                done += 1
                progress(done, total)
        finally:
            store.flush()
    rows = [store.get(samples[index].sha256) for index in wanted]
    scores = np.stack(rows) if rows else np.empty((0, contract.class_count), np.float32)
    return HostResults(tuple(wanted), scores, len(missing))


def _computed(
    pte: Path, inputs: Iterator[tuple[int, npt.NDArray[np.float32]]], count: int
) -> Iterator[tuple[int, Logits]]:
    """Scores by sample id, on all cores where that is worth the start of their processes."""
    program = HostProgram(pte)
    index, tensor = next(inputs)
    start = time.monotonic()
    yield index, program.run(tensor)
    expected = (time.monotonic() - start) * (count - 1)
    workers = min(os.cpu_count() or 1, count - 1, _MAX_WORKERS)
    if workers > 1 and expected > _WORTH_WORKERS:
        yield from ordered(_run_in_worker, inputs, workers, partial(_load_in_worker, pte))
        return
    for index, tensor in inputs:
        yield index, program.run(tensor)


_in_worker: HostProgram | None = None
"""The program of a worker process; none in the main one."""


def _load_in_worker(pte: Path) -> None:
    global _in_worker  # noqa: PLW0603 - a pool's workers have no other place for it
    _in_worker = HostProgram(pte)


def _run_in_worker(task: tuple[int, npt.NDArray[np.float32]]) -> tuple[int, Logits]:
    assert _in_worker is not None
    return task[0], _in_worker.run(task[1])


def missing_samples(
    model: Path, dataset: Path, cache: Path, indices: Sequence[int]
) -> tuple[int, ...]:
    """Which of the samples are not in ``cache`` yet; nothing is computed or written."""
    contract = contracts.load(model)
    described = manifest.load(dataset)
    _check_fit(contract, described)
    store = _Store(cache / _store_name(contract, described), contract.class_count)
    wanted = set(indices)
    return tuple(
        sample.index
        for sample in manifest.read_manifest(dataset)
        if sample.index in wanted and sample.sha256 not in store
    )


def save_logits(results: HostResults, path: Path) -> bool:
    """Write ``indices`` (int64 [N]) and ``logits`` (float32 [N, classes]) as NPZ.

    Returns:
        Whether the file was not the same already.
    """
    stream = io.BytesIO()
    np.savez(stream, indices=np.array(results.indices, np.int64), logits=results.logits)
    content = stream.getvalue()
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, content)
    return True


def _check_fit(contract: ModelContract, dataset: manifest.Dataset) -> None:
    if (
        dataset.shape != contract.input.shape
        or dataset.preprocessing != contract.input.preprocessing
    ):
        raise DatasetError(
            f"dataset {dataset.name} was not prepared for model {contract.name}: "
            f"{list(dataset.shape)} against {list(contract.input.shape)}, or other preprocessing",
            hint="prepare it for this model.",
        )


def _store_name(contract: ModelContract, dataset: manifest.Dataset) -> str:
    """Whatever turns a sample's bytes into scores: program, type and normalisation."""
    recipe = json.dumps([contract.pte.sha256, dataset.dtype, asdict(dataset.preprocessing)])
    return hashlib.sha256(recipe.encode()).hexdigest()


def _tensors(
    folder: Path, dataset: manifest.Dataset, missing: set[int]
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    for shard in dataset.shards:
        if missing.isdisjoint(range(shard.first_index, shard.first_index + shard.count)):
            continue
        for index, data in read_samples(manifest.shard_paths(folder, shard)[1]):
            if index in missing:
                yield index, tensor_of(data, dataset)


def tensor_of(data: npt.NDArray[np.uint8], dataset: manifest.Dataset) -> npt.NDArray[np.float32]:
    """The model's input from a sample's bytes, as the runner computes it."""
    if dataset.dtype == "uint8":
        return normalise(data.reshape(dataset.shape), dataset.preprocessing)
    # a copy: the mapped file is read-only
    return np.array(data).view("<f4").reshape(dataset.shape).astype(np.float32, copy=False)


class _Store:
    """Scores by sample hash, in parts that are only ever added."""

    def __init__(self, folder: Path, classes: int) -> None:
        self._folder = folder
        self._classes = classes
        self._rows: dict[str, Logits] = {}
        self._fresh: list[str] = []
        self._written = time.monotonic()
        for names in sorted(folder.glob("*.json")):
            self._load(names)

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._rows

    def get(self, sha256: str) -> Logits:
        return self._rows[sha256]

    def add(self, sha256: str, logits: Logits) -> None:
        self._rows[sha256] = logits
        self._fresh.append(sha256)
        if len(self._fresh) >= _PART or time.monotonic() - self._written > _PART_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._written = time.monotonic()
        if not self._fresh:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"part-{uuid.uuid4().hex[:12]}"
        stream = io.BytesIO()
        np.save(stream, np.stack([self._rows[sha256] for sha256 in self._fresh]))
        _write(part.with_suffix(".npy"), stream.getvalue())
        # the names come last: a part without them does not exist
        _write(part.with_suffix(".json"), json.dumps({"samples": self._fresh}).encode())
        self._fresh = []

    def _load(self, names: Path) -> None:
        try:
            hashes = json.loads(names.read_text("utf-8"))["samples"]
            logits = np.load(names.with_suffix(".npy"), allow_pickle=False)
        except (OSError, ValueError, KeyError, TypeError):
            # a damaged part is computed again
            return
        if logits.shape == (len(hashes), self._classes) and logits.dtype == np.float32:
            self._rows.update(zip(hashes, logits, strict=True))


def _write(path: Path, content: bytes) -> None:
    fresh = temporary(path)
    fresh.write_bytes(content)
    fresh.replace(path)
