"""What tasks on the controller tell when a value is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def test_value_out_of_range_is_told_in_one_plain_line(tmp_path: Path) -> None:
    made = {"digits": True, "name": "d", "model": "m", "out": str(tmp_path)}
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible"),
            *("localhost", "-i", "localhost,", "-c", "local"),
            *("-m", "k230.executorch.dataset_prepare"),
            *("-a", json.dumps({**made, "limit": 0})),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    result = json.loads(done.stdout.partition("FAILED! => ")[2])
    assert result["msg"].startswith("Invalid value for '--limit'")
    assert "\n" not in result["msg"]
