# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: runner_build
short_description: Build the program that runs models on the board
version_added: 0.1.0
description:
  - Builds C(k230_runner) in one of its variants on the controller, with CMake, against an installed
    ExecuTorch - the C++ SDK of the pip package, or a prefix that was installed for the target.
  - Runs the compiler only when sources, variant, settings or versions differ from the last build,
    and proves afterwards that the operators which the variant promises are served by its kernels.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.controller
options:
  variant:
    description: Name of a variant in C(kernels/variants.yml).
    type: str
    default: portable
  target:
    description: What the runner is for.
    type: str
    choices: [host, riscv64-linux, k230-rtsmart]
    default: host
  tracer:
    description: Whether the runner can write ETDump files for profiling.
    type: bool
    default: true
  output:
    description:
      - Folder of all runners on the controller; each gets a folder named after variant and target.
    type: path
    default: artifacts/runners
  source:
    description: The folder C(kernels/); by default the collection's own.
    type: path
  prefix:
    description:
      - ExecuTorch installed for the target by its own build. Without it the pip package is used,
        which serves O(target=host) only.
    type: path
  defines:
    description: Further CMake cache entries, such as the paths of the SDK.
    type: dict
    default: {}
  variants:
    description: File that describes the variants; by default C(variants.yml) in O(source).
    type: path
  models:
    description:
      - Files C(model.json) of models. Only their operators are linked in, which makes the program
        several times smaller; without any, all are. It has an effect with O(prefix) only, since the
        pip package's kernels are one library.
    type: list
    elements: path
    default: []
"""

EXAMPLES = r"""
- name: Build the runner for virtual boards
  k230.executorch.runner_build:
    variant: portable
  delegate_to: localhost
  run_once: true

- name: Build the runner with our kernels for the RT-Smart core
  k230.executorch.runner_build:
    variant: rvv
    target: k230-rtsmart
    prefix: /opt/executorch-k230
    defines:
      K230_SDK: /opt/k230_sdk
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
path:
  description: The runner.
  returned: success, not in check mode
  type: str
manifest_path:
  description: The JSON beside it.
  returned: success, not in check mode
  type: str
manifest:
  description: What it was built from, its size, its sha256 and its registered operators.
  returned: success, not in check mode
  type: dict
built:
  description: Whether the compiler ran.
  returned: success, not in check mode
  type: bool
"""
