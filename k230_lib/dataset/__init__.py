"""From a folder of labelled images to packed tensors with a manifest."""

from __future__ import annotations
