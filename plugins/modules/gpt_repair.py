# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: gpt_repair
short_description: Make a board's partition table whole
version_added: 0.1.0
description:
  - Reads both copies of the partition table and judges them by their checksums and by where the
    backup lies. After an image was written to a larger card the backup is in the middle of it; it
    is written to the end, then the primary is pointed to it. Both are read back.
  - Works without parted. Only the sectors of the two headers and of the backup's entries are
    written; with O(repair_primary) also the primary's entries.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.storage
  - k230.executorch.board
  - k230.executorch.storage.table
"""

EXAMPLES = r"""
- name: Move the backup table to the end of the card
  k230.executorch.gpt_repair:
"""

RETURN = r"""
steps:
  description:
    - What was run, or in check mode would be run - C(name), C(does) and C(script), which is exactly
      what the board's shell gets.
  returned: success
  type: list
  elements: dict
msg:
  description: What was found.
  returned: success
  type: str
"""
