# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Documentation that all board modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of modules that are action plugins over a board's connection."""

    DOCUMENTATION = r"""
options: {}
notes:
  - The work is done by an action plugin of the same name on the controller. The board needs no
    Python, only the tools of the stock K230 SDK image.
attributes:
  action:
    description: Indicates this has a corresponding action plugin.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: none
  check_mode:
    description: Can run in check mode and return the changed status prediction.
    support: full
  diff_mode:
    description: Will return details on what has changed when in diff mode.
    support: none
"""
