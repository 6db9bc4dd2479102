"""Loading and summarising a trace of 50 executions, against Inspector on the same files.

Run alone, it prints the figures: ``pytest -s tests/benchmarks/test_profiling_speed.py``. Only the
ratio of the two, taken in turn in one run, is judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROUNDS = 3
MEASURED = """
import json, resource, sys, time
folder = sys.argv[1]
begin = time.perf_counter()
{imports}
ready = time.perf_counter()
{work}
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
figures = dict(imports=ready - begin, work=done - ready, peak_mib=peak, rows=rows)
print(json.dumps(figures))
"""
INSPECTOR = MEASURED.format(
    imports="from executorch.devtools import Inspector",
    work=(
        "inspector = Inspector(etdump_path=folder + '/model.etdump', "
        "etrecord=folder + '/model.etrecord')\n"
        "table = inspector.to_dataframe()\n"
        "rows = int(table['event_name'].str.startswith('native_call_').sum())"
    ),
)
OURS = MEASURED.format(
    imports=(
        "from pathlib import Path\n"
        "from k230_lib.profiling.capture import Capture\n"
        "from k230_lib.profiling.profile import ModelFiles, load_profile"
    ),
    work=(
        "files = ModelFiles(Path(folder, 'model.etrecord'), Path(folder, 'model.pte'))\n"
        "profile = load_profile(Path(folder, 'model.etdump'), Capture('x', 'b'), files)\n"
        "rows = len(profile.events)"
    ),
)


def measure(program: str, folder: Path) -> dict[str, float]:
    """Figures of one run in a process of its own: seconds, MiB, rows."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mobilenet")
    script = Path(__file__).with_name("make_mobilenet_trace.py")
    subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(folder)], check=True, capture_output=True
    )
    return folder


def test_a_trace_of_50_executions_is_summarised_in_under_twice_inspectors_time(
    trace: Path,
) -> None:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(measure(INSPECTOR, trace))
        ours.append(measure(OURS, trace))
    assert ours[0]["rows"] == theirs[0]["rows"] > 100
    best = {
        name: (min(run[name] for run in ours), min(run[name] for run in theirs))
        for name in ("imports", "work", "peak_mib")
    }
    for name, (mine, other) in best.items():
        print(f"{name:9} ours {mine:8.3f}, Inspector {other:8.3f}: {mine / other:.2f} of it")
    assert best["work"][0] < 2 * best["work"][1]
    assert best["peak_mib"][0] < 2 * best["peak_mib"][1]
