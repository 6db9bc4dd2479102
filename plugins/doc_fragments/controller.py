# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Documentation that all modules share whose work is done on the controller."""

from __future__ import annotations

#: Also true of board modules; fragments cannot extend each other, so they join the text.
ATTRIBUTES = r"""
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


class ModuleDocFragment:
    """Attributes of modules that are action plugins over the ``k230`` command."""

    DOCUMENTATION = (
        ATTRIBUTES
        + r"""
notes:
  - The work is done by an action plugin of the same name on the controller.
"""
    )
