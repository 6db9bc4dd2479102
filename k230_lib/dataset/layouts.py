"""How users keep labelled images on disk, reduced to one list of entries."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn

from ..errors import DatasetError
from .labels import (
    LabelMap,
    class_number,
    read_solution,
    read_synset_mapping,
    read_val_map,
)

Layout = Literal["auto", "folders", "kaggle", "flat", "list", "numeric"]

_KAGGLE_IMAGES = ("ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val")
_MAPPING_NAME = "LOC_synset_mapping.txt"
_SOLUTION_NAME = "LOC_val_solution.csv"
_VAL_MAP_NAME = "val_map.txt"


@dataclass(frozen=True)
class Entry:
    """One file that should be an image.

    ``path`` is relative to the image root, with slashes; ``label`` is the class index from 0,
    before the model's ``label_offset``.
    """

    path: str
    label: int
    wnid: str | None


@dataclass(frozen=True)
class Skipped:
    """A file that cannot be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Request:
    """What the user says about the images.

    ``mapping``, ``labels``: the synset mapping, and a solution, map or list file; found by their
    usual names beside the images when not given. ``label_base``: number of the first class where
    labels are numbers.
    """

    images: Path
    layout: Layout = "auto"
    mapping: Path | None = None
    labels: Path | None = None
    label_base: int | None = None
    class_count: int | None = None


@dataclass(frozen=True)
class Listing:
    """All entries, sorted by path, and where their labels came from."""

    root: Path
    entries: tuple[Entry, ...]
    origin: str
    layout: Layout
    label_map: LabelMap | None
    skipped: tuple[Skipped, ...] = ()


def list_images(request: Request) -> Listing:
    """Find the images and their labels.

    Raises:
        DatasetError: the folder, a label file or a label is missing or contradictory.
    """
    if not request.images.is_dir():
        raise DatasetError(
            f"image folder {request.images} does not exist", hint="check the path of the images."
        )
    layout = request.layout if request.layout != "auto" else _guess(request)
    listing = {
        "folders": _folders,
        "numeric": _numeric,
        "kaggle": _kaggle,
        "flat": _flat,
        "list": _listed,
    }[layout](request)
    if not listing.entries:
        raise DatasetError(
            f"no images found in {listing.root} (layout {layout})",
            hint="check the path and the layout.",
        )
    return listing


def _guess(request: Request) -> Layout:
    root, labels = request.images, request.labels
    if labels is not None and labels.suffix in (".jsonl", ".tsv"):
        return "list"
    if labels is not None and labels.suffix == ".csv":
        with_header = labels.is_file() and "PredictionString" in _first_line(labels)
        return "kaggle" if with_header else "list"
    if (root / _SOLUTION_NAME).is_file() and labels is None:
        return "kaggle"
    if labels is not None or (root / _VAL_MAP_NAME).is_file():
        return "flat"
    folders = [entry.name for entry in _folders_of(root)]
    if folders and all(name.isascii() and name.isdigit() for name in folders):
        # with a mapping that lists these very names they are ids, else class numbers
        return "folders" if request.mapping and request.label_base is None else "numeric"
    return "folders"


def _first_line(path: Path) -> str:
    with path.open("r", encoding="utf-8-sig", errors="replace") as stream:
        return stream.readline()


def _mapping(request: Request) -> LabelMap:
    path = request.mapping
    if path is None:
        beside = [request.images / _MAPPING_NAME, request.images.parent / _MAPPING_NAME]
        path = next((place for place in beside if place.is_file()), None)
    if path is None:
        raise DatasetError(
            f"no label mapping for {request.images}: {_MAPPING_NAME} is neither given nor beside "
            "the images",
            hint="give the synset mapping (line number = class index); folder order is no label.",
        )
    return read_synset_mapping(path)


def _known(wnid: str, labels: LabelMap, index: Mapping[str, int], where: str) -> int:
    try:
        return index[wnid]
    except KeyError:
        raise DatasetError(
            f"{where} is of class {wnid}, which {labels.origin} does not list "
            f"({len(labels.wnids)} classes)",
            hint="give the mapping that belongs to these images.",
        ) from None


def _folders(request: Request) -> Listing:
    labels = _mapping(request)
    index = labels.index
    entries: list[Entry] = []
    for folder in _folders_of(request.images):
        label = _known(folder.name, labels, index, f"folder {folder.name}")
        entries += (Entry(path, label, folder.name) for path in _walk(request.images, folder))
    return _listing(
        request.images, entries, origin=labels.origin, layout="folders", label_map=labels
    )


def _numeric(request: Request) -> Listing:
    base = _base(request, "folder names are numbers")
    count = _count(request)
    entries: list[Entry] = []
    for folder in _folders_of(request.images):
        label = class_number(folder.name, base, count, f"folder {folder.name}")
        entries += (Entry(path, label, None) for path in _walk(request.images, folder))
    origin = f"folder numbers counted from {base}"
    return _listing(request.images, entries, origin=origin, layout="numeric", label_map=None)


def _kaggle(request: Request) -> Listing:
    root = next(
        (request.images / sub for sub in _KAGGLE_IMAGES if (request.images / sub).is_dir()),
        request.images,
    )
    labels = _mapping(request)
    index = labels.index
    solution_file = request.labels or request.images / _SOLUTION_NAME
    solution = read_solution(solution_file)
    entries = []
    for path in _walk(root, root):
        stem = PurePosixPath(path).stem
        if stem not in solution:
            _no_label(path, solution_file)
        wnid = solution[stem]
        entries.append(Entry(path, _known(wnid, labels, index, path), wnid))
    origin = f"{solution_file.name}, {labels.origin}"
    return _listing(root, entries, origin=origin, layout="kaggle", label_map=labels)


def _flat(request: Request) -> Listing:
    file = request.labels or request.images / _VAL_MAP_NAME
    table = read_val_map(file)
    ours = {file.resolve(), *([request.mapping.resolve()] if request.mapping else [])}
    pairs: list[tuple[str, str]] = []
    for path in _walk(request.images, request.images):
        if (request.images / path).resolve() in ours or path == _MAPPING_NAME:
            continue
        label = table.get(path, table.get(PurePosixPath(path).name))
        if label is None:
            _no_label(path, file)
        pairs.append((path, label))
    entries, labels = _resolve(request, pairs, file.name)
    origin = file.name if labels is None else f"{file.name}, {labels.origin}"
    return _listing(request.images, entries, origin=origin, layout="flat", label_map=labels)


def _listed(request: Request) -> Listing:
    if request.labels is None:
        raise DatasetError("layout list needs a CSV, TSV or JSONL file", hint="give labels.")
    pairs = [(row_path, label) for row_path, label in _rows(request.labels)]
    repeated = _repeated(path for path, _ in pairs)
    if repeated is not None:
        raise DatasetError(
            f"{request.labels}: {repeated} is listed twice", hint="correct the list."
        )
    present = [pair for pair in pairs if (request.images / pair[0]).is_file()]
    missing = tuple(
        Skipped(path, "listed, but no such file")
        for path, _ in pairs
        if not (request.images / path).is_file()
    )
    entries, labels = _resolve(request, present, request.labels.name)
    origin = request.labels.name if labels is None else f"{request.labels.name}, {labels.origin}"
    return _listing(
        request.images, entries, origin=origin, layout="list", label_map=labels, skipped=missing
    )


def _resolve(
    request: Request, pairs: Iterable[tuple[str, str]], origin: str
) -> tuple[list[Entry], LabelMap | None]:
    """Labels that are all numbers need a declared base; all others are ids of a mapping."""
    pairs = list(pairs)
    if pairs and all(label.isascii() and label.isdigit() for _, label in pairs):
        base, count = _base(request, f"{origin} has numbers"), _count(request)
        return [Entry(p, class_number(label, base, count, p), None) for p, label in pairs], None
    labels = _mapping(request)
    index = labels.index
    return [Entry(p, _known(wnid, labels, index, p), wnid) for p, wnid in pairs], labels


def _rows(file: Path) -> Iterator[tuple[str, str]]:
    """(path, label as text) of each row; columns path|file|image and label|wnid|class."""
    try:
        text = file.read_text("utf-8-sig")
    except OSError as problem:
        raise DatasetError(
            f"label file {file} cannot be read: {problem.strerror}", hint="check its path."
        ) from None
    rows: Iterable[Mapping[str, Any]]
    try:
        if file.suffix == ".jsonl":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            delimiter = "\t" if file.suffix == ".tsv" else ","
            rows = csv.DictReader(text.splitlines(), delimiter=delimiter)
    except ValueError as problem:
        raise DatasetError(f"{file} is not JSONL: {problem}", hint="correct the list.") from None
    for row in rows:
        path = _field(row, ("path", "file", "image"), file)
        yield PurePosixPath(path).as_posix(), _field(row, ("wnid", "label", "class"), file)


def _field(row: Mapping[str, Any], names: tuple[str, ...], file: Path) -> str:
    for name in names:
        value = row.get(name)
        if value is not None and str(value) != "":
            return str(value)
    raise DatasetError(
        f"{file}: one of the columns {', '.join(names)} expected, found {', '.join(map(str, row))}",
        hint="name the columns in the first line.",
    )


def _base(request: Request, why: str) -> int:
    if request.label_base is None:
        raise DatasetError(
            f"{why}, but the number of the first class is not declared",
            hint="set label_base to 0 or 1.",
        )
    return request.label_base


def _count(request: Request) -> int:
    if request.class_count is None:
        raise DatasetError("the number of classes is not known", hint="give the model.")
    return request.class_count


def _no_label(path: str, file: Path) -> NoReturn:
    raise DatasetError(
        f"{path} has no line in {file.name}",
        hint="give the label file that belongs to these images, or remove the file.",
    )


def _folders_of(root: Path) -> list[Path]:
    return sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))


def _walk(root: Path, folder: Path, above: tuple[Path, ...] = ()) -> list[str]:
    """All files below ``folder``, relative to ``root``; links to files and folders are followed.

    A link back to a folder above would never end and is not entered; a folder that is linked
    twice is there twice.
    """
    real = folder.resolve()
    if real in above:
        return []
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            found += _walk(root, path, (*above, real))
        else:
            found.append(path.relative_to(root).as_posix())
    return found


def _repeated(paths: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            return path
        seen.add(path)
    return None


def _listing(
    root: Path,
    entries: list[Entry],
    *,
    origin: str,
    layout: Layout,
    label_map: LabelMap | None,
    skipped: tuple[Skipped, ...] = (),
) -> Listing:
    ordered = tuple(sorted(entries, key=lambda entry: entry.path))
    return Listing(root, ordered, origin, layout, label_map, skipped)
