# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: dataset_sync
short_description: Put shards of a dataset on a board
version_added: 0.1.0
description:
  - Copies shards to C(/sharefs) ahead of a run, verified and resumable. Batch inference brings
    shards itself as it needs them; this is for boards that will work with a slow link.
  - Shards that do not fit into the free space are left out and counted; it is an error only when
    not even one fits.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  dataset:
    description: Dataset folder on the controller, with C(dataset.json).
    type: path
    required: true
  shards:
    description: Names of the shards; all when empty.
    type: list
    elements: str
    default: []
  reserve:
    description: Bytes that stay free on the board.
    type: int
    default: 33554432
"""

EXAMPLES = r"""
- name: Put the first shards on the board
  k230.executorch.dataset_sync:
    dataset: artifacts/datasets/imagenet-val
    shards: [shard-00000, shard-00001]
"""

RETURN = r"""
shards:
  description: Shards that are (or would be) on the board.
  returned: success
  type: list
  elements: str
left_out:
  description: Shards for which there is no space.
  returned: success
  type: list
  elements: str
bytes_sent:
  description: Bytes that went over the connection.
  returned: success, not in check mode
  type: int
seconds:
  description: Time it took, with looking what is there and the checks on the board.
  returned: success, not in check mode
  type: float
"""
