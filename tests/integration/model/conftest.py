from __future__ import annotations

from k230_lib.model.quiet import quiet_torch

# before a test module imports torch: the policy for waiting threads is read then
quiet_torch()
