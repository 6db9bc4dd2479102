"""Virtual boards: stand-ins with the real tools. Only tests, the CLI and one role use them."""

from __future__ import annotations
