"""One shard's work, done in a worker process: read, decode, pack, store.

The store is addressed by content: what was made once from the same files in the same way is found
again, by a later run that continues an interrupted one as well as for a second model.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

import PIL

from ..errors import DatasetError
from ..model.contract import Preprocessing, file_sha256
from .locks import temporary
from .preprocess import Dtype, decode, encode


@dataclass(frozen=True)
class ChunkTask:
    """The files that become one shard."""

    root: str
    paths: tuple[str, ...]
    preprocessing: Preprocessing
    dtype: Dtype
    store: str


@dataclass(frozen=True)
class FileOutcome:
    """What became of one file: checksums of its sample, or the reason why there is none."""

    image_sha256: str | None
    sha256: str | None = None
    crc32: int | None = None
    reason: str | None = None
    odd: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChunkResult:
    """Outcomes in the order of the task's paths, and the packed bytes of the usable ones."""

    outcomes: tuple[FileOutcome, ...]
    bin_file: str
    bin_bytes: int
    bin_sha256: str
    reused: bool


def run(task: ChunkTask) -> ChunkResult:
    """Make the packed file, or find it in the store."""
    contents = [_read(Path(task.root, path)) for path in task.paths]
    hashes = [
        hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else content
        for content in contents
    ]
    base = _base(task, hashes)
    return _stored(base) or _make(task, contents, hashes, base)


def _read(path: Path) -> bytes | str:
    """The file's bytes, or why they cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"


def _base(task: ChunkTask, hashes: list[str]) -> Path:
    """Path of the store's entry without suffix."""
    recipe = {
        "format": 1,
        "preprocessing": asdict(task.preprocessing),
        "dtype": task.dtype,
        # another decoder may round differently
        "pillow": PIL.__version__,
        "images": hashes,
    }
    key = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    return Path(task.store, key[:2], key)


def _stored(base: Path) -> ChunkResult | None:
    packed, notes = base.with_suffix(".bin"), base.with_suffix(".json")
    try:
        data = json.loads(notes.read_text("utf-8"))
        if file_sha256(packed) != data["bin_sha256"]:
            return None
        outcomes = tuple(
            FileOutcome(**{**entry, "odd": tuple(entry["odd"])}) for entry in data["outcomes"]
        )
        return ChunkResult(outcomes, str(packed), data["bin_bytes"], data["bin_sha256"], True)
    except (OSError, ValueError, KeyError, TypeError):
        # absent or damaged: made anew
        return None


def _make(
    task: ChunkTask, contents: list[bytes | str], hashes: list[str], base: Path
) -> ChunkResult:
    base.parent.mkdir(parents=True, exist_ok=True)
    packed, notes = base.with_suffix(".bin"), base.with_suffix(".json")
    fresh = temporary(base)
    whole = hashlib.sha256()
    size = 0
    outcomes = []
    with fresh.open("wb") as out:
        for content, image_hash in zip(contents, hashes, strict=True):
            outcome, sample = _one(task, content, image_hash)
            out.write(sample)
            whole.update(sample)
            size += len(sample)
            outcomes.append(outcome)
    # the notes come last: an entry without them does not exist
    fresh.replace(packed)
    result = ChunkResult(tuple(outcomes), str(packed), size, whole.hexdigest(), False)
    text = {
        "outcomes": [vars(outcome) for outcome in outcomes],
        "bin_bytes": size,
        "bin_sha256": result.bin_sha256,
    }
    fresh.write_text(json.dumps(text), "utf-8")
    fresh.replace(notes)
    return result


def _one(task: ChunkTask, content: bytes | str, image_hash: str) -> tuple[FileOutcome, bytes]:
    if isinstance(content, str):
        return FileOutcome(None, reason=content), b""
    try:
        image, odd = decode(content)
        sample = encode(image, task.preprocessing, task.dtype)
    except DatasetError as problem:
        return FileOutcome(image_hash, reason=problem.message), b""
    checksum = hashlib.sha256(sample).hexdigest()
    return FileOutcome(image_hash, checksum, zlib.crc32(sample), None, odd), sample
