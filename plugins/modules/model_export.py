# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: model_export
short_description: Export a model to ExecuTorch on the controller
version_added: 0.1.0
description:
  - Exports a classification model by torch.export to an ExecuTorch program for portable kernels,
    with its ETRecord and its input contract (C(model.json)).
  - The program is run on the host runtime and compared with the original before it is written.
  - Nothing is done when model, weights, passes and package versions are those of the last export.
  - Runs as a process of its own on the controller; torch is never imported by Ansible.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.controller
options:
  model:
    description:
      - V(digits), the demo model, which is trained on scikit-learn's handwritten digits.
      - The name of a torchvision classification model, a C(module:function) that returns a
        ModelBundle, or a name from the entry point group C(k230.models).
    type: str
    required: true
  weights:
    description:
      - A C(.pth) file with a state dict, the name of a member of torchvision's weights enum, or
        C(random:SEED) for a model that is only timed.
    type: str
  transforms:
    description: Name of the weights whose preprocessing a C(.pth) file was trained for.
    type: str
  out:
    description: Folder of all models; the model gets a folder of its name in it.
    type: path
    default: artifacts/models
  name:
    description: Name of the model's folder; the model's own name when not given.
    type: str
  fold_batch_norm:
    description: Fold batch norm into the convolution before it.
    type: bool
    default: true
  constants:
    description: Compute at export what depends on weights only.
    type: bool
    default: true
  fuse_clamp:
    description: Fuse convolution and clamp; needs a runner with this project's kernels.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Export the demo model
  k230.executorch.model_export:
    model: digits

- name: Export MobileNetV2 with weights from a file
  k230.executorch.model_export:
    model: mobilenet_v2
    weights: /data/mobilenet_v2.pth
    out: /data/models
"""

RETURN = r"""
folder:
  description: The model's folder.
  returned: success
  type: str
name:
  description: The model's name.
  returned: success
  type: str
pte:
  description: The program - C(file), C(sha256) and C(bytes).
  returned: success, not in check mode
  type: dict
operators:
  description: Operators that the runner must have.
  returned: success, not in check mode
  type: list
  elements: str
planned_buffers:
  description: Bytes of each planned buffer.
  returned: success, not in check mode
  type: list
  elements: int
seconds:
  description: Wall time by step; empty when nothing was to be done.
  returned: success, not in check mode
  type: dict
"""
