# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Documentation that all board modules share."""

from __future__ import annotations

from ansible_collections.k230.executorch.plugins.doc_fragments.controller import ATTRIBUTES


class ModuleDocFragment:
    """Attributes of modules that are action plugins over a board's connection."""

    DOCUMENTATION = (
        ATTRIBUTES
        + r"""
notes:
  - The work is done by an action plugin of the same name on the controller. The board needs no
    Python, only the tools of the stock K230 SDK image.
"""
    )
