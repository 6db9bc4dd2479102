"""A model's and a dataset's folder as the export and the preparation leave them, without torch."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from k230_lib.dataset.manifest import (
    DATASET_FILE,
    MANIFEST_FILE,
    SHARDS_FOLDER,
    Dataset,
    Sample,
    ShardInfo,
)
from k230_lib.dataset.shards import build_list, format_list, shard_name
from k230_lib.model.contract import (
    FileRef,
    InputSpec,
    ModelClass,
    ModelContract,
    OutputSpec,
    Preprocessing,
    Source,
    save,
)


def write_model(folder: Path, pte: bytes, preprocessing: Preprocessing, classes: int) -> None:
    """A program with its contract; its ETRecord is none that could be read."""
    folder.mkdir()
    (folder / "model.pte").write_bytes(pte)
    (folder / "model.etrecord").write_bytes(b"etrecord")
    contract = ModelContract(
        name="tiny",
        source=Source("trained", "tiny", "0" * 64),
        input=InputSpec(_shape(preprocessing), preprocessing),
        output=OutputSpec((1, classes)),
        classes=tuple(ModelClass(n, f"class {n}") for n in range(classes)),
        operators=("aten::addmm.out",),
        planned_buffers=(1024,),
        pte=FileRef.of(folder / "model.pte"),
        etrecord=FileRef.of(folder / "model.etrecord"),
        versions={"torch": "x"},
    )
    save(contract, folder)


def write_dataset(
    folder: Path,
    pixels: np.ndarray,
    labels: Sequence[int],
    shard_size: int,
    preprocessing: Preprocessing,
) -> None:
    """One sample for each row of ``pixels``; image ``n`` of class ``c`` was ``c<c>/<n>.png``."""
    (folder / SHARDS_FOLDER).mkdir(parents=True)
    nbytes = pixels.shape[1]
    shards, lines = [], []
    for first in range(0, len(pixels), shard_size):
        rows = [row.tobytes() for row in pixels[first : first + shard_size]]
        name = shard_name(first // shard_size)
        crcs = [zlib.crc32(row) for row in rows]
        listed = build_list(
            first,
            crcs,
            bin_file=f"{name}.bin",
            dtype="uint8",
            nbytes=nbytes,
            mean=preprocessing.mean,
            std=preprocessing.std,
        )
        content, listing = b"".join(rows), format_list(listed).encode()
        (folder / SHARDS_FOLDER / f"{name}.bin").write_bytes(content)
        (folder / SHARDS_FOLDER / f"{name}.list").write_bytes(listing)
        shards.append(ShardInfo(name, len(rows), first, len(content), _sha(content), _sha(listing)))
        for k, row in enumerate(rows):
            index, label = first + k, int(labels[first + k])
            sample = Sample(
                index=index,
                path=f"c{label}/{index}.png",
                label=label,
                wnid=None,
                image_sha256="0" * 64,
                sha256=_sha(row),
                crc32=f"{crcs[k]:08x}",
                shard=name,
                offset=k * nbytes,
                nbytes=nbytes,
            )
            lines.append(sample.line())
    dataset = Dataset(
        name="tiny",
        dtype="uint8",
        shape=_shape(preprocessing),
        preprocessing=preprocessing,
        counts={"images": len(pixels), "skipped": 0, "classes": len(set(labels))},
        labels={"origin": "folders"},
        shards=tuple(shards),
        key="k" * 64,
        images="images",
    )
    (folder / DATASET_FILE).write_text(json.dumps(dataset.to_json()))
    (folder / MANIFEST_FILE).write_text("".join(lines))


def _shape(preprocessing: Preprocessing) -> tuple[int, ...]:
    return (1, 3, preprocessing.crop_size, preprocessing.crop_size)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
