"""Optional changes to a model before and during export, each verified against the original."""

from __future__ import annotations
