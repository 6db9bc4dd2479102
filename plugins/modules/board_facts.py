# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: board_facts
short_description: Gather facts of a board without Python
version_added: 0.1.0
description:
  - Gathers in one round trip what the other modules and roles decide on - SDK release, kernel,
    memory, network, tools, the disk that the board booted from (found by C(root=), never assumed),
    the state of both copies of its partition table, the data partition, the file system on it, and
    what is mounted at C(/sharefs) and by whom it is held.
  - Changes nothing.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.board
options:
  partition:
    description: Number of the data partition.
    type: int
    default: 4
  mountpoint:
    description: Where the data partition is mounted.
    type: str
    default: /sharefs
"""

EXAMPLES = r"""
- name: Gather facts
  k230.executorch.board_facts:

- name: Show what is on the data partition
  ansible.builtin.debug:
    var: k230.filesystem
"""

RETURN = r"""
ansible_facts:
  description: Facts of the board.
  returned: success
  type: dict
  contains:
    k230:
      description: All facts below one name.
      type: dict
      contains:
        sdk_release:
          description: Release of the SDK's image, empty when the image does not tell.
          type: str
        kernel:
          description: Release of the Linux kernel.
          type: str
        machine:
          description: Machine name of the kernel, C(riscv64) on a board.
          type: str
        hostname:
          description: Host name.
          type: str
        model:
          description: Board model of the device tree, empty when there is none.
          type: str
        image:
          description:
            - C(linux+rtsmart) for the SDK's image with both systems, C(linux-only) for an image
              without the RT-Smart half, C(unknown) otherwise.
          type: str
        memory_kib:
          description: Memory that Linux sees.
          type: int
        memory_free_kib:
          description: Memory that Linux can still give.
          type: int
        boot_id:
          description: Changes with every boot.
          type: str
        uptime_s:
          description: Seconds since Linux started.
          type: float
        clock_skew_s:
          description: Seconds by which the board's clock is ahead of the controller's.
          type: float
        macs:
          description: MAC address by interface.
          type: dict
        addresses:
          description: First IPv4 address by interface.
          type: dict
        tools:
          description: Version line by tool; only tools that are there are listed.
          type: dict
        free_kib:
          description: Free space by mount point.
          type: dict
        daemon:
          description: The sharefs daemon - C(pid), C(program) and the text of C(/proc/ipcm).
          type: dict
        disk:
          description:
            - The disk the board booted from - C(device), C(sectors), C(card_id), the kernel's
              C(partitions) and the partition table (C(gpt)); none when C(root=) names none.
          type: dict
        data_partition:
          description: The data partition as the kernel has it, in sectors of 512 bytes.
          type: dict
        filesystem:
          description: What the data partition holds - C(kind), C(label), C(uuid), C(bytes).
          type: dict
        sharefs:
          description:
            - What is mounted at the mount point - C(device), C(fstype), C(options), C(free_bytes),
              C(size_bytes), the C(holders) that keep it busy, the C(boot_mount) lines.
          type: dict
"""
