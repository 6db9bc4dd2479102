"""Load torch and the runtime quietly: no lines that mean nothing to the user, no busy waiting."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_MEANINGLESS = (b"[cpuinfo_utils.cpp:",)


def quiet_torch() -> None:
    """Import torch without its notes about its own deprecations, and without spinning threads.

    OpenMP's threads wait for each other in busy loops: with other work on the cores, training was
    seen to take ten times as long. The policy counts only if set before torch is loaded.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch  # noqa: F401

    logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)


@contextmanager
def without_cpu_notes() -> Iterator[None]:
    """Hold standard error back, then pass on all but the notes of the runtime's CPU detection.

    The runtime writes them from C++, once in a process, when it first counts the cores.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            for line in held:
                if not line.startswith(_MEANINGLESS):
                    os.write(2, line)
