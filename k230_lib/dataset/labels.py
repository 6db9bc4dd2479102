"""Which class an image belongs to: joined by synset id or file name, never by position."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DatasetError
from ..model.contract import ModelClass

_LINE = re.compile(r"^(?P<wnid>\S+?)\s*(?::|\s)\s*(?P<name>\S.*)$")
_NAMES_AGREE = 0.5
_NAMES_SHIFTED = 0.9


@dataclass(frozen=True)
class LabelMap:
    """Synset ids (or folder names) in the order of their class index, counted from 0."""

    wnids: tuple[str, ...]
    names: tuple[str, ...]
    origin: str

    @property
    def index(self) -> Mapping[str, int]:
        """Class index of each wnid."""
        return {wnid: position for position, wnid in enumerate(self.wnids)}


def read_synset_mapping(path: Path) -> LabelMap:
    """Read ``LOC_synset_mapping.txt``: ``wnid name, name`` or ``wnid : name`` a line.

    The line number is the class index; this is the one place where an order counts.

    Raises:
        DatasetError: missing, empty, a line without a name, or a wnid given twice.
    """
    wnids: list[str] = []
    names: list[str] = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise DatasetError(
                f"{path}:{number}: 'wnid name' expected, found {line.strip()[:60]!r}",
                hint="give the LOC_synset_mapping.txt that belongs to the images.",
            )
        wnids.append(match["wnid"])
        names.append(match["name"])
    repeated = _first_repeated(wnids)
    if repeated is not None:
        raise DatasetError(f"{path}: {repeated} is listed twice", hint="correct the mapping.")
    if not wnids:
        raise DatasetError(f"{path}: no classes found", hint="give a mapping with one per line.")
    return LabelMap(tuple(wnids), tuple(names), path.name)


def read_solution(path: Path) -> dict[str, str]:
    """Read Kaggle's ``LOC_val_solution.csv``: image id -> wnid.

    Raises:
        DatasetError: missing, no such columns, or an image listed with two classes.
    """
    rows = csv.DictReader(_text(path).splitlines())
    if not rows.fieldnames or not {"ImageId", "PredictionString"} <= set(rows.fieldnames):
        raise DatasetError(
            f"{path}: columns ImageId and PredictionString expected, found {rows.fieldnames}",
            hint="give LOC_val_solution.csv as Kaggle publishes it.",
        )
    found: dict[str, str] = {}
    for row in rows:
        # "n01978287 85 1 499 272 ...": class and box, repeated for each object of the image
        fields = (row["PredictionString"] or "").split()
        wnids = set(fields[::5])
        if len(wnids) != 1:
            raise DatasetError(
                f"{path}: one class expected for {row['ImageId']}, found {sorted(wnids)}",
                hint="correct that line.",
            )
        _put(found, row["ImageId"], wnids.pop(), path)
    return found


def read_val_map(path: Path) -> dict[str, str]:
    """Read ``val_map.txt``: ``file label`` a line; the label is a wnid or a class number.

    Raises:
        DatasetError: missing, a line of other shape, or a file listed with two labels.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        name, _, label = line.strip().rpartition("\t" if "\t" in line else " ")
        if not name:
            raise DatasetError(
                f"{path}:{number}: 'file label' expected, found {line.strip()[:60]!r}",
                hint="correct that line.",
            )
        _put(found, name.strip(), label, path)
    return found


def class_number(text: str, base: int, count: int, where: str) -> int:
    """A class number written in a file, as an index counted from 0.

    Args:
        base: what the first class is called there, 0 or 1.
        count: number of classes.

    Raises:
        DatasetError: not a number, or outside of ``base .. base + count - 1``.
    """
    if not text.isascii() or not text.isdigit():
        raise DatasetError(f"{where}: a class number expected, found {text!r}")
    index = int(text) - base
    if not 0 <= index < count:
        raise DatasetError(
            f"{where}: class {text} is outside of {base}..{base + count - 1}",
            hint="check label_base (the number of the first class).",
        )
    return index


def check_names(labels: LabelMap, classes: Sequence[ModelClass], label_offset: int) -> None:
    """Compare the mapping's names with the model's, where both have names.

    Raises:
        DatasetError: the names agree only after a shift, that is the offset is wrong.
    """
    rates = {
        offset: _agreement(labels.names, classes, offset)
        for offset in (label_offset - 1, label_offset, label_offset + 1)
    }
    if rates[label_offset] >= _NAMES_AGREE:
        return
    for offset, rate in rates.items():
        if rate >= _NAMES_SHIFTED:
            raise DatasetError(
                f"the class names of {labels.origin} match the model's with label_offset "
                f"{offset}, not {label_offset}",
                hint=f"set label_offset to {offset}.",
            )


def _agreement(names: Sequence[str], classes: Sequence[ModelClass], offset: int) -> float:
    pairs = [
        (name, classes[position + offset].name)
        for position, name in enumerate(names)
        if 0 <= position + offset < len(classes)
    ]
    if not pairs:
        return 0.0
    return sum(_first(a) == _first(b) for a, b in pairs) / len(pairs)


def _first(name: str) -> str:
    return name.split(",", maxsplit=1)[0].strip().casefold()


def _put(found: dict[str, str], key: str, label: str, path: Path) -> None:
    if found.setdefault(key, label) != label:
        raise DatasetError(
            f"{path}: {key} has two labels, {found[key]} and {label}", hint="correct the file."
        )


def _first_repeated(items: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as problem:
        raise DatasetError(
            f"label file {path} cannot be read: {problem.strerror}",
            hint="check the path of the label file.",
        ) from None
    except UnicodeDecodeError:
        raise DatasetError(
            f"label file {path} is not UTF-8 text", hint="check the path of the label file."
        ) from None
