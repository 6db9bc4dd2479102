"""Files of the virtual board's root file system; text only, installed by ``rootfs``."""

from __future__ import annotations

from importlib import resources


def text(name: str) -> str:
    """Content of the packaged file ``name``."""
    return (resources.files(__name__) / name).read_text(encoding="utf-8")
