"""A real MobileNetV2 on real pictures, where the sample set is at hand.

The set is not part of the project (its pictures may not be passed on): K230_IMAGENET_SAMPLE names
its folder, or it lies in shared/data beside the checkout. K230_IMAGENET_ALL=1 takes all pictures.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.board, pytest.mark.slow]

REPOSITORY = Path(__file__).resolve().parents[3]
SAMPLE = Path(
    os.environ.get("K230_IMAGENET_SAMPLE")
    or REPOSITORY.parent / "shared" / "data" / "imagenet-sample"
)
ALL = os.environ.get("K230_IMAGENET_ALL") == "1"
FEW = 20
CLEAR_MARGIN = 0.01


@pytest.mark.skipif(
    not (SAMPLE / "expected.json").is_file(),
    reason=f"no sample set at {SAMPLE}; set K230_IMAGENET_SAMPLE to run this",
)
def test_two_boards_classify_as_pytorch_does(
    evaluate: Callable[..., subprocess.CompletedProcess[str]], runs: Path
) -> None:
    extra = {} if ALL else {"dataset_limit": FEW, "dataset_name": f"imagenet-{FEW}"}
    done = evaluate(
        model_name="mobilenet_v2",
        model_weights=str(SAMPLE / "weights" / "mobilenet_v2_real.pth"),
        dataset_images=str(SAMPLE / "images"),
        dataset_mapping=str(SAMPLE / "mapping" / "LOC_synset_mapping.txt"),
        inference_reference="1",
        **extra,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = runs.glob("*/predictions.csv")
    with table.open(newline="") as stream:
        rows = {row["path"]: row for row in csv.DictReader(stream)}
    expected = {
        Path(entry["file"]).relative_to("images").as_posix(): entry
        for entry in json.loads((SAMPLE / "expected.json").read_text())["files"]
    }
    assert len(rows) == (len(expected) if ALL else FEW)
    for path, row in rows.items():
        wanted = expected[path]
        assert int(row["label"]) == wanted["label"], path
        found = [int(index) for index in row["top5"].split()]
        if wanted["margin_1_2"] >= CLEAR_MARGIN:
            assert found[0] == wanted["top5"][0], path
        if wanted["margin_5_6"] >= CLEAR_MARGIN:
            assert set(found) == set(wanted["top5"]), path
    if ALL:
        assert sum(int(row["top1_correct"]) for row in rows.values()) == 69
        assert sum(int(row["top5_correct"]) for row in rows.values()) == 93
