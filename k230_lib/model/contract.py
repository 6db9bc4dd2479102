"""The input contract of an exported model: ``model.json``.

Everything that must agree between the model, the tensors made for it and the labels it is judged
by is written down here once and read by all others. No torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from ..dataset.locks import temporary
from ..errors import ModelError

SCHEMA_VERSION = 1
FILE_NAME = "model.json"

SourceKind = Literal["enum", "file", "random", "trained", "user"]


@dataclass(frozen=True)
class Preprocessing:
    """From a decoded RGB image to the model's input.

    The shorter side is resized to ``resize_size``, the middle ``crop_size`` square is cut out,
    and each channel becomes ``(pixel / 255 - mean) / std`` in float32.
    """

    resize_size: int
    crop_size: int
    interpolation: str = "bilinear"
    antialias: bool = True
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Preprocessing:
        """Build from the ``preprocessing`` object of a contract; lists become tuples."""
        values = {name: data[name] for name in cls.__dataclass_fields__}
        return cls(**{**values, "mean": tuple(data["mean"]), "std": tuple(data["std"])})


@dataclass(frozen=True)
class InputSpec:
    """The one input of the model, as the bytes that the runner reads."""

    shape: tuple[int, ...]
    preprocessing: Preprocessing
    dtype: str = "float32"
    dim_order: tuple[int, ...] = (0, 1, 2, 3)
    byte_order: str = "little"

    @property
    def nbytes(self) -> int:
        """Bytes of one float32 input."""
        count = 4
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class OutputSpec:
    """The one output: a row of class scores."""

    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class ModelClass:
    """One output of the classifier."""

    index: int
    name: str
    wnid: str | None = None


@dataclass(frozen=True)
class Source:
    """Where the weights come from; ``sha256`` is that of the file, or of the tensors' bytes."""

    kind: SourceKind
    weights: str
    sha256: str


@dataclass(frozen=True)
class FileRef:
    """A file beside ``model.json``."""

    file: str
    sha256: str
    bytes: int

    @classmethod
    def of(cls, path: Path) -> FileRef:
        """Hash an existing file."""
        return cls(path.name, file_sha256(path), path.stat().st_size)


@dataclass(frozen=True)
class ModelContract:
    """All of ``model.json``."""

    name: str
    source: Source
    input: InputSpec
    output: OutputSpec
    classes: tuple[ModelClass, ...]
    operators: tuple[str, ...]
    planned_buffers: tuple[int, ...]
    pte: FileRef
    etrecord: FileRef
    versions: Mapping[str, str]
    label_offset: int = 0
    published: Mapping[str, float] | None = None
    export: Mapping[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    @property
    def class_count(self) -> int:
        """Number of scores the model gives."""
        return self.output.shape[-1]

    def to_json(self) -> dict[str, Any]:
        """Plain objects, ready for ``json.dumps``; classes without a wnid omit the key."""
        data = cast(dict[str, Any], json.loads(json.dumps(asdict(self))))
        for entry in data["classes"]:
            if entry["wnid"] is None:
                del entry["wnid"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelContract:
        """Check and build.

        Raises:
            ModelError: a key is missing, of the wrong kind, or two of them contradict each other.
        """
        if data.get("schema_version") != SCHEMA_VERSION:
            raise ModelError(
                f"schema_version {SCHEMA_VERSION} expected in {FILE_NAME}, "
                f"found {data.get('schema_version')!r}",
                hint="export the model again with this version of k230_lib.",
            )
        try:
            contract = cls(
                name=str(data["name"]),
                source=Source(**data["source"]),
                input=_input_from(data["input"]),
                output=OutputSpec(tuple(data["output"]["shape"]), data["output"]["dtype"]),
                classes=tuple(ModelClass(**entry) for entry in data["classes"]),
                operators=tuple(data["operators"]),
                planned_buffers=tuple(int(size) for size in data["planned_buffers"]),
                pte=FileRef(**data["pte"]),
                etrecord=FileRef(**data["etrecord"]),
                versions=dict(data["versions"]),
                label_offset=int(data.get("label_offset", 0)),
                published=data.get("published"),
                export=data.get("export") or {},
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
            raise ModelError(
                f"{FILE_NAME} is not a model contract: {type(problem).__name__} {problem}",
                hint="export the model again.",
            ) from None
        contract._check()
        return contract

    def _check(self) -> None:
        side = self.input.preprocessing.crop_size
        wanted = (1, 3, side, side)
        if self.input.shape != wanted or self.input.dtype != "float32":
            raise ModelError(
                f"input float32{list(wanted)} expected from the preprocessing, "
                f"found {self.input.dtype}{list(self.input.shape)}",
                hint="export the model again.",
            )
        if [entry.index for entry in self.classes] != list(range(self.class_count)):
            raise ModelError(
                f"{self.class_count} classes numbered from 0 expected in {FILE_NAME}, "
                f"found {len(self.classes)}",
                hint="export the model again.",
            )


def _input_from(data: Mapping[str, Any]) -> InputSpec:
    return InputSpec(
        shape=tuple(data["shape"]),
        preprocessing=Preprocessing.from_json(data["preprocessing"]),
        dtype=data["dtype"],
        dim_order=tuple(data["dim_order"]),
        byte_order=data["byte_order"],
    )


def load(path: Path, *, verify_files: bool = False) -> ModelContract:
    """Read ``model.json``.

    Args:
        path: the model's folder, or the file itself.
        verify_files: also compare ``.pte`` and ETRecord with their hashes.

    Raises:
        ModelError: the file is missing, damaged, or the files beside it are not those it names.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        data = json.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise ModelError(
            f"no model contract at {file}: {problem.strerror}",
            hint="export the model first (k230 model export).",
        ) from None
    except ValueError:
        raise ModelError(f"{file} is not JSON", hint="export the model again.") from None
    if not isinstance(data, dict):
        raise ModelError(f"{file} is not a model contract", hint="export the model again.")
    contract = ModelContract.from_json(data)
    if verify_files:
        for ref in (contract.pte, contract.etrecord):
            verify(file.parent, ref)
    return contract


def save(contract: ModelContract, folder: Path) -> Path:
    """Write ``model.json`` in one step, so that no reader ever sees half of it."""
    target = folder / FILE_NAME
    fresh = temporary(target)
    fresh.write_text(json.dumps(contract.to_json(), indent=1) + "\n", "utf-8")
    fresh.replace(target)
    return target


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(folder: Path, ref: FileRef) -> None:
    """Compare a file of a model's folder with what ``model.json`` says of it.

    Raises:
        ModelError: it is missing, or another.
    """
    path = folder / ref.file
    if not path.is_file():
        raise ModelError(f"{path} is missing", hint="export the model again.")
    size = path.stat().st_size
    if size != ref.bytes:
        raise ModelError(
            f"{path}: {ref.bytes} bytes expected, found {size}", hint="export the model again."
        )
    found = file_sha256(path)
    if found != ref.sha256:
        raise ModelError(
            f"{path}: sha256 {ref.sha256[:12]}... expected, found {found[:12]}...",
            hint="export the model again.",
        )
