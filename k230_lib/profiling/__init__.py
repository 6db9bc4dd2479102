"""From ETDump and ETRecord to tables."""

from __future__ import annotations
