"""k230_lib: the library below the Ansible collection ``k230.executorch``.

Rooms (arrows point only downwards; ``docs/architecture.md`` has the picture):
``cli`` and ``report`` on top, then ``evaluation``, ``profiling`` and ``inference``, then
``model``, ``dataset``, ``runner`` and ``board``. ``virtual`` stands apart.
Nothing here imports Ansible; only ``cli`` starts ansible-runner.
"""

from __future__ import annotations

__version__ = "0.1.0"
