"""The made-up runs of the inference tests, for reports."""

from __future__ import annotations

from ..inference.conftest import logits_of, make_inputs, record_of

__all__ = ["logits_of", "make_inputs", "record_of"]
