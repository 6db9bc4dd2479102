"""``python -m k230_lib.runner``: the same as ``k230 runner``."""

from __future__ import annotations

from .commands import app

app(prog_name="k230 runner")
