# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: board_access
short_description: Have keys, password, name, clock and MAC address of a board as wanted
version_added: 0.1.0
description:
  - Looks in one round trip and changes only what differs.
  - A password is hashed on the controller; the hash goes over standard input. Neither appears in
    arguments of programs, results or logs.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
attributes:
  diff_mode:
    details: Shows every script, as it would be run, without secrets.
    support: full
options:
  authorized_keys:
    description: Public keys that may log in as root, one line each. Others are kept.
    type: list
    elements: str
    default: []
  root_password:
    description: Password of root. Left as it is (empty on the stock image) when not given.
    type: str
  hostname:
    description: Host name. All stock images have the same.
    type: str
  set_clock:
    description: Whether the clock is set. The board has none with a battery.
    type: bool
    default: true
  max_clock_skew:
    description: Seconds by which the clock may be off.
    type: float
    default: 2.0
  mac:
    description:
      - MAC address for C(ethaddr=) in the C(bootargs) of U-Boot's environment, like
        C(02:00:00:aa:bb:01). Without it the board makes one at every boot. The exact value is shown
        before it is written; it takes effect with the next boot.
      - Refused when the environment was never saved, or when C(/etc/fw_env.config) names another
        place than U-Boot's environment on the disk that the board booted from.
    type: str
  validate_only:
    description: Only check the arguments; the board is not asked.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Let a key log in and call the board by its inventory name
  k230.executorch.board_access:
    authorized_keys:
      - "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
    hostname: "{{ inventory_hostname }}"
"""

RETURN = r"""
steps:
  description: What was run, or in check mode would be run - C(name), C(does) and C(script).
  returned: success
  type: list
  elements: dict
clock_skew_s:
  description: Seconds by which the board's clock was ahead of the controller's.
  returned: when the board was asked
  type: float
reboot_required:
  description: Whether something takes effect with the next boot only.
  returned: when the board was asked
  type: bool
"""
