"""Running a traced model on one board and bringing the trace home.

The trace is a file: it comes over SSH with its SHA-256. Only the runner's own clock is read from
the console (``Iteration i of n: x ms``), to check the trace's clock by; when a line of it is lost
the times are left out rather than believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ..board.console import MshConsole
from ..board.console_text import command_not_found, excerpt
from ..board.files import PutRequest, fetch_file, file_sha256, probe_files, put_many, remove_files
from ..board.sharefs import probe, require_usable
from ..board.shell import BoardShell, checked
from ..errors import InputError, RunnerError
from ..inference.frames import Frame, FrameReader
from ..inference.runner import ROOT, model_path, short
from ..model import contract as contracts
from ..model.contract import ModelContract
from .capture import (
    ETDUMP_NAME,
    FILE_NAME,
    ITERATION,
    Capture,
    read_capture,
    wall_times,
    write_capture,
)
from .etdump import read_etdump
from .samples import EXECUTE

TRACES = f"{ROOT}/traces"
CONSOLE_LOG = "console.log"
OUTPUT_LOG = "runner.log"
_REMEDIES = {
    "usage": "deploy a runner of this version that was built with the event tracer.",
    "results": "free space on /sharefs, and check that it can be written.",
    "operators": "use a variant that has these operators.",
    "memory": "trace fewer executions, or use a smaller model.",
    "cpu": "use the portable variant.",
}
_LOADED = re.compile(r"Model loaded in (\d+\.\d+) ms")

Progress = Callable[[int, int, float], None]
"""Called with (executions done, executions in all, ms of the last one)."""


@dataclass(frozen=True)
class TraceRequest:
    """What to trace.

    Attributes:
        model: the model's folder.
        runner: path of the runner on the board; it must be built with the event tracer.
        runner_sha256: its hash, empty when unknown.
        variant: name of its kernels.
        executions: traced inferences.
        warmup: inferences before them.
        input: a file with the input's bytes; ones when not given.
        upstream: the runner is ExecuTorch's own ``executor_runner``, which has no ``--warmup``.
        tick_hz: ticks per second of the trace's clock.
        origin: what the figures are, see docs/formats.md.
        timeout: seconds for loading and for each inference.
    """

    model: Path
    runner: str
    runner_sha256: str
    variant: str
    executions: int = 10
    warmup: int = 1
    input: Path | None = None
    upstream: bool = False
    tick_hz: float = 1e9
    origin: str = "measured_here"
    timeout: float = 300.0


@dataclass(frozen=True)
class TraceOutcome:
    """Where the trace is, and whether it was made now."""

    changed: bool
    folder: Path
    capture: Capture


def run_folder(runs: Path, contract: ModelContract) -> Path:
    """Folder of all traces of one exported model: another export has another."""
    return runs / f"profile-{contract.name}-{contract.pte.sha256[:8]}"


def command_line(request: TraceRequest, contract: ModelContract, etdump: str, given: str) -> str:
    """The line to type at msh.

    Args:
        request: what to trace.
        contract: of the model.
        etdump: where the runner writes the trace.
        given: path of the input on the board, empty for ones.
    """
    traced = request.executions + (request.warmup if request.upstream else 0)
    words = [
        request.runner,
        f"--model_path={model_path(contract.pte.sha256)}",
        f"--etdump_path={etdump}",
        f"--num_executions={traced}",
        "--print_output=none",
    ]
    if given:
        words.append(f"--inputs={given}")
    if request.warmup and not request.upstream:
        words.append(f"--warmup={request.warmup}")
    return " ".join(words)


def kept_capture(folder: Path, wanted: Capture) -> Capture | None:
    """The capture in ``folder`` when it is what would be made now, else None."""
    path = folder / FILE_NAME
    if not path.is_file() or not (folder / ETDUMP_NAME).is_file():
        return None
    try:
        found = read_capture(path)
    except InputError:
        return None
    same = replace(
        found, etdump_sha256="", wall_ms=(), load_ms=None, started="", command=wanted.command
    )
    if same != wanted or file_sha256(folder / ETDUMP_NAME) != found.etdump_sha256:
        return None
    return found


def plan_trace(board: str, request: TraceRequest, runs: Path) -> tuple[Path, Capture]:
    """The folder of this board's trace, and the capture as far as it is known beforehand.

    Raises:
        InputError: the counts make no sense.
        ModelError: the model's folder cannot be used.
    """
    if request.executions < 1 or request.warmup < 0:
        raise InputError(
            f"{request.executions} executions after {request.warmup} for warm-up, expected at "
            "least 1 and 0.",
            board=board,
        )
    contract = contracts.load(request.model)
    capture = Capture(
        variant=request.variant,
        board=board,
        model=contract.name,
        origin=request.origin,
        pte_sha256=contract.pte.sha256,
        runner_sha256=request.runner_sha256,
        executions=request.executions,
        warmup=0 if request.upstream else request.warmup,
        skip=request.warmup if request.upstream else 0,
        tick_hz=request.tick_hz,
        versions=contract.versions,
    )
    return run_folder(runs, contract) / request.variant / board, capture


def trace(
    shell: BoardShell,
    console_url: str,
    request: TraceRequest,
    runs: Path,
    *,
    baudrate: int = 115200,
    force: bool = False,
    progress: Progress = lambda done, total, ms: None,
) -> TraceOutcome:
    """Trace the model on one board, unless the same trace is there already.

    Args:
        shell: the board's Linux.
        console_url: the board's RT-Smart console.
        request: what to trace.
        runs: folder of all runs.
        baudrate: of a serial console.
        force: trace again.
        progress: told each execution.

    Raises:
        K230Error: the board, the console, the runner or the trace are not as required.
    """
    folder, capture = plan_trace(shell.board, request, runs)
    kept = None if force else kept_capture(folder, capture)
    if kept:
        return TraceOutcome(False, folder, kept)
    contract = contracts.load(request.model)
    require_usable(probe(shell), shell.board)
    etdump = f"{TRACES}/{short(contract.pte.sha256)}-{request.variant}.etdump"
    given = _send(shell, request, contract, etdump)
    line = command_line(request, contract, etdump, given)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    folder.mkdir(parents=True, exist_ok=True)
    # A trace that stays from an earlier run must not be taken for this one's.
    (folder / FILE_NAME).unlink(missing_ok=True)
    log = folder / CONSOLE_LOG
    with MshConsole.open(console_url, shell.board, log, baudrate=baudrate) as console:
        output = _run(console, line, request, progress)
    (folder / OUTPUT_LOG).write_text(output, encoding="utf-8")
    target = folder / ETDUMP_NAME
    if probe_files(shell, [etdump])[0].size <= 0:
        raise RunnerError(
            f"the runner ended without writing a trace: {excerpt(output, 2) or 'no output'}",
            board=shell.board,
            hint="use a runner built with the event tracer, and look at runner.log.",
        )
    fetched = fetch_file(shell, etdump, target)
    remove_files(shell, [etdump])
    _check_count(shell.board, target, request.executions + capture.skip)
    loaded = _LOADED.search(output)
    walls = wall_times(output)
    capture = replace(
        capture,
        etdump_sha256=fetched.sha256,
        wall_ms=walls[capture.skip :] if len(walls) == request.executions + capture.skip else (),
        load_ms=float(loaded[1]) if loaded else None,
        started=started,
        command=line,
    )
    write_capture(folder, capture)
    return TraceOutcome(True, folder, capture)


def _send(shell: BoardShell, request: TraceRequest, contract: ModelContract, etdump: str) -> str:
    """Have model and input on the board, and no older trace; returns the input's path there."""
    checked(shell, f"mkdir -p {TRACES} {ROOT}/models")
    model = request.model / contract.pte.file
    files = [PutRequest(model, model_path(contract.pte.sha256), contract.pte.sha256)]
    given = ""
    if request.input is not None:
        if not request.input.is_file():
            raise InputError(f"{request.input}: no such input file.", board=shell.board)
        size = request.input.stat().st_size
        if size != contract.input.nbytes:
            raise InputError(
                f"{request.input}: {size} bytes, the model's input has {contract.input.nbytes}.",
                board=shell.board,
                hint="give one sample as the dataset holds it, float32.",
            )
        given = f"{TRACES}/{short(file_sha256(request.input))}.bin"
        files.append(PutRequest(request.input, given))
    put_many(shell, files)
    remove_files(shell, [etdump])
    return given


def _run(console: MshConsole, line: str, request: TraceRequest, progress: Progress) -> str:
    """Run the traced model to its end and return what it printed.

    Raises:
        RunnerError: msh cannot run it, or it refuses or ends without all executions.
    """
    frames = FrameReader()
    refusals: list[Frame] = []

    def on_line(text: str) -> bool:
        refusals.extend(frame for frame in frames.feed(text + "\n") if frame.kind == "fail")
        match = ITERATION.search(text)
        if match:
            progress(int(match[1]), int(match[2]), float(match[3]))
        return bool(match or _LOADED.search(text))

    output = console.run(line, timeout=None, idle_timeout=request.timeout, on_line=on_line)
    if command_not_found(output):
        raise RunnerError(
            f"msh cannot run {request.runner}: no such file, no ELF for this board, or no memory: "
            f"{excerpt(output, 2)}",
            board=console.board,
            hint="deploy the runner again.",
        )
    if refusals:
        fields = refusals[-1].fields
        raise RunnerError(
            f"the runner refuses ({fields['code']}): {fields['reason']}",
            board=console.board,
            hint=_REMEDIES.get(fields["code"], "deploy runner and model again."),
        )
    return output


def _check_count(board: str, etdump: Path, expected: int) -> None:
    """The trace must hold all executions: a runner that was stopped early writes fewer."""
    dump = read_etdump(etdump)
    found = sum(
        EXECUTE in (dump.texts[index] for index in set(run.name.tolist())) for run in dump.runs
    )
    if found != expected:
        raise RunnerError(
            f"the trace holds {found} executions, expected {expected}",
            board=board,
            hint="look at runner.log beside the trace; was the runner stopped, or out of memory?",
        )
