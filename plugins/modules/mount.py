# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: mount
short_description: Have a board's data partition mounted
version_added: 0.1.0
description:
  - Mounts the data partition read-write at its mount point, as the board's C(rcS) does it, without
    a type. One that is read-only is unmounted, checked and mounted again.
  - Starts the sharefs daemon when it does not run; nothing else on the board would do that.
  - Something else that is mounted there is left alone and named.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.storage
  - k230.executorch.board
options:
  state:
    description: What is wanted.
    type: str
    choices: [mounted, unmounted]
    default: mounted
  daemon:
    description: Whether the sharefs daemon is started when it does not run.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Mount the data partition
  k230.executorch.mount:
"""

RETURN = r"""
steps:
  description:
    - What was run, or in check mode would be run - C(name), C(does) and C(script), which is exactly
      what the board's shell gets.
  returned: success
  type: list
  elements: dict
mount:
  description:
    - What is mounted at the mount point in the end - C(device), C(dev) (major:minor), C(fstype) and
      C(options); none when nothing is. In check mode what is mounted now.
  returned: success
  type: dict
persistent:
  description: Whether a boot script or fstab mounts the partition there; it is not changed.
  returned: success
  type: bool
boot_mount:
  description: The lines of boot scripts and fstab that name the mount point.
  returned: success
  type: list
  elements: str
"""
