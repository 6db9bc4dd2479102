"""What is sent to a board in one go: samples packed into one file, and their list."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..board.files import PutRequest
from ..dataset.shards import InputsList, ListedSample, format_list
from ..errors import DatasetError
from .runner import bin_path, list_path


@dataclass(frozen=True)
class QueuedSample:
    """One sample of a run: where its bytes lie on the controller, and what it should be.

    Attributes:
        id: index in the dataset's manifest.
        shard: name of the shard.
        offset: of its bytes in the shard's ``.bin``.
        nbytes: number of its bytes.
        crc32: CRC-32 of its bytes.
        label: class index of the model.
        path: of the image, relative to the image root.
        wnid: of the image's class, if known.
    """

    id: int
    shard: str
    offset: int
    nbytes: int
    crc32: int
    label: int
    path: str
    wnid: str | None = None


@dataclass(frozen=True)
class Chunk:
    """A leased piece of work.

    Attributes:
        id: in the queue.
        kind: ``main``, or ``check`` for samples that another board has computed.
        samples: to be computed, in order.
        pack: ids that are packed in the file on the board, in order: ``samples`` or more, when
            an earlier attempt at the same file computed some.
    """

    id: int
    kind: str
    samples: tuple[QueuedSample, ...]
    pack: tuple[QueuedSample, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the packed file."""
        return sum(sample.nbytes for sample in self.pack)


@dataclass(frozen=True)
class SentChunk:
    """A chunk whose files are on the board, in whatever form its runner reads them."""

    chunk: Chunk


@dataclass(frozen=True)
class PackedChunk(SentChunk):
    """A chunk as files: the packed samples and the list that ``k230_runner`` reads."""

    content: bytes
    bin_sha256: str
    list_text: bytes
    list_sha256: str

    @property
    def list_crc(self) -> int:
        """CRC-32 of the list, as in the header of the results."""
        return zlib.crc32(self.list_text)

    @property
    def requests(self) -> list[PutRequest]:
        """The files to put on the board."""
        return [
            PutRequest(self.content, bin_path(self.bin_sha256), self.bin_sha256),
            PutRequest(self.list_text, list_path(self.list_sha256), self.list_sha256),
        ]


def pack(chunk: Chunk, shards: Path, header: InputsList) -> PackedChunk:
    """Read the chunk's samples from the dataset and pack them.

    Args:
        chunk: what to pack.
        shards: the dataset's folder of shards.
        header: dtype, size and normalisation of the dataset's samples.

    Raises:
        DatasetError: a shard is missing, or a sample differs from its checksum.
    """
    blocks: list[bytes] = []
    places: dict[int, int] = {}
    position = 0
    for sample in chunk.pack:
        content = read_sample(shards, sample)
        places[sample.id] = position
        position += len(content)
        blocks.append(content)
    content = b"".join(blocks)
    digest = hashlib.sha256(content).hexdigest()
    file = bin_path(digest).rsplit("/", 1)[1]
    text = list_text(chunk.samples, places, file, header)
    return PackedChunk(chunk, content, digest, text, hashlib.sha256(text).hexdigest())


def list_text(
    samples: Sequence[QueuedSample], places: Mapping[int, int], file: str, header: InputsList
) -> bytes:
    """The list of ``samples`` that lie at ``places`` of ``file``."""
    listed = tuple(ListedSample(s.id, file, places[s.id], s.crc32) for s in samples)
    inputs = InputsList(header.dtype, header.nbytes, listed, header.mean, header.std)
    return format_list(inputs).encode("ascii")


def read_sample(shards: Path, sample: QueuedSample) -> bytes:
    """A sample's bytes from the dataset's folder of shards.

    Raises:
        DatasetError: the shard is missing, or the sample differs from its checksum.
    """
    path = shards / f"{sample.shard}.bin"
    try:
        with path.open("rb") as file:
            file.seek(sample.offset)
            content = file.read(sample.nbytes)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read: {error.strerror}", hint="prepare the dataset again."
        ) from error
    if len(content) != sample.nbytes or zlib.crc32(content) != sample.crc32:
        raise DatasetError(
            f"{path}: sample {sample.id} ({sample.path}) differs from its checksum",
            hint="prepare the dataset again.",
        )
    return content
