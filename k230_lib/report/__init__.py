"""Tables, plots and pages for people."""

from __future__ import annotations
