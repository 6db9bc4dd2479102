"""Tables as files: CSV for people and spreadsheets, Parquet for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from .advice import next_steps
from .compare import Comparison
from .families import type_name
from .profile import Profile

PAGE_NAME = "report.html"
SUMMARY_NAME = "profile.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_stem(profile: Profile) -> str:
    """Part of a file name that tells variant and board."""
    label = ".".join(filter(None, (profile.capture.variant, profile.capture.board)))
    return _UNSAFE.sub("_", label)


def summary_table(profiles: Iterable[Profile]) -> pd.DataFrame:
    """One row per profile: what ran, totals in ms per inference, what does not add up."""
    return pd.DataFrame([_summary(profile) for profile in profiles])


def write_tables(
    folder: Path, profiles: Iterable[Profile], comparison: Comparison | None = None
) -> list[Path]:
    """Write every table as CSV and as Parquet into ``folder``.

    Returns:
        the files written.
    """
    profiles = list(profiles)
    tables: dict[str, pd.DataFrame] = {"summary": summary_table(profiles)}
    for profile in profiles:
        stem = file_stem(profile)
        tables[f"events-{stem}"] = profile.events
        tables[f"operators-{stem}"] = profile.operators
        tables[f"kinds-{stem}"] = profile.kinds
        tables[f"modules-{stem}"] = profile.modules
        if not profile.inner.empty:
            tables[f"inner-{stem}"] = profile.inner
    if comparison:
        tables["comparison"] = comparison.operators
        tables["comparison-kinds"] = comparison.kinds
        tables["comparison-events"] = comparison.events
    written = []
    for name, table in tables.items():
        for path, write in (
            (folder / f"{name}.csv", table.to_csv),
            (folder / f"{name}.parquet", table.to_parquet),
        ):
            write(path, index=False)
            written.append(path)
    return written


def summary_document(
    profiles: Iterable[Profile], comparison: Comparison | None, failures: Iterable[str]
) -> dict[str, Any]:
    """The figures that programs ask for first; see ``profile.json`` in the documentation."""
    profiles = list(profiles)
    fastest = min(profiles, key=lambda profile: profile.totals.inference_ms)
    return {
        "schema_version": 1,
        "unit": "ms per inference, medians over executions",
        "profiles": [{**_summary(profile), "top": _top(profile)} for profile in profiles],
        "comparison": _comparison(comparison),
        "next_steps": next_steps(fastest, comparison),
        "failures": list(failures),
    }


def write_summary(path: Path, document: Mapping[str, Any]) -> None:
    """Write :func:`summary_document` to ``path``."""
    path.write_text(json.dumps(document, indent=2) + "\n")


def _summary(profile: Profile) -> dict[str, Any]:
    totals = profile.totals
    first = profile.kinds.iloc[0]
    return {
        "variant": profile.capture.variant,
        "board": profile.capture.board,
        "model": profile.capture.model,
        "origin": profile.capture.origin,
        "executions": totals.executions,
        "inference_ms": totals.inference_ms,
        "operators_ms": totals.operators_ms,
        "execute_ms": totals.execute_ms,
        "wall_ms": totals.wall_ms,
        "spread": totals.spread,
        "macs": totals.macs,
        "bottleneck": type_name(str(first["operator"]), str(first["kind"])),
        "bottleneck_share": float(first["share"]),
        "clock": str(profile.clock),
        "notes": "; ".join(profile.notes),
    }


def _top(profile: Profile, count: int = 5) -> list[dict[str, Any]]:
    return [
        {
            "operator": str(row["operator"]),
            "operators": int(row["operators"]),
            "median_ms": float(row["median_ms"]),
            "share": float(row["share"]),
        }
        for _, row in profile.operators.head(count).iterrows()
    ]


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "baseline": comparison.baseline,
        "variants": [
            {
                "variant": gain.variant,
                "inference_ms": gain.variant_ms,
                "speedup": gain.speedup,
                "amdahl_remainder": gain.remainder,
                "amdahl_ceiling": gain.ceiling if gain.remainder > 0 else None,
                "accelerated": gain.accelerated,
                "slowed": gain.slowed,
                "within_noise": gain.within_noise,
            }
            for gain in comparison.gains
        ],
    }
