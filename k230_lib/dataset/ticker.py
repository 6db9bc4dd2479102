"""Progress on standard error: one line that is overwritten on a terminal, few lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_EVERY = {True: 0.2, False: 5.0}
"""Seconds between lines, on a terminal and in a log."""


class Ticker:
    """Call with (done, total); the rate and the time left are computed from the calls."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._first: tuple[float, int] | None = None
        self._shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = (now, done)
        last = done >= total
        if done == self._first[1] and not last:
            return
        if not last and now - self._shown < _EVERY[self._terminal]:
            return
        self._shown = now
        start, before = self._first
        text = f"{self._what}: {done}/{total} images"
        if done > before and now > start:
            rate = (done - before) / (now - start)
            text += f", {rate:.1f}/s" + ("" if last else f", {(total - done) / rate:.0f} s left")
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text}" + ("\n" if last else ""))
        else:
            self._stream.write(text + "\n")
        self._stream.flush()
