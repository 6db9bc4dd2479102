# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: runner_deploy
short_description: Check a runner and put it on a board
version_added: 0.1.0
description:
  - Checks that the program is of the right kind for the target (ELF class, machine, static, entry
    point, vector extension) and has all operators of the model, then copies it under a name that
    carries variant and content, verified by SHA-256 on the board.
  - Keeps O(keep) earlier runners and removes other leftovers.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  src:
    description: The runner on the controller.
    type: path
    required: true
  folder:
    description: Folder of runners on the board.
    type: str
    default: /sharefs/k230/bin
  target:
    description: What the runner must be built for. V(host) is for virtual boards.
    type: str
    default: k230-rtsmart
    choices: [host, riscv64-linux, k230-rtsmart]
  variant:
    description:
      - Variant the runner must be, by its own manifest. V(prebuilt) takes a program without one,
        such as ExecuTorch's C(executor_runner), when it has the flags of one.
    type: str
    default: portable
  model:
    description: The C(model.json) of what will run; its operators must be in the runner.
    type: path
  keep:
    description: How many earlier runners stay on the board.
    type: int
    default: 2
"""

EXAMPLES = r"""
- name: Deploy the portable runner
  k230.executorch.runner_deploy:
    src: artifacts/runners/portable-host/k230_runner
    target: host
"""

RETURN = r"""
path:
  description: Path of the runner on the board.
  returned: success
  type: str
sha256:
  description: Hash of the runner.
  returned: success
  type: str
upstream:
  description: Whether it is an C(executor_runner), which computes one image per process.
  returned: success
  type: bool
removed:
  description: Earlier runners that were (or would be) removed.
  returned: success
  type: list
  elements: str
bytes_sent:
  description: Bytes that went over the connection.
  returned: success, not in check mode
  type: int
load_ms:
  description: Estimated time that RT-Smart needs to load the program, with its origin.
  returned: success
  type: dict
"""
