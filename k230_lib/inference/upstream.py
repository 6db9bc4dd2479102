"""Upstream's ``executor_runner`` instead of ``k230_runner``: one process and two files per image.

For people who must have it. Inputs are float32 files, each inference loads the model anew, and
the latency is read from the log, as there is no results file.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..board.console import MshConsole
from ..board.console_text import command_not_found, excerpt
from ..board.files import PutRequest, remove_files
from ..board.shell import BoardShell, checked
from ..dataset.preprocess import normalise
from ..errors import ConsoleError, ResultsError, RunnerError
from .chunks import Chunk, QueuedSample, SentChunk, read_sample
from .results import ResultRecord
from .run import Run
from .runner import RESULTS, SHARDS, model_path, short, single_command
from .session import ChunkRun
from .store import BoardStore, Collected

_ITERATION = re.compile(r"Iteration \d+ of \d+: ([\d.]+) ms")
_EXECUTED = re.compile(r"Model executed successfully (\d+) time\(s\) in ([\d.]+) ms")


@dataclass(frozen=True)
class SingleFiles(SentChunk):
    """A chunk as one input file per sample; ``latencies`` in ns are filled in as it is computed."""

    inputs: Mapping[int, str]
    latencies: dict[int, int] = field(default_factory=dict)


def latency_ns(log: str) -> int | None:
    """Median time of one inference, from the runner's log; None when it does not tell."""
    iterations = [float(ms) for ms in _ITERATION.findall(log)]
    if iterations:
        return round(1e6 * statistics.median_low(iterations))
    total = _EXECUTED.search(log)
    return round(1e6 * float(total.group(2)) / int(total.group(1))) if total else None


class UpstreamStore(BoardStore):
    """Files as ``executor_runner`` wants them."""

    def __init__(self, shell: BoardShell, run: Run, reserve: int) -> None:
        super().__init__(shell, run, reserve)
        self._preloaded = set()

    def _files_of(self, chunk: Chunk) -> set[str]:
        return {_input_path(self._tensor(sample)) for sample in chunk.samples}

    def _tensor(self, sample: QueuedSample) -> bytes:
        """The model's input as float32, little-endian."""
        content = read_sample(self._run.shards, sample)
        if self._run.header.dtype == "float32":
            return content
        pixels = np.frombuffer(content, np.uint8).reshape(self._run.dataset.shape)
        values = normalise(pixels, self._run.dataset.preprocessing)
        return np.ascontiguousarray(values, "<f4").tobytes()

    def send(self, chunk: Chunk) -> SentChunk:
        """Have an input file for every sample on the board, and no output of old."""
        inputs: dict[int, str] = {}
        requests: dict[str, PutRequest] = {}
        for sample in chunk.samples:
            content = self._tensor(sample)
            path = inputs[sample.id] = _input_path(content)
            requests[path] = PutRequest(content, path)
        self._put(list(requests.values()))
        remove_files(self._shell, [self._output(sample.id) for sample in chunk.samples])
        return SingleFiles(chunk, inputs)

    def command_of(self, files: SingleFiles, sample: int, runner: str) -> str:
        """The line that computes one sample."""
        return single_command(
            runner,
            model=model_path(self._run.contract.pte.sha256),
            inputs=files.inputs[sample],
            output=self._output(sample).removesuffix("-0.bin"),
            repeats=self._run.settings.options.repeats,
        )

    def collect(self, sent: SentChunk) -> Collected:
        """Fetch all outputs in one round trip; those of samples that ended well count."""
        files = _single(sent)
        ids = [sample.id for sample in files.chunk.samples]
        crcs = {sample.id: sample.crc32 for sample in files.chunk.samples}
        wanted = [number for number in ids if number in files.latencies]
        outputs = self._fetch(wanted)
        good = [
            ResultRecord(
                seq,
                number,
                0,
                files.latencies[number],
                crcs[number],
                self._run.settings.options.repeats,
                outputs[number],
            )
            for seq, number in enumerate(wanted)
            if number in outputs
        ]
        present = {record.sample_id for record in good}
        lost = [number for number in wanted if number not in present]
        problem = f"no or damaged output of sample {lost[0]}" if lost else ""
        missing = tuple(number for number in ids if number not in present)
        return Collected(tuple(good), (), missing, problem)

    def _fetch(self, samples: list[int]) -> dict[int, np.ndarray]:
        if not samples:
            return {}
        paths = " ".join(self._output(number) for number in samples)
        script = (
            f'for f in {paths}; do if [ -f "$f" ]; then set -- $(sha256sum <"$f"); '
            'echo "$(wc -c <"$f") $1"; else echo "0 -"; fi; done; echo ==; '
            f"cat {paths} 2>/dev/null; true"
        )
        answer = self._shell.run(script).stdout
        head, separator, content = answer.partition(b"==\n")
        rows = [line.split() for line in head.decode("ascii", "replace").splitlines()]
        if not separator or len(rows) != len(samples):
            raise ResultsError(
                f"{len(samples)} outputs were asked for, {len(rows)} answers came",
                board=self._shell.board,
                hint="run again.",
            )
        found: dict[int, np.ndarray] = {}
        position = 0
        for number, (size, sha256) in zip(samples, rows, strict=True):
            piece = content[position : position + int(size)]
            position += int(size)
            whole = hashlib.sha256(piece).hexdigest() == sha256
            if whole and len(piece) == 4 * self._run.contract.class_count:
                found[number] = np.frombuffer(piece, "<f4").astype(np.float32)
        return found

    def discard(self, sent: SentChunk, *, keep_pack: bool) -> None:
        """Delete outputs, and the inputs of samples that are done."""
        files = _single(sent)
        done = files.latencies if keep_pack else files.inputs
        paths = [files.inputs[number] for number in done]
        remove_files(self._shell, [*paths, *(self._output(number) for number in files.inputs)])
        checked(self._shell, f"rm -f {RESULTS}/*.etdump")
        self.measure()

    def _output(self, sample: int) -> str:
        return f"{RESULTS}/{self._run.id}-{sample}-0.bin"


class UpstreamSession:
    """Runs one process per sample on one console."""

    def __init__(self, console: MshConsole, store: UpstreamStore, runner: str) -> None:
        self._console, self._store, self._runner = console, store, runner

    def run(self, sent: SentChunk, *, silence: float, on_done: Callable[[int], None]) -> ChunkRun:
        """Compute the samples of a chunk one after the other, up to the first that goes wrong.

        Args:
            silence: seconds that one process may be silent.
            on_done: told after each sample how many are done.

        Raises:
            RunnerError: msh cannot run it, or its log has no sign of an inference.
        """
        files = _single(sent)
        # A runner that traces leaves its file in the working directory.
        self._console.run(f"cd {RESULTS}")
        for count, sample in enumerate(files.chunk.samples, start=1):
            command = self._store.command_of(files, sample.id, self._runner)
            try:
                log = self._console.run(command, timeout=None, idle_timeout=silence)
            except ConsoleError as error:
                return ChunkRun(False, True, 0, error, error.message)
            taken = latency_ns(log)
            if taken is None:
                name = "msh cannot run" if command_not_found(log) else "no inference by"
                raise RunnerError(
                    f"{name} {self._runner}: {excerpt(log, 3)}",
                    board=self._console.board,
                    hint="deploy the runner again, or give the one of another release.",
                )
            files.latencies[sample.id] = taken
            on_done(count)
        return ChunkRun(True, True, 0, None, "")


def _input_path(content: bytes) -> str:
    return f"{SHARDS}/{short(hashlib.sha256(content).hexdigest())}.f32"


def _single(sent: SentChunk) -> SingleFiles:
    if not isinstance(sent, SingleFiles):
        raise TypeError(f"single files were expected, not {type(sent).__name__}")
    return sent
