"""What a prepared dataset says about itself: ``dataset.json`` and ``manifest.jsonl``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DatasetError
from ..model.contract import Preprocessing
from .preprocess import Dtype

SCHEMA_VERSION = 1
DATASET_FILE = "dataset.json"
MANIFEST_FILE = "manifest.jsonl"
SKIPPED_FILE = "skipped.jsonl"
SHARDS_FOLDER = "shards"


@dataclass(frozen=True)
class Sample:
    """One line of the manifest; ``label`` is the model's class index."""

    index: int
    path: str
    label: int
    wnid: str | None
    image_sha256: str
    sha256: str
    crc32: str
    shard: str
    offset: int
    nbytes: int

    def line(self) -> str:
        """The JSON line, with its end."""
        return json.dumps(vars(self), ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class ShardInfo:
    """A shard's files: ``<name>.bin`` and ``<name>.list`` in ``shards/``."""

    name: str
    count: int
    first_index: int
    bin_bytes: int
    bin_sha256: str
    list_sha256: str


@dataclass(frozen=True)
class Dataset:
    """All of ``dataset.json``.

    ``counts`` has ``images`` (usable), ``skipped`` and ``classes``; ``labels`` says where labels
    come from (``origin``, ``layout``, ``label_offset``); ``odd`` counts unusual files by kind;
    ``key`` identifies the inputs it was made of.
    """

    name: str
    dtype: Dtype
    shape: tuple[int, ...]
    preprocessing: Preprocessing
    counts: Mapping[str, int]
    labels: Mapping[str, Any]
    shards: tuple[ShardInfo, ...]
    key: str
    images: str
    odd: Mapping[str, int] = field(default_factory=dict)
    subset: Mapping[str, Any] | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def nbytes(self) -> int:
        """Bytes of one sample in the shards."""
        count = 1 if self.dtype == "uint8" else 4
        for size in self.shape:
            count *= size
        return count

    def to_json(self) -> dict[str, Any]:
        """Plain objects for ``json.dumps``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Dataset:
        """Check and build.

        Raises:
            DatasetError: a key is missing or of the wrong kind.
        """
        try:
            if data["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"schema_version {data['schema_version']}")
            values = {name: data[name] for name in cls.__dataclass_fields__}
            values["shape"] = tuple(data["shape"])
            values["preprocessing"] = Preprocessing.from_json(data["preprocessing"])
            values["shards"] = tuple(ShardInfo(**shard) for shard in data["shards"])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as problem:
            raise DatasetError(
                f"{DATASET_FILE} is damaged: {type(problem).__name__} {problem}",
                hint="prepare the dataset again.",
            ) from None


def load(folder: Path) -> Dataset:
    """Read ``dataset.json`` of a dataset folder.

    Raises:
        DatasetError: missing or damaged.
    """
    try:
        data = json.loads((folder / DATASET_FILE).read_text("utf-8"))
    except OSError:
        raise DatasetError(
            f"no dataset in {folder}", hint="prepare it first (k230 dataset prepare)."
        ) from None
    except ValueError:
        raise DatasetError(
            f"{folder / DATASET_FILE} is not JSON", hint="prepare the dataset again."
        ) from None
    return Dataset.from_json(data)


def read_manifest(folder: Path) -> Iterator[Sample]:
    """The samples of a dataset in order of their index, one at a time.

    Raises:
        DatasetError: missing or a damaged line.
    """
    path = folder / MANIFEST_FILE
    try:
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                yield Sample(**json.loads(line))
    except (OSError, ValueError, TypeError) as problem:
        raise DatasetError(
            f"{path} cannot be read: {problem}", hint="prepare the dataset again."
        ) from None


def manifest_sha256(folder: Path) -> str:
    """Hash of the manifest: another one when paths, labels or tensors differ.

    Raises:
        DatasetError: there is none.
    """
    path = folder / MANIFEST_FILE
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as problem:
        raise DatasetError(
            f"{path} cannot be read: {problem.strerror}", hint="prepare the dataset again."
        ) from None


def read_skipped(folder: Path) -> list[dict[str, str]]:
    """The files that could not be used: ``path`` and ``reason`` of each."""
    path = folder / SKIPPED_FILE
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def shard_paths(folder: Path, shard: ShardInfo) -> tuple[Path, Path]:
    """(bin, list) of a shard."""
    shards = folder / SHARDS_FOLDER
    return shards / f"{shard.name}.bin", shards / f"{shard.name}.list"


def sizes_intact(folder: Path, shards: Sequence[ShardInfo]) -> bool:
    """Whether every shard file is there with its size (hashes are checked where bytes are used)."""
    for shard in shards:
        binary, listing = shard_paths(folder, shard)
        if not listing.is_file() or not binary.is_file():
            return False
        if binary.stat().st_size != shard.bin_bytes:
            return False
    return True
