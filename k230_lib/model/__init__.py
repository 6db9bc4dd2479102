"""From a model's name to .pte, .etrecord and model.json. Imports torch where used."""

from __future__ import annotations
