"""The files of a run on one board: sent before they are needed, fetched, verified, deleted."""

from __future__ import annotations

from dataclasses import dataclass

from ..board.files import PutRequest, fetch_bytes, free_space, put_many, remove_files
from ..board.shell import BoardShell, checked
from ..errors import BoardSpaceError, ResultsError
from .chunks import Chunk, PackedChunk, SentChunk, pack
from .results import STATUS_OK, ResultRecord, check_identity, parse_results
from .run import Run
from .runner import (
    MODELS,
    RESULTS,
    SHARDS,
    SHAREFS,
    batch_command,
    bin_path,
    list_path,
    model_path,
    results_path,
)


@dataclass(frozen=True)
class Collected:
    """What the results file of a chunk held.

    Attributes:
        good: verified records with status 0.
        bad: records with another status.
        missing: samples without a record, in the order in which they are computed.
        problem: why the file, or a record of it, was not used; empty when all was well.
    """

    good: tuple[ResultRecord, ...]
    bad: tuple[ResultRecord, ...]
    missing: tuple[int, ...]
    problem: str = ""


class BoardStore:
    """The board's folder ``/sharefs/k230`` as this run uses it. For one thread at a time.

    Args:
        shell: the board's Linux.
        run: the run.
        reserve: bytes that stay free.
    """

    def __init__(self, shell: BoardShell, run: Run, reserve: int) -> None:
        self._shell = shell
        self._run = run
        self._reserve = reserve
        self._preloaded: set[str] = {bin_path(shard.bin_sha256) for shard in run.dataset.shards}
        self._free = 0
        self.bytes_sent = 0

    @property
    def room(self) -> int:
        """Bytes that may be sent, as far as is known."""
        return max(0, self._free - self._reserve)

    def prepare(self, wanted: list[Chunk]) -> None:
        """Make the folders, delete what earlier runs left, send the model.

        Args:
            wanted: open chunks of this board; their files stay.
        """
        keep = self._preloaded | {path for chunk in wanted for path in self._files_of(chunk)}
        listing = checked(
            self._shell,
            f"mkdir -p {MODELS} {SHARDS} {RESULTS} && ls -1 -d {SHARDS}/* {RESULTS}/* 2>/dev/null; "
            "true",
        )
        found = [line for line in listing.splitlines() if line.startswith("/")]
        remove_files(self._shell, [path for path in found if path not in keep])
        model = PutRequest(
            self._run.model_file,
            model_path(self._run.contract.pte.sha256),
            self._run.contract.pte.sha256,
        )
        self.bytes_sent += sum(o.bytes_sent for o in put_many(self._shell, [model]))
        self._free = free_space(self._shell, SHAREFS)

    def _files_of(self, chunk: Chunk) -> set[str]:
        """What may be left of an earlier attempt at the chunk, and is still of use."""
        packed = pack(chunk, self._run.shards, self._run.header)
        return {
            bin_path(packed.bin_sha256),
            bin_path(packed.bin_sha256) + ".part",
            list_path(packed.list_sha256),
            results_path(self._run.id, packed.list_sha256),
        }

    def send(self, chunk: Chunk) -> SentChunk:
        """Have the chunk's files on the board.

        Raises:
            BoardSpaceError: there is no room for them.
        """
        packed = pack(chunk, self._run.shards, self._run.header)
        self._put(packed.requests)
        return packed

    def _put(self, requests: list[PutRequest]) -> None:
        sent = sum(outcome.bytes_sent for outcome in put_many(self._shell, requests))
        self.bytes_sent += sent
        self._free -= sent

    def command(self, sent: SentChunk, runner: str) -> str:
        """The line that computes the chunk."""
        packed, run = _packed(sent), self._run
        return batch_command(
            runner,
            model=model_path(run.contract.pte.sha256),
            inputs_list=list_path(packed.list_sha256),
            results=results_path(run.id, packed.list_sha256),
            run_id=run.id,
            options=run.settings.options,
        )

    def collect(self, sent: SentChunk) -> Collected:
        """Fetch and verify the results of a chunk."""
        packed = _packed(sent)
        path = results_path(self._run.id, packed.list_sha256)
        data = fetch_bytes(self._shell, path)
        ids = [sample.id for sample in packed.chunk.samples]
        if data is None:
            return Collected((), (), tuple(ids), "there is no results file")
        try:
            results = parse_results(data, path)
            check_identity(
                results.header,
                run_id=self._run.id,
                model_crc=self._run.model_crc,
                list_crc=packed.list_crc,
                name=path,
            )
        except ResultsError as error:
            return Collected((), (), tuple(ids), error.message)
        good: list[ResultRecord] = []
        bad: list[ResultRecord] = []
        problem = "the results file ends with a damaged record" if results.damaged else ""
        records = results.by_sample()
        classes = self._run.contract.class_count
        usable: set[int] = set()
        for sample in packed.chunk.samples:
            record = records.get(sample.id)
            if record is None:
                continue
            if record.status != STATUS_OK:
                bad.append(record)
            elif record.input_crc != sample.crc32 or record.logits.shape != (classes,):
                problem = f"the record of sample {sample.id} is of other input bytes or classes"
                continue
            else:
                good.append(record)
            usable.add(sample.id)
        missing = tuple(number for number in ids if number not in usable)
        return Collected(tuple(good), tuple(bad), missing, problem)

    def discard(self, sent: SentChunk, *, keep_pack: bool) -> None:
        """Delete the chunk's files; the packed samples stay when more of them are wanted.

        Shards of the dataset stay as well: they were put there ahead of the run.
        """
        packed = _packed(sent)
        paths = [
            results_path(self._run.id, packed.list_sha256),
            list_path(packed.list_sha256),
        ]
        target = bin_path(packed.bin_sha256)
        if not keep_pack and target not in self._preloaded:
            paths.append(target)
            self._free += len(packed.content)
        remove_files(self._shell, paths)

    def measure(self) -> None:
        """Ask the board how much is free."""
        self._free = free_space(self._shell, SHAREFS)

    def no_room(self, needed: int) -> BoardSpaceError:
        """The error for a board that cannot take even one sample."""
        return BoardSpaceError(
            f"{needed} bytes are needed on {SHAREFS}, {self._free} are free, of which "
            f"{self._reserve} stay free",
            board=self._shell.board,
            hint="delete files there (the demos in /sharefs/app take 52 MB), or let provision.yml "
            "grow the partition.",
        )


def _packed(sent: SentChunk) -> PackedChunk:
    if not isinstance(sent, PackedChunk):
        raise TypeError(f"a packed chunk was expected, not {type(sent).__name__}")
    return sent
