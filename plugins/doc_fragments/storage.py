# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Options that the storage modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """The data partition, and what every storage module does and never does."""

    DOCUMENTATION = r"""
options:
  partition:
    description: Number of the data partition.
    type: int
    default: 4
  mountpoint:
    description: Where the data partition is mounted.
    type: str
    default: /sharefs
  starts:
    description:
      - Sectors that the data partition may start with; anything else is refused. The default are
        the starts in SDK images of release 1.9 and of releases before. Empty for any.
    type: list
    elements: int
    default: [524288, 425984]
  stop_users:
    description:
      - Whether the sharefs daemon may be stopped (and started again afterwards) when RT-Smart
        programs hold files on the partition through it. Other processes are never stopped, they
        are named.
    type: bool
    default: false
attributes:
  diff_mode:
    details: Shows the state before and after, and every script, as it would be run.
    support: full
notes:
  - Scripts that write hold a lock on the board and refuse to run when the board was restarted or
    the partition changed since it was looked at.
  - The disk is the one that C(root=) of the kernel command line names. A label is never made,
    partitions are never made, removed, moved, renumbered or made smaller.
"""

    FILESYSTEM = r"""
options:
  fstype:
    description:
      - The file system. C(auto) takes any ext file system for right and makes ext4 where the board
        has e2fsprogs (SDK 1.9 and later), else ext2.
    type: str
    choices: [auto, ext4, ext2, vfat]
    default: auto
  label:
    description: Label of a file system that is made; 1 to 11 letters, digits, C(_) or C(-).
    type: str
    default: K230_APP
  replace:
    description: Whether a file system of another kind may be replaced.
    type: bool
    default: false
  preserve:
    description:
      - Whether the files of a replaced file system are copied to the controller first, verified,
        put back and verified again. Owners and times are not kept.
    type: bool
    default: true
  backup_dir:
    description:
      - Folder on the controller for the journal and the saved files, by board. A run that dies
        leaves them, the next one goes on from them; they are removed when all is back.
    type: path
    default: .k230/storage
"""

    TABLE = r"""
options:
  repair_primary:
    description:
      - Whether a damaged primary table is made anew from a good backup. Otherwise it is reported.
    type: bool
    default: false
"""

    SIZE = r"""
options:
  size:
    description:
      - Size of the partition, not the place of its end. C(8.5GB) and C(7GiB) are bytes,
        C(16777216s) sectors, C(100%) all the room up to the last usable sector.
    type: str
    required: true
"""
