"""Virtual boards run a riscv64 runner through QEMU, where an ExecuTorch for riscv64 is at hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.board, pytest.mark.slow]

PREFIX = os.environ.get("K230_EXECUTORCH_PREFIX", "")


@pytest.mark.skipif(
    not PREFIX, reason="K230_EXECUTORCH_PREFIX names no riscv64 ExecuTorch; see docs/runner.md"
)
def test_vector_kernels_on_two_boards_agree_with_the_host(
    evaluate: Callable[..., subprocess.CompletedProcess[str]], runs: Path
) -> None:
    done = evaluate(
        k230_target="riscv64-linux",
        runner_prefix=PREFIX,
        runner_variant="rvv",
        dataset_limit=20,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (document,) = runs.glob("*/run.json")
    figures = json.loads(document.read_text())["figures"]
    assert figures["done"] == figures["total"] == figures["host"]["count"] == 20
    assert figures["host"]["top1_equal"] == 20
    # Other kernels than the host's: the same classes, but not the same bits.
    assert 0 < figures["host"]["max_rel"] < 1e-4
