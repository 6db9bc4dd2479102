# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: partition_resize
short_description: Grow a board's data partition
version_added: 0.1.0
description:
  - Moves the end of the data partition, which must be the one that is expected, with parted, and
    checks that the table and the kernel agree afterwards.
  - Sizes are compared in sectors, so that a second run changes nothing however the size is written.
    What does not fit on the card, or is less than there is, is refused before anything is written.
  - The partition is unmounted for it and mounted again as it was. Who keeps it busy is named.
  - In check mode a table that C(gpt_repair) would make whole is taken as whole.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.storage
  - k230.executorch.board
  - k230.executorch.storage.table
  - k230.executorch.storage.size
"""

EXAMPLES = r"""
- name: Use the whole card
  k230.executorch.partition_resize:
    size: 100%
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
  description: What was done.
  returned: success
  type: str
reboot_required:
  description:
    - Whether the table has the new size and the kernel does not. The task fails then, so that
      nothing works on a partition whose size is not known.
  returned: always
  type: bool
"""
