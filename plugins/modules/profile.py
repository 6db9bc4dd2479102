# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: profile
short_description: Trace a model on a board and bring the trace home
version_added: 0.1.0
description:
  - Runs the model with event tracing at msh, after some inferences for warm-up, and fetches the
    ETDump, verified by its SHA-256.
  - Writes C(model.etdump) and C(capture.json) (what was traced, with the runner's own times) into
    C(<runs>/profile-<model>-<hash>/<variant>/<board>/), beside C(console.log) and C(runner.log).
  - Nothing is done when the same trace is there already.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  model:
    description: Folder of the model, with C(model.json).
    type: path
    required: true
  runner:
    description: Path of the runner on the board; it must be built with the event tracer.
    type: str
    required: true
  runner_sha256:
    description: Hash of the runner, as M(k230.executorch.runner_deploy) returns it.
    type: str
    default: ''
  variant:
    description: Name of the runner's kernels, as reports show it.
    type: str
    default: portable
  console:
    description: Device path or pyserial URL of the board's RT-Smart console.
    type: str
    required: true
  baudrate:
    description: Speed of a serial console.
    type: int
    default: 115200
  executions:
    description: How many inferences are traced.
    type: int
    default: 10
  warmup:
    description: Inferences before the traced ones.
    type: int
    default: 1
  input:
    description: File with the bytes of one input, float32. Without it the input is all ones.
    type: path
  upstream:
    description:
      - The runner is ExecuTorch's own C(executor_runner), which has no warm-up; so these
        inferences are traced as well and left out later.
    type: bool
    default: false
  tick_hz:
    description: Ticks per second of the clock that the trace is in, 1e9 for nanoseconds.
    type: float
    default: 1.0e+9
  origin:
    description: What the figures are.
    type: str
    default: measured_on_board
    choices: [measured_here, modelled, measured_on_board]
  runs:
    description: Folder of all runs on the controller.
    type: path
    default: runs
  timeout:
    description: Seconds for loading the model, and for each inference.
    type: float
    default: 300.0
  force:
    description: Trace again when the same trace is there.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Trace twenty inferences with the vector kernels
  k230.executorch.profile:
    model: artifacts/models/mobilenet_v2
    runner: "{{ runner_path }}"
    runner_sha256: "{{ runner_sha256 }}"
    variant: rvv
    console: /dev/serial/by-id/usb-board1-if01
    executions: 20
"""

RETURN = r"""
run_folder:
  description: Folder of all traces of this model; C(k230 profile report) takes it.
  returned: success
  type: str
folder:
  description: Folder of this board's trace.
  returned: success
  type: str
etdump:
  description: The trace.
  returned: success, not in check mode
  type: str
etdump_sha256:
  description: Hash of the trace.
  returned: success, not in check mode
  type: str
executions:
  description: How many inferences it holds, warm-up not counted.
  returned: success, not in check mode
  type: int
wall_ms:
  description: Time of each inference by the runner's clock; empty when a line of it was lost.
  returned: success, not in check mode
  type: list
  elements: float
origin:
  description: What the figures are.
  returned: success, not in check mode
  type: str
"""
