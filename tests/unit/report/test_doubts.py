"""Figures that contradict others are not reported as if they were right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from k230_lib.evaluation.agreement import compare
from k230_lib.report.figures import RunFigures

GOOD = RunFigures(
    total=2,
    done=2,
    quarantined=(),
    missing=0,
    top1=1.0,
    top5=1.0,
    top1_count=2,
    top5_count=2,
    wall_s=1.0,
    images_per_s=2.0,
    boards=(),
    host=None,
    cross_checked=0,
    cross_disagreeing=(),
)
HOST = np.eye(2, 8, dtype=np.float32) * 9


def test_no_reference_is_no_doubt() -> None:
    assert GOOD.doubts == ()


def test_rounding_is_no_doubt() -> None:
    assert replace(GOOD, host=compare(HOST, HOST + 1e-5, [0, 1])).doubts == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"host": compare(HOST, HOST[::-1].copy(), [7, 9])}, "host runtime's on 2 images"),
        ({"cross_checked": 3, "cross_disagreeing": (5,)}, "disagree on 1 images, the first is"),
        ({"suspect": "labels seem to be off by one"}, "off by one"),
    ],
)
def test_contradictions_are_doubts(change: dict[str, object], words: str) -> None:
    (doubt,) = replace(GOOD, **change).doubts
    assert words in doubt
