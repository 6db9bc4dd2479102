# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: dataset_prepare
short_description: Turn labelled images into packed tensors on the controller
version_added: 0.1.0
description:
  - Decodes, resizes and crops images exactly as the model's contract says and packs them into
    checksummed shards with a manifest.
  - Labels are joined by synset id or file name, never by position.
  - Files that cannot be used are listed in C(skipped.jsonl), and fail the task above a limit.
  - An interrupted task continues where it was; shards made before from the same files in the same
    way are used again, also for another model.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.controller
options:
  images:
    description: Folder of the images.
    type: path
  digits:
    description:
      - Use the held-out part of scikit-learn's handwritten digits, written as image files to
        C(images/digits) beside O(out).
    type: bool
    default: false
  model:
    description: Folder with C(model.json), the input contract.
    type: path
    required: true
  name:
    description: Name of the dataset's folder.
    type: str
    required: true
  out:
    description: Folder of all datasets.
    type: path
    default: artifacts/datasets
  mapping:
    description:
      - Synset mapping, a wnid and a name on each line; the line number is the class index.
        C(LOC_synset_mapping.txt) in or beside the image folder is found by itself.
    type: path
  labels:
    description: C(LOC_val_solution.csv), C(val_map.txt), or a CSV, TSV or JSONL list.
    type: path
  layout:
    description:
      - V(folders) by wnid, V(kaggle) ILSVRC, V(flat) with C(val_map.txt), V(list), or V(numeric)
        folders; V(auto) looks which it is.
    type: str
    choices: [auto, folders, kaggle, flat, list, numeric]
    default: auto
  label_base:
    description: Number of the first class where labels are numbers; never guessed.
    type: int
  dtype:
    description: V(uint8) is normalised on the board and a quarter of the bytes.
    type: str
    choices: [uint8, float32]
    default: uint8
  limit:
    description: Only so many images, each class in proportion.
    type: int
  seed:
    description: Which images a limit chooses.
    type: int
    default: 0
  shard_size:
    description: Samples in a shard.
    type: int
    default: 64
  max_skipped:
    description: Number of unusable files that is put up with.
    type: int
    default: 0
  workers:
    description: Number of processes; as many as cores when not given.
    type: int
"""

EXAMPLES = r"""
- name: Prepare the pictures of the demo
  k230.executorch.dataset_prepare:
    digits: true
    model: artifacts/models/digits
    name: digits

- name: Prepare 1000 pictures of ImageNet's validation set
  k230.executorch.dataset_prepare:
    images: /data/imagenet
    layout: kaggle
    model: artifacts/models/mobilenet_v2
    name: imagenet-1000
    limit: 1000
"""

RETURN = r"""
folder:
  description: The dataset's folder.
  returned: success
  type: str
images:
  description: Number of usable images.
  returned: success
  type: int
shards:
  description: Number of shards.
  returned: success, not in check mode
  type: int
reused_shards:
  description: Number of shards that were made before.
  returned: success, not in check mode
  type: int
skipped:
  description: Number of files that could not be used.
  returned: success, not in check mode
  type: int
classes:
  description: Number of different labels.
  returned: success, not in check mode
  type: int
odd:
  description: Number of unusual but usable files by kind.
  returned: success, not in check mode
  type: dict
labels:
  description: Where the labels come from.
  returned: success, not in check mode
  type: dict
"""
