# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: storage_plan
short_description: Say what provisioning would do to a board's storage
version_added: 0.1.0
description:
  - Plans what C(gpt_repair), C(partition_resize), C(filesystem) and C(mount) would do with these
    arguments, each on what the one before would leave. Fails with whatever speaks against one of
    them, so that nothing is written to a board on which a later task would have to give up.
  - Changes nothing; one round trip.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.storage
  - k230.executorch.board
  - k230.executorch.storage.table
  - k230.executorch.storage.size
  - k230.executorch.storage.filesystem
"""

EXAMPLES = r"""
- name: Say what would be done
  k230.executorch.storage_plan:
    size: 100%
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
  description: What would happen to the file system and why.
  returned: success
  type: str
"""
