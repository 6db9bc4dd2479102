"""What a board is and how it is reached: shell, console, facts, storage."""

from __future__ import annotations
