"""Following a program's output until it has ended, in whatever way.

No I/O here: the console feeds text and asks what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto

from .console_text import (
    BoundedText,
    boot_started,
    crash_text,
    demo_started,
    is_noise,
    kernel_death,
)

_PROMPT_LINE = re.compile(r"msh (/[^>\n]*)>")
_PROMPT_TAIL = re.compile(r"msh (/[^>\n]*)>\s*\Z")
_CRASH_LINES = 16
_CONFIRM_WAIT = 1.5
_BUSY_CONFIRM_AFTER = 1.0
_PROBE_AFTER = (3.0, 10.0, 30.0)
_PROBE_EVERY = 60.0


class Ending(Enum):
    """How the running of a command ended."""

    FINISHED = auto()
    CRASHED = auto()
    REBOOTED = auto()
    KERNEL_DEAD = auto()
    NO_PROGRESS = auto()
    TOO_LONG = auto()


class ProgramWatch:
    """Collects the output that follows a typed line and tells how the program ended.

    A prompt in the text is only a candidate, since a program may print one and a kernel line may
    follow it: the console then types an empty line, and a second prompt is the proof.

    Args:
        on_line: told each line of output; answers whether it shows progress.
        quiet: seconds without text after which a candidate is put to the proof.
    """

    def __init__(self, on_line: Callable[[str], bool] | None, *, quiet: float) -> None:
        self._on_line = on_line
        self._quiet = quiet
        self._output = BoundedText()
        self._line = ""
        self._line_is_prompt = False
        self._held: list[str] = []
        self._prompts = 0
        self._candidate_at: float | None = None
        self._confirming: tuple[float, int] | None = None
        self._probes = 0
        self._last_text: float | None = None
        self._crash_at: float | None = None
        self._crash: list[str] = []
        self._fate: Ending | None = None
        self.begun = False
        self.cwd = "/"
        self.last_progress = float("inf")

    @property
    def output(self) -> str:
        """The output so far, without echo and prompt."""
        return self._output.text.strip("\n")

    @property
    def crash(self) -> str:
        """The fault message and what follows it."""
        return "\n".join(self._crash)

    @property
    def prompt_seen(self) -> bool:
        """Has a prompt come that may be the end?"""
        return self._prompts > 0

    def feed(self, text: str, now: float) -> None:
        """Take the next piece of output."""
        if self._last_text is None:
            self._last_text = self.last_progress = now
        if not text:
            return
        self._last_text = now
        *complete, rest = (self._line + text).split("\n")
        for line in complete:
            self._complete(line, now)
        self._line = rest
        if not self._line_is_prompt and _PROMPT_TAIL.search(rest):
            self._prompt(rest, now)

    def _complete(self, line: str, now: float) -> None:
        if not self._line_is_prompt and self.begun and _PROMPT_LINE.match(line):
            self._prompt(line, now)
        was_prompt, self._line_is_prompt = self._line_is_prompt, False
        if not self.begun:
            # The first newline is the echo of Enter.
            self.begun = True
            if not line:
                return
        self._scan(line, now)
        if self._candidate_at is None:
            self._release(line, now)
            return
        self._held.append(line)
        after_prompt = _PROMPT_LINE.split(line, maxsplit=1)[-1] if was_prompt else line
        if self._confirming is not None and not is_noise(after_prompt):
            # msh answers an empty line with nothing but a prompt.
            self._refute(now)

    def _prompt(self, line: str, now: float) -> None:
        self._line_is_prompt = True
        self._prompts += 1
        found = _PROMPT_TAIL.search(line) or _PROMPT_LINE.match(line)
        if found:
            self.cwd = found.group(1)
        if self._candidate_at is None:
            self._candidate_at = now

    def _release(self, line: str, now: float) -> None:
        progress = not is_noise(line)
        if self._on_line is not None:
            progress = self._on_line(line) and progress
        if progress:
            self.last_progress = now
        self._output.add(line + "\n")

    def _scan(self, line: str, now: float) -> None:
        if boot_started(line) or demo_started(line):
            self._fate = Ending.REBOOTED
        elif kernel_death(line):
            self._fate = Ending.KERNEL_DEAD
            self._crash = [line]
        elif self._crash_at is not None:
            if len(self._crash) < _CRASH_LINES and not _PROMPT_LINE.match(line):
                self._crash.append(line)
        elif crash_text(line):
            self._crash_at = now
            self._crash = [line]

    def wants_probe(self, now: float) -> bool:
        """Should the console type an empty line now, to see whether msh answers?"""
        if self._last_text is None or self._confirming is not None:
            return False
        silent = now - self._last_text
        if self._candidate_at is not None:
            return silent >= self._quiet or now - self._candidate_at > _BUSY_CONFIRM_AFTER
        after = (
            _PROBE_AFTER[self._probes]
            if self._probes < len(_PROBE_AFTER)
            else _PROBE_AFTER[-1] + _PROBE_EVERY * (self._probes - len(_PROBE_AFTER) + 1)
        )
        return silent >= after

    def probed(self, now: float) -> None:
        """An empty line has been typed."""
        if self._candidate_at is None:
            self._probes += 1
        else:
            self._confirming = (now, self._prompts)

    def ending(self, now: float, *, crash_grace: float) -> Ending | None:
        """How the command ended, or None while it runs."""
        if self._fate is not None:
            return self._fate
        if self._confirming is not None:
            since, before = self._confirming
            if self._prompts > before:
                self._end_output()
                return Ending.CRASHED if self._crash_at is not None else Ending.FINISHED
            if now - since > _CONFIRM_WAIT:
                self._refute(now)
        if self._crash_at is not None and now - self._crash_at > crash_grace:
            return Ending.CRASHED
        return None

    def _end_output(self) -> None:
        """Cut the prompt off; what the program left without a newline is output too."""
        first = self._held[0] if self._held else self._line
        before = _PROMPT_LINE.split(first, maxsplit=1)[0]
        if before:
            self._output.add(before)

    def _refute(self, now: float) -> None:
        """The candidate was no prompt: the program goes on, and the text was its own."""
        self._candidate_at = self._confirming = None
        held, self._held = self._held, []
        for line in held:
            self._release(line, now)
