"""From results to accuracy, agreement and comparison. Pure."""

from __future__ import annotations
