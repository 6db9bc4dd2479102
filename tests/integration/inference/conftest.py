"""Virtual boards, a model of a millisecond, and processes that work on a run as Ansible's do."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.board.files import put_file
from k230_lib.board.shell import CommandResult, SshShell
from k230_lib.errors import BoardUnreachableError, K230Error
from k230_lib.inference.engine import run_board
from k230_lib.inference.job import BoardJob, BoardOutcome, Limits
from k230_lib.inference.progress import BoardProgress
from k230_lib.inference.run import Run, RunSettings, open_run
from k230_lib.inference.runner import BIN, RunnerOptions
from k230_lib.model.contract import Preprocessing
from k230_lib.runner.build import BuildRequest, BuiltRunner, build_runner
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

from ...inputs import write_dataset, write_model

REPOSITORY = Path(__file__).resolve().parents[3]
SIDE, CLASSES, LARGEST = 16, 5, 6000
NBYTES = 3 * SIDE * SIDE
PREPROCESSING = Preprocessing(SIDE, SIDE, mean=(0.5, 0.4, 0.3), std=(0.25, 0.2, 0.3))

# In a process of its own: torch takes seconds and memory that the boards' processes need not have.
EXPORT = f"""
import sys
import numpy, torch
from executorch.exir import to_edge
from executorch.runtime import Runtime

class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.last = torch.nn.Linear(6, {CLASSES})

    def forward(self, x):
        return self.last(torch.relu(self.first(x)).mean((2, 3))) * 20

folder = sys.argv[1]
torch.manual_seed(5)
program = to_edge(torch.export.export(Small().eval(), (torch.randn(1, 3, {SIDE}, {SIDE}),)))
with open(folder + "/model.pte", "wb") as file:
    file.write(program.to_executorch().buffer)
data = numpy.fromfile(folder + "/data.bin", numpy.uint8).reshape(-1, 1, 3, {SIDE}, {SIDE})
mean = numpy.array({PREPROCESSING.mean}, "f4").reshape(3, 1, 1)
std = numpy.array({PREPROCESSING.std}, "f4").reshape(3, 1, 1)
method = Runtime.get().load_program(folder + "/model.pte").load_method("forward")
rows = []
for image in data:
    x = (image.astype("f4") / numpy.float32(255) - mean) / std
    rows.append(method.execute([torch.from_numpy(x)])[0].numpy().copy())
numpy.save(folder + "/logits.npy", numpy.concatenate(rows).astype("f4"))
"""


@pytest.fixture(scope="session")
def runner() -> BuiltRunner:
    """The portable runner for this machine; kept between sessions, rebuilt when it changes."""
    output = REPOSITORY / "artifacts" / "runners"
    return build_runner(BuildRequest("portable", "host", REPOSITORY / "kernels", output))


@pytest.fixture(scope="session")
def products() -> Path:
    """The small model and what the host makes of the samples; kept between sessions."""
    name = hashlib.sha256(f"{EXPORT}{LARGEST}".encode()).hexdigest()[:12]
    folder = REPOSITORY / ".k230" / "cache" / f"inference-{name}"
    if not (folder / "logits.npy").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(1).integers(0, 256, (LARGEST, NBYTES), dtype=np.uint8)
        (folder / "data.bin").write_bytes(pixels.tobytes())
        subprocess.run([sys.executable, "-c", EXPORT, folder], check=True, capture_output=True)
    return folder


@dataclass(frozen=True)
class World:
    """Model, dataset and the host's logits on disk."""

    model: Path
    dataset: Path
    host: Path
    logits: np.ndarray
    labels: np.ndarray

    @property
    def count(self) -> int:
        return len(self.labels)


@pytest.fixture
def make_world(products: Path, tmp_path: Path) -> Callable[..., World]:
    """Write model and dataset folders of ``count`` samples; a fifth of the labels is wrong."""

    def make(count: int = 96, shard_size: int = 64) -> World:
        model, dataset = tmp_path / "model", tmp_path / "dataset"
        write_model(model, (products / "model.pte").read_bytes(), PREPROCESSING, CLASSES)
        logits = np.load(products / "logits.npy")[:count]
        best = logits.argmax(axis=1)
        labels = np.where(np.arange(count) % 5 == 0, (best + 1) % CLASSES, best)
        pixels = np.fromfile(products / "data.bin", np.uint8).reshape(-1, NBYTES)[:count]
        write_dataset(dataset, pixels, labels.tolist(), shard_size, PREPROCESSING)
        np.savez(tmp_path / "host.npz", indices=np.arange(count), logits=logits)
        return World(model, dataset, tmp_path / "host.npz", logits, labels)

    return make


class MultiplexedShell(SshShell):
    """One SSH connection for all round trips, as Ansible keeps one; counts what passes.

    ``tamper`` may change the board just before a script runs.
    """

    def __init__(self, board: LightBoard, folder: Path) -> None:
        self._socket = f"{folder}/{board.name}"
        sharing = ["-o", "ControlMaster=auto", "-o", f"ControlPath={self._socket}"]
        alive = ["-o", "ControlPersist=30", "-o", "ServerAliveInterval=2"]
        self._address = f"root@{board.settings.address}"
        super().__init__(
            board.name,
            self._address,
            [*board.ssh_options(), *sharing, *alive, "-o", "ServerAliveCountMax=2"],
        )
        self.round_trips = 0
        self.bytes_sent = 0
        self.tamper: Callable[[str, SshShell], None] | None = None

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        if self.tamper is not None:
            tamper, self.tamper = self.tamper, None
            tamper(script, self)
            self.tamper = tamper
        self.round_trips += 1
        self.bytes_sent += len(stdin or b"")
        return super().run(script, stdin=stdin, timeout=timeout)

    def close(self) -> None:
        with suppress(OSError):
            subprocess.run(
                ["ssh", "-o", f"ControlPath={self._socket}", "-O", "exit", self._address],
                capture_output=True,
                check=False,
            )


@dataclass
class Worker:
    """A process that lets one board work on a run, as an Ansible worker does."""

    process: BaseProcess
    answers: Any

    def outcome(self, timeout: float = 240.0) -> BoardOutcome:
        """What came of it; raises what the process raised."""
        kind, value, extra = self.answer(timeout)
        if kind == "error":
            raise value
        del extra
        assert isinstance(value, BoardOutcome)
        return value

    def answer(self, timeout: float = 240.0) -> tuple[str, Any, dict[str, int]]:
        """(``done`` or ``error``, outcome or error, counters of the shell)."""
        answer: tuple[str, Any, dict[str, int]] = self.answers.get(timeout=timeout)
        self.process.join(30)
        return answer

    def kill(self) -> None:
        """As by ``kill -9``."""
        self.process.kill()
        self.process.join(30)


@dataclass
class Rack:
    """Running boards, with the runner on them, and the means to let them work."""

    boards: list[LightBoard]
    runner: BuiltRunner
    runner_path: str
    runs: Path
    sockets: Path
    workers: list[Worker] = field(default_factory=list)

    def open(self, world: World, **changes: Any) -> Run:
        """The run of a world."""
        options = RunnerOptions(changes.pop("repeats", 1), pace_ms=changes.pop("pace_ms", 0.0))
        changes = {"cross_check": 0.0, **changes}
        settings = RunSettings("portable", self.runner.sha256, options, **changes)
        return open_run(self.runs, world.model, world.dataset, settings, host=world.host)

    def start(
        self,
        board: LightBoard,
        run: Run,
        *,
        report: Callable[[BoardProgress], None] = lambda progress: None,
        tamper: Callable[[str, SshShell], None] | None = None,
        golden: bool = True,
        runner: str | None = None,
        **job: Any,
    ) -> Worker:
        """Let a board work on a run in a process of its own."""
        context = multiprocessing.get_context("fork")
        answers = context.Queue()

        def work() -> None:
            shell = MultiplexedShell(board, self.sockets)
            shell.tamper = tamper
            log: dict[str, int] = {}
            try:
                limits = job.pop("limits", Limits(sample=30, sample_least=8, reboot=60))
                known = {
                    "golden": run.golden() if golden else None,
                    "runner": runner or self.runner_path,
                    "limits": limits,
                    **job,
                }
                outcome = run_board(
                    BoardJob(board.name, shell, board.settings.console, run, **known), report
                )
                kind: str = "done"
                value: object = outcome
            except K230Error as error:
                kind, value = "error", error
            log = {"round_trips": shell.round_trips, "bytes_sent": shell.bytes_sent}
            answers.put((kind, value, log))
            shell.close()

        process = context.Process(target=work)
        process.start()
        worker = Worker(process, answers)
        self.workers.append(worker)
        return worker

    def shell(self, board: LightBoard) -> SshShell:
        """The board's Linux for the test itself."""
        return SshShell(board.name, f"root@{board.settings.address}", board.ssh_options())

    def close(self) -> None:
        """End what a failed test left."""
        for worker in self.workers:
            if worker.process.is_alive():
                worker.kill()
        for board in self.boards:
            shell = MultiplexedShell(board, self.sockets)
            shell.close()


@pytest.fixture(scope="session")
def board_pool(runner: BuiltRunner) -> Iterator[Callable[[int], list[LightBoard]]]:
    """Boards that are started when first asked for, and stay until the session's end."""
    with ExitStack() as stack:
        boards: list[LightBoard] = []

        def take(count: int) -> list[LightBoard]:
            while len(boards) < count:
                number = 150 + len(boards)
                made = stack.enter_context(
                    virtual_board(number, card_size="1GiB", boot_demo=bool(number % 2))
                )
                boards.append(made)
                shell = SshShell(made.name, f"root@{made.settings.address}", made.ssh_options())
                put_file(shell, runner.path, _runner_path(runner), mode=0o755)
            return boards[:count]

        yield take


def _runner_path(runner: BuiltRunner) -> str:
    return f"{BIN}/k230_runner-portable-{runner.sha256[:12]}"


@pytest.fixture
def make_rack(
    board_pool: Callable[[int], list[LightBoard]], runner: BuiltRunner, tmp_path: Path
) -> Iterator[Callable[[int], Rack]]:
    """A rack of so many boards, free of faults and of earlier runs."""
    racks: list[Rack] = []
    with tempfile.TemporaryDirectory(prefix="k230-ssh-") as sockets:

        def make(count: int = 2) -> Rack:
            boards = board_pool(count)
            rack = Rack(boards, runner, _runner_path(runner), tmp_path / "runs", Path(sockets))
            for board in boards:
                board.faults.clear()
                _clean(rack, board)
            racks.append(rack)
            return rack

        yield make
        for rack in racks:
            rack.close()
            for board in rack.boards:
                board.faults.clear()


def _clean(rack: Rack, board: LightBoard) -> None:
    script = "cd /sharefs && rm -rf filler.bin k230/shards k230/results k230/models && sync"
    with suppress(BoardUnreachableError):
        rack.shell(board).run(script)


@pytest.fixture
def check_complete() -> Callable[[Run, World], None]:
    """Every sample has one result, equal to the host's, and was computed once."""

    def check(run: Run, world: World) -> None:
        db = sqlite3.connect(run.database)
        try:
            rows = db.execute("SELECT sample, logits FROM results ORDER BY sample").fetchall()
        finally:
            db.close()
        assert [row[0] for row in rows] == list(range(world.count))
        found = np.stack([np.frombuffer(row[1], "<f4") for row in rows])
        assert np.max(np.abs(found - world.logits)) <= 1e-4
        assert run.queue().counts().left == 0

    return check


def pytest_configure() -> None:
    """Boards need root; nothing is asked on the way."""
    os.environ.setdefault("SSH_ASKPASS_REQUIRE", "never")
