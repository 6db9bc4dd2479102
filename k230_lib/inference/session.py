"""Running one chunk by ``k230_runner`` through the console, and following its frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..board.console import MshConsole
from ..board.console_text import command_not_found, excerpt
from ..errors import ConsoleError, K230Error, RunnerError
from .frames import Frame, FrameReader

_REMEDIES = {
    "usage": "deploy the runner of this version again.",
    "model": "deploy the model again, or export it anew.",
    "operators": "build the runner with these operators, or use another variant.",
    "list": "run again; the list is sent anew.",
    "results": "check space and state of /sharefs.",
    "memory": "use a smaller model, or stop the demo that holds memory.",
    "cpu": "use the portable variant.",
}


@dataclass(frozen=True)
class ChunkRun:
    """How the runner ended.

    Attributes:
        finished: its closing frame, or its prompt, came.
        begun: its first frame came: model and list were loaded.
        resumed: samples whose records were there from an earlier attempt.
        error: what the console saw go wrong.
        output: the end of what it printed, or what the console tells of the error.
    """

    finished: bool
    begun: bool
    resumed: int
    error: ConsoleError | None
    output: str


class ChunkSession:
    """Runs command lines of the runner on one console."""

    def __init__(self, console: MshConsole, run_id: str) -> None:
        self._console = console
        self._run_id = run_id

    def run(self, command: str, *, silence: float, on_done: Callable[[int], None]) -> ChunkRun:
        """Run one command line to its end.

        Args:
            command: as typed at msh.
            silence: seconds without a frame after which the program counts as hung.
            on_done: told at each progress frame how many samples are done.

        Raises:
            RunnerError: the runner itself says why it cannot do this, or msh cannot run it.
        """
        reader = FrameReader()
        seen: dict[str, Frame] = {}

        def on_line(line: str) -> bool:
            frames = [f for f in reader.feed(line + "\n") if f.run in (self._run_id, "-")]
            for frame in frames:
                seen[frame.kind] = frame
                if frame.kind == "item":
                    on_done(frame.integer("seq") + 1)
            return bool(frames)

        error: ConsoleError | None = None
        try:
            output = self._console.run(command, timeout=None, idle_timeout=silence, on_line=on_line)
        except ConsoleError as problem:
            error, output = problem, problem.message
        if "fail" in seen:
            raise self._refusal(seen["fail"], output)
        if error is None and command_not_found(output):
            raise RunnerError(
                f"msh cannot run {command.split(maxsplit=1)[0]}: no such file, no ELF for this "
                f"board, or no memory: {excerpt(output, 2)}",
                board=self._console.board,
                hint="deploy the runner again.",
            )
        begun = "begin" in seen or "item" in seen
        resumed = seen["begin"].integer("resumed") if "begin" in seen else 0
        told = error.message if error is not None else excerpt(output)
        return ChunkRun(error is None, begun, resumed, error, told)

    def _refusal(self, frame: Frame, output: str) -> K230Error:
        code = frame.fields["code"]
        return RunnerError(
            f"the runner refuses ({code}): {frame.fields['reason'] or excerpt(output, 2)}",
            board=self._console.board,
            hint=_REMEDIES.get(code, "look at the console log."),
        )
