# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: filesystem
short_description: Have a file system on a board's data partition, without losing files
version_added: 0.1.0
description:
  - What is on the partition is told by the magic numbers in its first sectors. A blank one gets a
    file system; one that is there is kept, and grown to the partition's size where it is ext and
    the board has e2fsprogs. FAT cannot grow.
  - With O(replace) another kind is replaced. Its files are listed with checksums while it is
    read-only, copied to the controller, put back into a staging directory, verified after mounting
    anew and moved to their places.
  - What no signature explains is left alone, unless O(replace) is true and O(preserve) false.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.storage
  - k230.executorch.board
  - k230.executorch.storage.table
  - k230.executorch.storage.filesystem
options:
  size:
    description:
      - In check mode only, the size that C(partition_resize) would have given to the partition,
        in the same words as there.
    type: str
"""

EXAMPLES = r"""
- name: Have an ext4 with all the files that were on the FAT
  k230.executorch.filesystem:
    replace: true
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
  description: Why it was kept, grown, made or replaced.
  returned: success
  type: str
"""
