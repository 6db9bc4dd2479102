# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: put
short_description: Copy a file to a board without Python
version_added: 0.1.0
description:
  - Has a file of the controller, or a text, on the board. The file is sent to C(DEST.part) through
    the connection itself (no scp, sftp or rsync is needed), verified by SHA-256 there and moved.
  - An interrupted transfer is resumed, a file that is there already is not sent.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  src:
    description: File on the controller. Either this or O(content).
    type: path
  content:
    description: The text to be written. Either this or O(src).
    type: str
  dest:
    description: Absolute path on the board.
    type: str
    required: true
  mode:
    description: Octal permission bits, as a string. Has no effect on FAT.
    type: str
  sha256:
    description: What the file must be; computed when not given.
    type: str
"""

EXAMPLES = r"""
- name: Put a model on the board
  k230.executorch.put:
    src: artifacts/models/mobilenet_v2/model.pte
    dest: /sharefs/mv2.pte
"""

RETURN = r"""
dest:
  description: Path on the board.
  returned: success
  type: str
bytes_sent:
  description: Bytes that went over the connection.
  returned: success, not in check mode
  type: int
"""
