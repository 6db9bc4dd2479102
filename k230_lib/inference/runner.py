"""Where things lie on a board, and the command lines of ``k230_runner``. Pure."""

from __future__ import annotations

from dataclasses import dataclass

SHAREFS = "/sharefs"
ROOT = f"{SHAREFS}/k230"
BIN = f"{ROOT}/bin"
MODELS = f"{ROOT}/models"
SHARDS = f"{ROOT}/shards"
RESULTS = f"{ROOT}/results"

_NAME_LENGTH = 16


@dataclass(frozen=True)
class RunnerOptions:
    """What the runner does for each sample.

    Attributes:
        repeats: timed inferences per sample; the latency is their median.
        warmup: inferences before the first timed one.
        pace_ms: each sample takes at least so many milliseconds; boards of one run may differ in it
            (tests of the scheduling).
    """

    repeats: int = 1
    warmup: int = 0
    pace_ms: float = 0.0

    def key(self) -> dict[str, int]:
        """What figures depend on. The pace only makes a board slower than it is."""
        return {"repeats": int(self.repeats), "warmup": int(self.warmup)}


def short(sha256: str) -> str:
    """The part of a hash that names a file."""
    return sha256[:_NAME_LENGTH]


def model_path(sha256: str) -> str:
    """Where a model of this hash lies."""
    return f"{MODELS}/{short(sha256)}.pte"


def bin_path(sha256: str) -> str:
    """Where packed samples of this hash lie."""
    return f"{SHARDS}/{short(sha256)}.bin"


def list_path(sha256: str) -> str:
    """Where a list of this hash lies."""
    return f"{SHARDS}/{short(sha256)}.list"


def results_path(run_id: str, list_sha256: str) -> str:
    """Where the results of a list in a run lie: another run has other names."""
    return f"{RESULTS}/{run_id}-{short(list_sha256)}.res"


def batch_command(
    runner: str,
    *,
    model: str,
    inputs_list: str,
    results: str,
    run_id: str,
    options: RunnerOptions,
) -> str:
    """The line to type at msh; all paths as the RT-Smart core sees them."""
    words = [
        runner,
        f"--model_path={model}",
        f"--inputs_list={inputs_list}",
        f"--results_file={results}",
        f"--run_id={run_id}",
        "--resume",
    ]
    if options.repeats != 1:
        words.append(f"--num_executions={options.repeats}")
    if options.warmup:
        words.append(f"--warmup={options.warmup}")
    if options.pace_ms:
        words.append(f"--pace_ms={options.pace_ms:g}")
    return " ".join(words)


def single_command(runner: str, *, model: str, inputs: str, output: str, repeats: int) -> str:
    """The line for one image by upstream's ``executor_runner``: flags that all releases have.

    The output tensor comes to ``<output>-0.bin``.
    """
    return (
        f"{runner} --model_path={model} --inputs={inputs} --output_file={output} "
        f"--num_executions={repeats}"
    )
