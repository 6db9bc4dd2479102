# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: batch_inference
short_description: Let a board compute its share of a run
version_added: 0.1.0
description:
  - Works on the common queue of a run until nothing is left for this board. Samples are sent to
    C(/sharefs) in pieces, computed by C(k230_runner) on the RT-Smart core, verified and committed.
  - A sample with known logits is computed first, when the controller's are given; a board that
    computes something else is stopped.
  - Interrupted at any moment, the same task goes on where it stopped.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  model:
    description: Model folder on the controller, with C(model.json).
    type: path
    required: true
  dataset:
    description: Dataset folder on the controller, with C(dataset.json).
    type: path
    required: true
  runner:
    description: Path of the runner on the board.
    type: str
    required: true
  runner_sha256:
    description: Hash of the runner; part of what identifies a run.
    type: str
    required: true
  variant:
    description: Variant of the runner, for the report.
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
  upstream:
    description:
      - The runner is upstream's C(executor_runner) of any release from 1.2. Every image is then a
        process of its own, which loads the model anew.
    type: bool
    default: false
  runs:
    description: Folder of all runs on the controller.
    type: path
    default: runs
  run_id:
    description: Name of the run; derived from model, dataset, runner and settings when not given.
    type: str
  host_logits:
    description: NPZ file of the controller's logits, from M(k230.executorch.model_reference).
    type: path
  repeats:
    description: Timed inferences per sample; the latency is their median.
    type: int
    default: 1
  warmup:
    description: Inferences before the first timed one of each piece of work.
    type: int
    default: 0
  pace_ms:
    description: Each sample takes at least so many milliseconds; for tests of the scheduling.
    type: float
    default: 0.0
  chunk:
    description: Most samples handed to a board at a time.
    type: int
    default: 64
  cross_check:
    description: Share of the samples that a second board computes as well.
    type: float
    default: 0.02
  tolerance:
    description: Largest relative difference of logits between boards, or board and controller.
    type: float
    default: 0.0001
  origin:
    description: What the figures are. Virtual boards are V(measured_here).
    type: str
    choices: [measured_here, measured_on_board]
    default: measured_on_board
  sample_timeout:
    description: Seconds without progress after which the program counts as hung.
    type: float
    default: 300.0
  reboot_timeout:
    description: Seconds a board may take to restart.
    type: float
    default: 120.0
  power_command:
    description: Command on the controller that cuts and restores the power; C({board}) is its name.
    type: str
"""

EXAMPLES = r"""
- name: Compute
  k230.executorch.batch_inference:
    model: artifacts/models/mobilenet_v2
    dataset: artifacts/datasets/imagenet-val
    runner: /sharefs/k230/bin/k230_runner-portable-0123456789ab
    runner_sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    console: /dev/serial/by-id/usb-1a86_USB_Dual_Serial_0001-if02
"""

RETURN = r"""
run_id:
  description: Name of the run.
  returned: success
  type: str
run_folder:
  description: Folder of the run.
  returned: success, not in check mode
  type: str
computed:
  description: Samples that got their result on this board.
  returned: success, not in check mode
  type: int
left:
  description: Samples of the whole run without an outcome.
  returned: success
  type: int
rate:
  description: Samples per second while computing.
  returned: success, not in check mode
  type: float
"""
