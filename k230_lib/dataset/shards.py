"""Packed tensors and their index, as ``k230_runner --inputs_list`` reads them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError
from .preprocess import Dtype

LIST_HEADER = "#k230-inputs 1"


@dataclass(frozen=True)
class ListedSample:
    """One line of a list: where a sample's bytes are."""

    index: int
    file: str
    offset: int
    crc32: int


@dataclass(frozen=True)
class InputsList:
    """A parsed ``.list``; ``mean`` and ``std`` only with uint8."""

    dtype: Dtype
    nbytes: int
    samples: tuple[ListedSample, ...]
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


def shard_name(number: int) -> str:
    """``shard-00000``."""
    return f"shard-{number:05d}"


def format_list(inputs: InputsList) -> str:
    """The text of a ``.list``."""
    head = f"{LIST_HEADER} dtype={inputs.dtype} nbytes={inputs.nbytes}"
    if inputs.mean is not None and inputs.std is not None:
        head += f" mean={_numbers(inputs.mean)} std={_numbers(inputs.std)}"
    lines = [head]
    lines += (f"{s.index} {s.file} {s.offset} {s.crc32:08x}" for s in inputs.samples)
    return "\n".join(lines) + "\n"


def parse_list(text: str, where: str = "list") -> InputsList:
    """Read the text of a ``.list``.

    Raises:
        DatasetError: the header or a line is not as the format says.
    """
    lines = text.splitlines()
    if not lines or not lines[0].startswith(LIST_HEADER + " "):
        raise DatasetError(
            f"{where}: {LIST_HEADER!r} expected, found {lines[0][:40] if lines else 'nothing'!r}",
            hint="prepare the dataset again.",
        )
    try:
        options = dict(word.split("=", 1) for word in lines[0].split()[2:])
        dtype = options["dtype"]
        if dtype not in ("float32", "uint8"):
            raise ValueError(f"dtype {dtype}")
        samples = tuple(_sample(line) for line in lines[1:])
        return InputsList(
            dtype=cast(Dtype, dtype),
            nbytes=int(options["nbytes"]),
            samples=samples,
            mean=_parse_numbers(options.get("mean")),
            std=_parse_numbers(options.get("std")),
        )
    except (KeyError, ValueError) as problem:
        raise DatasetError(
            f"{where} is damaged: {problem}", hint="prepare the dataset again."
        ) from None


def read_samples(list_file: Path) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """The samples of a shard in order: (sample id, its bytes as uint8).

    Raises:
        DatasetError: a file is missing or shorter than listed, or a CRC differs.
    """
    inputs = load_list(list_file)
    blocks: dict[str, npt.NDArray[np.uint8]] = {}
    for sample in inputs.samples:
        if sample.file not in blocks:
            blocks = {sample.file: _map(list_file.parent / sample.file)}
        block = blocks[sample.file]
        data = block[sample.offset : sample.offset + inputs.nbytes]
        if data.size != inputs.nbytes or zlib.crc32(data.data) != sample.crc32:
            raise DatasetError(
                f"{sample.file}: sample {sample.index} differs from its checksum",
                hint="prepare the dataset again.",
            )
        yield sample.index, data


def load_list(list_file: Path) -> InputsList:
    """Parse a ``.list`` file."""
    try:
        return parse_list(list_file.read_text("ascii"), list_file.name)
    except (OSError, UnicodeDecodeError):
        raise DatasetError(
            f"{list_file} cannot be read", hint="prepare the dataset again."
        ) from None


def build_list(
    first_index: int,
    crcs: Sequence[int],
    *,
    bin_file: str,
    dtype: Dtype,
    nbytes: int,
    mean: tuple[float, ...],
    std: tuple[float, ...],
) -> InputsList:
    """The list of a shard whose samples are numbered on from ``first_index``."""
    samples = tuple(
        ListedSample(first_index + k, bin_file, k * nbytes, crc) for k, crc in enumerate(crcs)
    )
    if dtype == "uint8":
        return InputsList(dtype, nbytes, samples, mean, std)
    return InputsList(dtype, nbytes, samples)


def _map(path: Path) -> npt.NDArray[np.uint8]:
    try:
        return np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        raise DatasetError(f"{path} is missing", hint="prepare the dataset again.") from None


def _sample(line: str) -> ListedSample:
    index, file, offset, crc = line.split(" ")
    return ListedSample(int(index), file, int(offset), int(crc, 16))


def _numbers(values: Sequence[float]) -> str:
    return ",".join(repr(float(value)) for value in values)


def _parse_numbers(text: str | None) -> tuple[float, ...] | None:
    return None if text is None else tuple(float(word) for word in text.split(","))
