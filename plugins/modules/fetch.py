# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: fetch
short_description: Copy a file from a board without Python
version_added: 0.1.0
description:
  - Has a file of the board on the controller, verified by SHA-256.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  src:
    description: Absolute path on the board.
    type: str
    required: true
  dest:
    description: File on the controller. Folders are made.
    type: path
    required: true
  sha256:
    description: What the file must be; the board's own hash when not given.
    type: str
"""

EXAMPLES = r"""
- name: Bring an ETDump home
  k230.executorch.fetch:
    src: /sharefs/model.etdump
    dest: results/{{ inventory_hostname }}.etdump
"""

RETURN = r"""
dest:
  description: Path on the controller.
  returned: success
  type: str
sha256:
  description: Hash of the file.
  returned: success
  type: str
size:
  description: Bytes of the file.
  returned: success, not in check mode
  type: int
"""
