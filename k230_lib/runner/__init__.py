"""Build, describe and check the program that runs on the board."""

from __future__ import annotations
