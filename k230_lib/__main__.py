"""``python -m k230_lib`` is ``k230``, also where the package is not installed."""

from __future__ import annotations

from .cli import main

main()
