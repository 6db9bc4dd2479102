"""Run samples on boards: queue, console frames, results files, engine."""

from __future__ import annotations
