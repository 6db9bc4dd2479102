"""Prepare a dataset folder from a folder of images."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..errors import DatasetError
from ..model.contract import ModelContract
from . import chunk
from .chunk import ChunkResult, ChunkTask
from .labels import check_names
from .layouts import Entry, Listing, Request, Skipped, list_images
from .locks import only_one, remove_leftovers
from .manifest import (
    DATASET_FILE,
    MANIFEST_FILE,
    SHARDS_FOLDER,
    SKIPPED_FILE,
    Dataset,
    Sample,
    ShardInfo,
    load,
    sizes_intact,
)
from .preprocess import Dtype
from .shards import build_list, format_list, shard_name
from .subset import stratified
from .workers import keep_freed_memory, ordered

Progress = Callable[[int, int], None]

_STORE = ".store"
_SMALL = 32
"""Below so many images, starting worker processes costs more than it saves."""


@dataclass(frozen=True)
class Settings:
    """How to prepare; ``max_skipped`` is the number of unusable files that is put up with."""

    name: str
    out: Path
    dtype: Dtype = "uint8"
    limit: int | None = None
    seed: int = 0
    shard_size: int = 64
    max_skipped: int = 0
    workers: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The prepared dataset; ``reused`` counts shards that were found in the store."""

    folder: Path
    dataset: Dataset
    changed: bool
    reused: int = 0


@dataclass(frozen=True)
class Plan:
    """Everything that decides what will be made."""

    listing: Listing
    entries: tuple[Entry, ...]
    contract: ModelContract
    settings: Settings
    key: str

    @property
    def folder(self) -> Path:
        """Where the dataset goes."""
        return self.settings.out / self.settings.name


def plan(request: Request, contract: ModelContract, settings: Settings) -> Plan:
    """List the images and see what is to be made; writes nothing.

    Raises:
        DatasetError: images or labels are missing or contradict the model.
    """
    if settings.shard_size < 1:
        raise DatasetError("a shard needs at least one sample", hint="correct shard_size.")
    offset = contract.label_offset
    # a model with an offset has that many classes that are no labels (a background class)
    count = contract.class_count - max(offset, 0)
    listing = list_images(replace(request, class_count=request.class_count or count))
    if listing.label_map is not None:
        check_names(listing.label_map, contract.classes, offset)
    entries = listing.entries
    if settings.limit is not None:
        entries = stratified(entries, settings.limit, settings.seed)
    entries = tuple(replace(entry, label=entry.label + offset) for entry in entries)
    for entry in entries:
        if not 0 <= entry.label < contract.class_count:
            raise DatasetError(
                f"{entry.path} has class {entry.label}, but the model {contract.name} has "
                f"{contract.class_count} classes",
                hint="check that mapping, label_offset and model belong together.",
            )
    key = _key(listing, entries, contract, settings)
    return Plan(listing, entries, contract, settings, key)


def unchanged(todo: Plan) -> Dataset | None:
    """The dataset, if it was already made of these very inputs and is whole."""
    try:
        dataset = load(todo.folder)
    except DatasetError:
        return None
    intact = dataset.key == todo.key and sizes_intact(todo.folder, dataset.shards)
    return dataset if intact and (todo.folder / MANIFEST_FILE).is_file() else None


def prepare(
    todo: Plan,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Make the dataset folder, in one step at the end; an interrupted run is continued.

    Args:
        progress: called with (images done, images in all).
        say: told when another process makes the same dataset.

    Raises:
        DatasetError: more files than ``max_skipped`` cannot be used; they are listed in
            ``<name>.skipped.jsonl``.
    """
    with only_one(todo.folder, say):
        existing = unchanged(todo)
        if existing is not None:
            return Outcome(todo.folder, existing, False)
        remove_leftovers(todo.settings.out / _STORE)
        return _make(todo, progress)


def _make(todo: Plan, progress: Progress) -> Outcome:
    staging = todo.settings.out / f".{todo.settings.name}.partial"
    shutil.rmtree(staging, ignore_errors=True)
    (staging / SHARDS_FOLDER).mkdir(parents=True)
    try:
        outcome = _fill(todo, staging, progress)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    _swap(staging, todo.folder)
    return outcome


def _fill(todo: Plan, staging: Path, progress: Progress) -> Outcome:
    settings = todo.settings
    skipped = list(todo.listing.skipped)
    shards: list[ShardInfo] = []
    odd: Counter[str] = Counter()
    labels: set[int] = set()
    first = reused = done = 0
    progress(0, len(todo.entries))
    with (staging / MANIFEST_FILE).open("w", encoding="utf-8") as manifest:
        for members, result in _chunks(todo):
            samples = _samples(members, result, first, len(shards), skipped)
            if samples:
                shards.append(_place(staging, result, samples, todo))
                manifest.writelines(sample.line() for sample in samples)
                labels.update(sample.label for sample in samples)
            odd.update(kind for outcome in result.outcomes for kind in outcome.odd)
            first += len(samples)
            reused += result.reused
            done += len(members)
            progress(done, len(todo.entries))
    _write_skipped(staging / SKIPPED_FILE, skipped)
    _judge(todo, skipped, first)
    contract = todo.contract
    dataset = Dataset(
        name=settings.name,
        dtype=settings.dtype,
        shape=contract.input.shape,
        preprocessing=contract.input.preprocessing,
        counts={"images": first, "skipped": len(skipped), "classes": len(labels)},
        labels={
            "origin": todo.listing.origin,
            "layout": todo.listing.layout,
            "label_offset": contract.label_offset,
            "map_sha256": _map_hash(todo.listing),
        },
        shards=tuple(shards),
        key=todo.key,
        images=str(todo.listing.root),
        odd=dict(sorted(odd.items())),
        subset=None
        if settings.limit is None
        else {"limit": settings.limit, "seed": settings.seed, "of": len(todo.listing.entries)},
    )
    text = json.dumps(dataset.to_json(), indent=1, ensure_ascii=False)
    (staging / DATASET_FILE).write_text(text + "\n", "utf-8")
    return Outcome(todo.folder, dataset, True, reused)


def _chunks(todo: Plan) -> Iterator[tuple[Sequence[Entry], ChunkResult]]:
    """Results in the order of the entries, a bounded number of them ahead."""
    settings = todo.settings
    size = settings.shard_size
    groups = [todo.entries[k : k + size] for k in range(0, len(todo.entries), size)]
    tasks = [
        ChunkTask(
            str(todo.listing.root),
            tuple(entry.path for entry in group),
            todo.contract.input.preprocessing,
            settings.dtype,
            str(settings.out / _STORE),
        )
        for group in groups
    ]
    workers = min(settings.workers or os.cpu_count() or 1, len(tasks))
    if workers == 1 or len(todo.entries) < _SMALL:
        for group, task in zip(groups, tasks, strict=True):
            yield group, chunk.run(task)
        return
    yield from zip(groups, ordered(chunk.run, tasks, workers, keep_freed_memory), strict=True)


def _samples(
    members: Sequence[Entry], result: ChunkResult, first: int, shard: int, skipped: list[Skipped]
) -> list[Sample]:
    """Number the usable files of a chunk; the others go to ``skipped``."""
    usable = [o for o in result.outcomes if o.reason is None]
    nbytes = result.bin_bytes // len(usable) if usable else 0
    samples: list[Sample] = []
    for entry, outcome in zip(members, result.outcomes, strict=True):
        if outcome.sha256 is None or outcome.crc32 is None or outcome.image_sha256 is None:
            skipped.append(Skipped(entry.path, outcome.reason or "unknown"))
            continue
        position = len(samples)
        samples.append(
            Sample(
                index=first + position,
                path=entry.path,
                label=entry.label,
                wnid=entry.wnid,
                image_sha256=outcome.image_sha256,
                sha256=outcome.sha256,
                crc32=f"{outcome.crc32:08x}",
                shard=shard_name(shard),
                offset=position * nbytes,
                nbytes=nbytes,
            )
        )
    return samples


def _place(staging: Path, result: ChunkResult, samples: Sequence[Sample], todo: Plan) -> ShardInfo:
    """Put the packed file and its list into the dataset folder."""
    name = samples[0].shard
    folder = staging / SHARDS_FOLDER
    target = folder / f"{name}.bin"
    try:
        os.link(result.bin_file, target)
    except OSError:
        # another file system, or one without hard links
        shutil.copyfile(result.bin_file, target)
    preprocessing = todo.contract.input.preprocessing
    text = format_list(
        build_list(
            samples[0].index,
            [int(sample.crc32, 16) for sample in samples],
            bin_file=target.name,
            dtype=todo.settings.dtype,
            nbytes=samples[0].nbytes,
            mean=preprocessing.mean,
            std=preprocessing.std,
        )
    )
    (folder / f"{name}.list").write_text(text, "ascii")
    return ShardInfo(
        name=name,
        count=len(samples),
        first_index=samples[0].index,
        bin_bytes=result.bin_bytes,
        bin_sha256=result.bin_sha256,
        list_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def _judge(todo: Plan, skipped: Sequence[Skipped], usable: int) -> None:
    if usable and len(skipped) <= todo.settings.max_skipped:
        return
    report = todo.settings.out / f"{todo.settings.name}.{SKIPPED_FILE}"
    _write_skipped(report, skipped)
    first = skipped[0]
    raise DatasetError(
        f"{len(skipped)} of {len(todo.entries)} files cannot be used "
        f"(allowed: {todo.settings.max_skipped}), the first is {first.path}: {first.reason}",
        hint=f"see {report}, then repair or remove them, or raise max_skipped.",
    )


def _write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    lines = (json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in skipped)
    path.write_text("".join(lines), "utf-8")


def _swap(staging: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    staging.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _map_hash(listing: Listing) -> str | None:
    if listing.label_map is None:
        return None
    return hashlib.sha256("\n".join(listing.label_map.wnids).encode()).hexdigest()


def _key(
    listing: Listing, entries: Sequence[Entry], contract: ModelContract, settings: Settings
) -> str:
    """Identity of the inputs; image files count by size and modification time."""
    digest = hashlib.sha256()
    head = {
        "format": 1,
        "root": str(listing.root.resolve()),
        "origin": listing.origin,
        "input": asdict(contract.input),
        "label_offset": contract.label_offset,
        "dtype": settings.dtype,
        "shard_size": settings.shard_size,
        "max_skipped": settings.max_skipped,
        "skipped": [entry.path for entry in listing.skipped],
    }
    digest.update(json.dumps(head, sort_keys=True).encode())
    for entry in entries:
        try:
            status = (listing.root / entry.path).stat()
            mark = f"{status.st_size} {status.st_mtime_ns}"
        except OSError:
            mark = "unreadable"
        digest.update(f"{entry.path}\0{entry.label}\0{entry.wnid}\0{mark}\n".encode())
    return digest.hexdigest()
