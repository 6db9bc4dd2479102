# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: model_reference
short_description: Run a dataset on the controller's ExecuTorch runtime
version_added: 0.1.0
description:
  - Computes the logits of a model for a prepared dataset with the controller's own ExecuTorch
    runtime, and keeps them by content. Boards are compared with them, and a sample with known
    logits is computed first on each board.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.controller
options:
  model:
    description: Model folder, with C(model.json).
    type: path
    required: true
  dataset:
    description: Dataset folder, with C(dataset.json).
    type: path
    required: true
  cache:
    description: Folder where logits are kept by the hashes of model and sample.
    type: path
    default: artifacts/host
  first:
    description: Only so many samples; all when not given.
    type: int
  dest:
    description: File for the logits (NPZ with C(indices) and C(logits)).
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Compute the reference of the first hundred samples
  k230.executorch.model_reference:
    model: artifacts/models/mobilenet_v2
    dataset: artifacts/datasets/imagenet-val
    first: 100
    dest: artifacts/host/mobilenet_v2.npz
"""

RETURN = r"""
computed:
  description: Samples computed now; the others were known.
  returned: success
  type: int
top1:
  description: Top-1 accuracy of the reference.
  returned: success, not in check mode
  type: float
file:
  description: The file with the logits.
  returned: success
  type: str
"""
