# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: run_report
short_description: Sum up a run
version_added: 0.1.0
description:
  - Computes accuracy, speed and agreement of a run from its database, writes C(run.json),
    C(predictions.csv) and C(summary.md) into its folder and shows the summary.
  - Fails when a sample has no result, and names what is missing.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.controller
options:
  run:
    description: Folder of the run.
    type: path
    required: true
  allow_missing:
    description: Whether samples without a result are acceptable.
    type: bool
    default: false
  allow_doubts:
    description:
      - Whether figures are acceptable when boards disagree with each other or with the controller,
        or when the labels seem to be off by one.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Sum up
  k230.executorch.run_report:
    run: runs/4f2a90b1c3d4
"""

RETURN = r"""
run_id:
  description: Name of the run.
  returned: success
  type: str
summary:
  description: The figures as Markdown.
  returned: success
  type: str
figures:
  description: The figures, as in C(run.json).
  returned: success
  type: dict
"""
