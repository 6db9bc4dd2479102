"""A run: one model with one runner over one dataset, on any number of boards.

Its name is derived from what it is of, so the same command continues the same run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from ..dataset import manifest
from ..dataset.shards import InputsList, load_list
from ..errors import DatasetError, InputError, ResultsError
from ..model import contract as contracts
from ..model.contract import ModelContract
from .chunks import QueuedSample
from .queue import RunQueue
from .results import model_fingerprint
from .runner import RunnerOptions

DATABASE = "run.sqlite"
INPUTS = "inputs.json"
ORIGINS = ("measured_here", "measured_on_board")
_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")

Logits = npt.NDArray[np.float32]


@dataclass(frozen=True)
class RunSettings:
    """What a run is done with, besides model and dataset.

    Attributes:
        variant: name of the runner's variant, for people.
        runner_sha256: of the runner.
        options: repeats, warm-up, pace.
        chunk: most samples handed to a board at a time.
        cross_check: share of the samples that a second board computes as well.
        tolerance: largest difference of two boards' logits, and of the golden sample's from the
            host's, relative to the largest logit (at least 1).
        origin: what the figures are: ``measured_here`` on virtual boards, else
            ``measured_on_board``.
    """

    variant: str
    runner_sha256: str
    options: RunnerOptions = field(default_factory=RunnerOptions)
    chunk: int = 64
    cross_check: float = 0.02
    tolerance: float = 1e-4
    origin: str = "measured_here"

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise InputError(f"origin is {self.origin}", hint=f"give {' or '.join(ORIGINS)}.")
        if not 1 <= self.chunk <= 4096:
            raise InputError(f"chunk is {self.chunk}", hint="give 1 to 4096 samples.")
        if not 0 <= self.cross_check <= 1:
            raise InputError(f"cross_check is {self.cross_check}", hint="give a share, 0 to 1.")


@dataclass(frozen=True)
class HostReference:
    """Logits of the host runtime: ``logits[k]``, float32, is that of sample ``indices[k]``."""

    indices: npt.NDArray[np.int64]
    logits: Logits

    def of(self, sample: int) -> Logits | None:
        """The logits of a sample, shape (classes,), or None when not computed."""
        places = np.flatnonzero(self.indices == sample)
        return self.logits[int(places[0])] if places.size else None

    @classmethod
    def load(cls, path: Path) -> HostReference:
        """Read ``.npz`` with ``indices`` and ``logits``, or ``.npy`` with a row per sample id.

        Raises:
            ResultsError: it is not such a file.
        """
        try:
            data = np.load(path, allow_pickle=False)
            if isinstance(data, np.ndarray):
                logits, indices = data, np.arange(len(data), dtype=np.int64)
            else:
                logits, indices = data["logits"], data["indices"].astype(np.int64)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ResultsError(
                f"{path} holds no logits of the host: {error}", hint="compute them again."
            ) from error
        if logits.ndim != 2 or len(logits) != len(indices):
            raise ResultsError(
                f"{path}: logits of shape (samples, classes) expected, found {logits.shape}",
                hint="compute them again.",
            )
        return cls(indices, logits.astype(np.float32))


@dataclass(frozen=True)
class Begun:
    """What a run was begun with. Model, dataset and host's logits may have changed since."""

    model: Path
    dataset: Path
    host: Path | None
    settings: RunSettings

    @classmethod
    def load(cls, folder: Path) -> Begun:
        """Read ``inputs.json`` of a run's folder.

        Raises:
            InputError: it is no run.
        """
        try:
            data = json.loads((folder / INPUTS).read_text(encoding="utf-8"))
            settings = RunSettings(
                **{**data["settings"], "options": RunnerOptions(**data["settings"]["options"])}
            )
            host = Path(data["host"]) if data["host"] else None
            return cls(Path(data["model"]), Path(data["dataset"]), host, settings)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} is no run: {error}", hint="give a folder below runs/."
            ) from None


@dataclass(frozen=True)
class Golden:
    """A sample whose logits are known; a board that computes others is stopped."""

    sample: QueuedSample
    logits: Logits


@dataclass(frozen=True)
class Run:
    """An opened run.

    Attributes:
        header: dtype, size and normalisation of the samples.
        model_crc: as in the header of the results files.
        host: the host runtime's logits, if given.
    """

    id: str
    folder: Path
    model_folder: Path
    dataset_folder: Path
    contract: ModelContract
    dataset: manifest.Dataset
    settings: RunSettings
    header: InputsList
    model_crc: int
    host: HostReference | None = None

    @property
    def database(self) -> Path:
        """Path of ``run.sqlite``."""
        return self.folder / DATABASE

    @property
    def model_file(self) -> Path:
        """The ``.pte``."""
        return self.model_folder / self.contract.pte.file

    @property
    def shards(self) -> Path:
        """The dataset's folder of shards."""
        return self.dataset_folder / manifest.SHARDS_FOLDER

    def queue(self) -> RunQueue:
        """The run's queue, for this process."""
        return RunQueue(self.database)

    def console_log(self, board: str) -> Path:
        """Where the console of a board is logged."""
        return self.folder / "console" / f"{board}.log"

    def golden(self) -> Golden | None:
        """The first sample that the host has computed, or None without the host's logits."""
        if self.host is None:
            return None
        for sample in queued_samples(self.dataset_folder):
            logits = self.host.of(sample.id)
            if logits is not None:
                return Golden(sample, logits)
        return None


def run_name(
    model_sha256: str, manifest_sha256: str, dataset: manifest.Dataset, settings: RunSettings
) -> str:
    """The run's name: twelve hex digits of what its figures depend on, labels included. Pure."""
    parts = {
        "model": model_sha256,
        "manifest": manifest_sha256,
        "shards": [[shard.bin_sha256, shard.list_sha256] for shard in dataset.shards],
        "runner": settings.runner_sha256,
        "variant": settings.variant,
        "options": settings.options.key(),
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def open_run(
    runs: Path,
    model: Path,
    dataset: Path,
    settings: RunSettings,
    *,
    run_id: str | None = None,
    host: Path | None = None,
) -> Run:
    """Open the run of these inputs, new or begun; every board's process calls this.

    Args:
        runs: folder of all runs.
        model: folder with ``model.json``.
        dataset: folder with ``dataset.json``.
        run_id: another name than the derived one.
        host: file of the host's logits.

    Raises:
        InputError: the named run is of something else.
        DatasetError: the dataset was not made for this model, is damaged or empty.
        ModelError: the model is missing or damaged.
    """
    contract, described, name = _identify(model, dataset, settings, run_id)
    folder = runs / name
    folder.mkdir(parents=True, exist_ok=True)
    reference = HostReference.load(host) if host is not None else None
    if reference is not None and reference.logits.shape[1] != contract.class_count:
        raise ResultsError(
            f"{host} has {reference.logits.shape[1]} classes, the model has {contract.class_count}",
            hint="compute the host's logits with this model.",
        )
    run = Run(
        name,
        folder,
        model,
        dataset,
        contract,
        described,
        settings,
        load_list(manifest.shard_paths(dataset, described.shards[0])[1]),
        model_fingerprint(model / contract.pte.file),
        reference,
    )
    identity = {
        "model": contract.pte.sha256,
        "dataset": run_name("", manifest.manifest_sha256(dataset), described, RunSettings("", "")),
        "runner": settings.runner_sha256,
        "options": json.dumps(settings.options.key(), sort_keys=True),
    }
    with closing(run.queue()) as queue:
        queue.fill(identity, queued_samples(dataset), settings.cross_check)
    _remember(run, host)
    return run


def samples_left(
    runs: Path, model: Path, dataset: Path, settings: RunSettings, run_id: str | None = None
) -> tuple[Path, int]:
    """Folder of the run that :func:`open_run` would open, and the samples it would still compute.

    Nothing is written: this is for check mode. Raises as :func:`open_run` does.
    """
    _, described, name = _identify(model, dataset, settings, run_id)
    folder = runs / name
    if not (folder / DATABASE).is_file():
        return folder, described.counts["images"]
    return folder, RunQueue(folder / DATABASE).counts().left


def _identify(
    model: Path, dataset: Path, settings: RunSettings, run_id: str | None
) -> tuple[ModelContract, manifest.Dataset, str]:
    contract = contracts.load(model)
    # Inference does not read the ETRecord, which is larger than the program.
    contracts.verify(model, contract.pte)
    described = manifest.load(dataset)
    check_fit(contract, described)
    name = run_id or run_name(
        contract.pte.sha256, manifest.manifest_sha256(dataset), described, settings
    )
    if not _RUN_ID.fullmatch(name):
        raise InputError(
            f"run id {name!r} cannot be used",
            hint="give 1 to 32 letters, digits, '.', '_' or '-'.",
        )
    return contract, described, name


def reopen(folder: Path) -> Run:
    """Open a run by its folder alone, with the model and dataset it was begun with.

    Raises:
        InputError: it is no run.
        ModelError, DatasetError: its model or dataset is not there any more, or has changed.
    """
    begun = Begun.load(folder)
    return open_run(
        folder.parent,
        begun.model,
        begun.dataset,
        begun.settings,
        run_id=folder.name,
        host=begun.host if begun.host and begun.host.is_file() else None,
    )


def _remember(run: Run, host: Path | None) -> None:
    """Write what the run was opened with; each process its own file, moved in one step."""
    document = {
        "model": str(run.model_folder.resolve()),
        "dataset": str(run.dataset_folder.resolve()),
        "host": str(host.resolve()) if host is not None else None,
        "settings": asdict(run.settings),
    }
    fresh = run.folder / f".{INPUTS}.{os.getpid()}.tmp"
    fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    fresh.replace(run.folder / INPUTS)


def check_fit(contract: ModelContract, dataset: manifest.Dataset) -> None:
    """Refuse a dataset that was not prepared for the model.

    Raises:
        DatasetError: shape or preprocessing differ, or the dataset has no sample.
    """
    if not dataset.shards:
        raise DatasetError(f"dataset {dataset.name} has no usable image", hint="prepare it again.")
    for what, wanted, found in (
        ("input shape", contract.input.shape, dataset.shape),
        ("preprocessing", contract.input.preprocessing, dataset.preprocessing),
    ):
        if wanted != found:
            raise DatasetError(
                f"dataset {dataset.name} does not fit model {contract.name}: {what} {wanted} "
                f"expected, found {found}",
                hint="prepare the dataset for this model.",
            )


def queued_samples(dataset: Path) -> Iterator[QueuedSample]:
    """The samples of a dataset as the queue knows them."""
    for sample in manifest.read_manifest(dataset):
        yield QueuedSample(
            id=sample.index,
            shard=sample.shard,
            offset=sample.offset,
            nbytes=sample.nbytes,
            crc32=int(sample.crc32, 16),
            label=sample.label,
            path=sample.path,
            wnid=sample.wnid,
        )
