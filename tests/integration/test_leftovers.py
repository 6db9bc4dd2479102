"""Nothing is left running or mounted after tests, however they end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.board

REPOSITORY = Path(__file__).resolve().parents[2]
NUMBER = 118
_SCRIPT = f"""
import time
from k230_lib.virtual.testing import virtual_board
with virtual_board({NUMBER}):
    print("up", flush=True)
    if {{fails}}:
        raise RuntimeError("a failing test")
    time.sleep(60)
"""


def traces() -> list[str]:
    """What a board of this number would leave: network link, processes, loop devices, mounts."""
    found = [
        link.name for link in Path("/sys/class/net").iterdir() if link.name.endswith(str(NUMBER))
    ]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            root = str((entry / "root").readlink())
        except OSError:
            continue  # it has ended meanwhile, or is a kernel thread
        if f"vb{NUMBER}" in words or f"vb{NUMBER}" in root:
            found.append(words.strip())
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if f"vb{NUMBER}" in backing.read_text():
                found.append(str(backing))
        except OSError:
            continue
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return found + [line for line in mounts if f"vb{NUMBER}" in line]


def settle() -> list[str]:
    """The traces, once the kernel has had the time to take namespaces down."""
    deadline = time.monotonic() + 10
    while (left := traces()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@pytest.mark.parametrize("ending", ["failure", "SIGINT", "SIGTERM", "SIGKILL"])
def test_a_test_leaves_nothing_however_it_ends(ending: str) -> None:
    assert traces() == []
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT.format(fails=ending == "failure")],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    if ending != "failure":
        assert traces() != [], "the test looks for the wrong things"
        process.send_signal(getattr(signal, ending))
    assert process.wait(timeout=30) != 0
    assert settle() == []
