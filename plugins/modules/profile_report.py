# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: profile_report
short_description: Make tables and reports from traces
version_added: 0.1.0
description:
  - Joins the traces of M(k230.executorch.profile) with the model's ETRecord and writes tables (CSV
    and Parquet), a workbook, a trace for Perfetto, plots and a one-file HTML page.
  - Compares variants operator by operator with a baseline, and fails on limits.
  - Runs as a process of its own on the controller.
author:
  - The k230.executorch developers (@k230)
extends_documentation_fragment:
  - k230.executorch.controller
options:
  run:
    description: Folder of traces, the C(run_folder) of M(k230.executorch.profile).
    type: path
    required: true
  model:
    description: Folder of the model that ran. Without it module paths and source lines are missing.
    type: path
  variants:
    description: Variants to show; all by default.
    type: list
    elements: str
    default: []
  baseline:
    description: Variant to compare with; the first by name when not given.
    type: str
  out:
    description: Folder for the outputs; C(report) in the run's folder when not given.
    type: path
  fail_slower:
    description: Fail when a variant is slower than the baseline by more than this, percent.
    type: float
  fail_operator_slower:
    description: The same for each operator type that takes over one percent of the time.
    type: float
"""

EXAMPLES = r"""
- name: Did the vector kernels help?
  k230.executorch.profile_report:
    run: "{{ traced.run_folder }}"
    model: artifacts/models/mobilenet_v2
    baseline: portable
    fail_slower: 5
"""

RETURN = r"""
page:
  description: The HTML page.
  returned: success
  type: str
lines:
  description: Totals, top operators, speed-up and what to do next, for the terminal.
  returned: success, not in check mode
  type: list
  elements: str
profiles:
  description: Figures per variant.
  returned: success, not in check mode
  type: list
  elements: dict
comparison:
  description: Speed-ups against the baseline; none with one variant.
  returned: success, not in check mode
  type: dict
"""
