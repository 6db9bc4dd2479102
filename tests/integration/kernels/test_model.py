"""MobileNetV2's real program on the runner with our kernels, against eager torch.

With the private sample pictures and their trained weights where they are at hand, else with random
weights and pictures. On this machine against the wheel; for riscv64, under qemu, where
K230_EXECUTORCH_PREFIX names an ExecuTorch that was installed for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from k230_lib.dataset.preprocess import sample_bytes
from k230_lib.dataset.shards import build_list, format_list
from k230_lib.inference.results import read_results
from k230_lib.model.contract import Preprocessing
from k230_lib.model.export import Passes, export, plan
from k230_lib.model.zoo import ModelRequest, build
from k230_lib.profiling.etdump import read_etdump

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PICTURES = 100
BATCH = 10
LOGIT_ERROR = 1e-3
CONVOLUTIONS, CLAMPED = 52, 35
Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Network:
    """Exported programs by name, inputs [N, 3, 224, 224] and what eager torch makes of them."""

    programs: dict[str, Path]
    inputs: Array
    logits: Array


def sample_folder() -> Path | None:
    """The private sample, if it is here."""
    default = ROOT.parent / "shared" / "data" / "imagenet-sample"
    folder = Path(os.environ.get("K230_IMAGENET_SAMPLE", default))
    return folder if (folder / "expected.json").is_file() else None


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """Exported without fusion, with the fused clamp, and without any change to the graph."""
    import torch

    folder = tmp_path_factory.mktemp("models")
    sample = sample_folder()
    weights = str(sample / "weights" / "mobilenet_v2_real.pth") if sample else "random:0"
    request = ModelRequest("mobilenet_v2", weights)
    forms = {
        "plain": Passes(),
        "fused": Passes(fuse_clamp=True),
        "unchanged": Passes(fold_batch_norm=False, constants=False),
    }
    programs = {
        name: export(plan(request, folder, name, passes)).folder / "model.pte"
        for name, passes in forms.items()
    }
    bundle = build(request, folder / "cache", lambda text: None)
    inputs = pictures(sample, bundle.preprocessing)
    with torch.no_grad():
        batches = torch.from_numpy(inputs).split(BATCH)
        logits = torch.cat([bundle.module(batch) for batch in batches]).numpy()
    return Network(programs, inputs, logits)


def pictures(sample: Path | None, preprocessing: Preprocessing) -> Array:
    """Inputs, normalised."""
    if sample is None:
        return np.random.default_rng(0).normal(size=(BATCH, 3, 224, 224)).astype(np.float32)
    files = sorted((sample / "images").glob("*/*"))
    tensors = [sample_bytes(f.read_bytes(), preprocessing, "float32") for f in files[:PICTURES]]
    return np.stack([np.frombuffer(t, "<f4").reshape(3, 224, 224) for t in tensors])


def infer(command: Sequence[str | Path], program: Path, inputs: Array, folder: Path) -> Array:
    """The runner's logits for the inputs, all in one start."""
    samples = [x.tobytes() for x in inputs]
    (folder / "shard.bin").write_bytes(b"".join(samples))
    listed = build_list(
        0, [zlib.crc32(s) for s in samples], bin_file="shard.bin", dtype="float32",
        nbytes=len(samples[0]), mean=(), std=(),
    )  # fmt: skip
    (folder / "shard.list").write_text(format_list(listed))
    results = folder / "results.bin"
    done = subprocess.run(
        [*command, "--model_path", program, "--inputs_list", folder / "shard.list",
         "--results_file", results, "--run_id", "test"],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    records = read_results(results).by_sample()
    return np.stack([records[i].logits for i in range(len(inputs))])


def same_answers(found: Array, eager: Array) -> None:
    """Top-5 in eager's order except where eager itself hardly distinguishes, logits close."""
    assert float(np.abs(found - eager).max() / np.abs(eager).max()) <= LOGIT_ERROR
    for ours, theirs in zip(found, eager, strict=True):
        mine, top = (np.argsort(-v, kind="stable")[:5] for v in (ours, theirs))
        gaps = np.abs(theirs[mine] - theirs[top])
        assert np.array_equal(mine, top) or gaps.max() < 1e-3 * np.abs(theirs).max()


@pytest.mark.parametrize("form", ["plain", "fused", "unchanged"])
def test_top5_and_logits_equal_eager(
    network: Network, wheel_build: Path, tmp_path: Path, form: str
) -> None:
    runner = wheel_build / "runner" / "k230_runner"
    found = infer([runner], network.programs[form], network.inputs, tmp_path)
    same_answers(found, network.logits)


@pytest.mark.parametrize("form", ["plain", "fused", "unchanged"])
def test_all_heavy_operators_run_on_our_kernels(
    network: Network, wheel_build: Path, tmp_path: Path, form: str
) -> None:
    trace = tmp_path / "trace.etdump"
    inputs = tmp_path / "input.bin"
    inputs.write_bytes(network.inputs[0].tobytes())
    subprocess.run(
        [wheel_build / "runner" / "k230_runner", "--model_path", network.programs[form],
         "--inputs", inputs, "--etdump_path", trace, "--print_output", "none"],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    dump = read_etdump(trace)
    names = Counter(dump.texts[i] for run in dump.runs for i in run.name if i >= 0)
    theirs = {n: c for n, c in names.items() if n.startswith("native_call_")}
    assert theirs == {}
    fused = CLAMPED if form == "fused" else 0
    assert names["k230::convolution.out"] == CONVOLUTIONS - fused
    assert names["k230::conv2d_clamp.out"] == fused
    assert names["k230::hardtanh.out"] == CLAMPED - fused
    assert (names["k230::add.out"], names["k230::mean.out"], names["k230::addmm.out"]) == (10, 1, 1)
    unfolded = CONVOLUTIONS if form == "unchanged" else 0
    assert names["k230::_native_batch_norm_legit_no_training.out"] == unfolded
    assert names["k230::permute_copy.out"] == int(form == "unchanged")


@pytest.mark.parametrize("vlen", [128, 256])
@pytest.mark.parametrize("form", ["plain", "fused"])
def test_riscv64_equals_eager(
    network: Network, prefix_build: Path, tmp_path: Path, form: str, vlen: int
) -> None:
    emulator = ["qemu-riscv64", "-cpu", f"rv64,v=true,vlen={vlen},elen=64,vext_spec=v1.0"]
    runner = prefix_build / "runner" / "k230_runner"
    found = infer([*emulator, runner], network.programs[form], network.inputs[:2], tmp_path)
    same_answers(found, network.logits[:2])


def test_riscv64_binds_convolution_to_ours(prefix_build: Path) -> None:
    emulator = ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,elen=64,vext_spec=v1.0"]
    registry = prefix_build / "tests" / "k230_registry_test"
    done = subprocess.run([*emulator, registry], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok: aten::convolution.out with bias is bound to ours" in done.stdout


def test_riscv64_whole_program_retires_few_instructions(
    network: Network, prefix_build: Path, tmp_path: Path
) -> None:
    """The difference between two inferences and one: what one costs, without the start."""
    inputs = tmp_path / "input.bin"
    inputs.write_bytes(network.inputs[0].tobytes())
    bench = ROOT / "kernels" / "bench" / "k230_bench.py"
    counts = []
    for executions in (1, 2):
        done = subprocess.run(
            [sys.executable, bench, "--count", prefix_build / "runner" / "k230_runner",
             "--model_path", network.programs["fused"], "--inputs", inputs,
             "--print_output", "none", "--num_executions", str(executions)],
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        counts.append(int(done.stdout.split()[-1]))
    assert 40e6 < counts[1] - counts[0] <= 130e6
