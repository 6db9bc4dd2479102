# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_board
short_description: Wait until a board without Python is ready
version_added: 0.1.0
description:
  - Waits until the board's Linux answers over the connection and, unless told otherwise, until
    C(/sharefs) is mounted and the sharefs daemon runs.
  - Takes the place of M(ansible.builtin.wait_for_connection), which needs Python on the target.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  timeout:
    description: Seconds to wait in all.
    type: float
    default: 60.0
  interval:
    description: Seconds between two probes.
    type: float
    default: 1.0
  sharefs:
    description: Whether C(/sharefs) and its daemon must be there.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Wait for the board after a reboot
  k230.executorch.wait_for_board:
    timeout: 90
"""

RETURN = r"""
uptime_s:
  description: Seconds since the board's Linux started.
  returned: success
  type: float
sharefs_mounted:
  description: Whether something is mounted at C(/sharefs).
  returned: success
  type: bool
sharefs_daemon:
  description: Whether the sharefs daemon runs.
  returned: success
  type: bool
"""
