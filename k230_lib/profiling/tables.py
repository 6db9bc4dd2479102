"""The tables of one profile: per event, per operator type, per module.

All times are milliseconds per inference and say so in the column's name. Shares are of the sum of
the operators' medians: the median is steadier than the mean against a disturbed execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from .match import pick_node
from .samples import CALLS, FRAMEWORK_EVENTS, NATIVE_CALL, EventKey, Samples

if TYPE_CHECKING:
    from .etrecord import EtRecord
    from .graph import GraphNode

STATISTICS = ("min_ms", "median_ms", "p90_ms", "mean_ms", "max_ms")
MODEL_ITSELF = "(model)"
EVENT_COLUMNS = (
    "order",
    "instruction",
    "operator",
    "kernel",
    "instance",
    "kind",
    "detail",
    "module",
    "module_type",
    "node",
    "source",
    "code",
    "output_shape",
    "macs",
    "calls",
    *STATISTICS,
    "share",
    "cumulative_share",
    "gmac_per_s",
    "dispatch_ms",
)


@dataclass(frozen=True)
class OperatorEvent:
    """The events of one instruction: columns of the samples matrix.

    ``kernel`` is the kernel's own event; where a kernel makes none it is the call's. ``call`` is
    the framework's event around it, None when it was not traced.
    """

    instruction: int
    kernel: int
    call: int | None


def operator_events(samples: Samples) -> tuple[list[OperatorEvent], list[int]]:
    """Choose one event per instruction, so that no time is counted twice.

    Returns:
        the operators in execution order, and the columns of the events inside of them (of
        delegates, or of kernels that trace their own parts).
    """
    median = np.median(samples.ms, axis=0)
    by_instruction: dict[int, list[int]] = {}
    inner = []
    for column, key in enumerate(samples.keys):
        if key.instruction is None or key.name in FRAMEWORK_EVENTS:
            continue
        if key.delegate is not None:
            inner.append(column)
        else:
            by_instruction.setdefault(key.instruction, []).append(column)
    operators = []
    for instruction, columns in by_instruction.items():
        calls = [column for column in columns if samples.keys[column].name in CALLS]
        own = [column for column in columns if column not in calls]
        own.sort(key=lambda at: _outermost(samples.keys[at], float(median[at])), reverse=True)
        kernel = own[0] if own else calls[0]
        inner.extend(own[1:])
        operators.append(OperatorEvent(instruction, kernel, calls[0] if calls else None))
    return operators, inner


def event_table(
    samples: Samples, operators: list[OperatorEvent], record: EtRecord | None
) -> pd.DataFrame:
    """One row per operator of the model, slowest first; columns :data:`EVENT_COLUMNS`.

    ``order`` counts from 0 in execution order. Without an ETRecord the columns that describe the
    model are empty and ``operator`` is the kernel's name.
    """
    columns = np.array([operator.kernel for operator in operators], dtype=np.int64)
    rows = []
    counted: dict[str, int] = {}
    for order, operator in enumerate(operators):
        key = samples.keys[operator.kernel]
        kernel = key.name.removeprefix(NATIVE_CALL)
        nodes = record.nodes.get(operator.instruction, ()) if record else ()
        node = pick_node(nodes, key.name)
        name = node.operator if node else kernel
        counted[name] = counted.get(name, -1) + 1
        rows.append(
            {
                "order": order,
                "instruction": operator.instruction,
                "operator": name,
                "kernel": kernel,
                "instance": counted[name],
                **_described(node),
                "calls": int(samples.calls[operator.kernel]),
                "dispatch_ms": _dispatch(samples, operator),
            }
        )
    table = pd.DataFrame(rows)
    return with_samples(table, samples.ms[:, columns])


def with_samples(events: pd.DataFrame, ms: npt.NDArray[np.float64]) -> pd.DataFrame:
    """The same operators with the statistics of other executions, slowest first.

    Args:
        events: rows of operators with their ``order``.
        ms: times, shape [executions, operators], operators in execution order.
    """
    table = events.sort_values("order", ignore_index=True)
    for name, values in _statistics(ms).items():
        table[name] = values
    total = table["median_ms"].sum()
    table = table.sort_values("median_ms", ascending=False, kind="stable", ignore_index=True)
    table["share"] = table["median_ms"] / total if total > 0 else 0.0
    table["cumulative_share"] = table["share"].cumsum()
    table["gmac_per_s"] = _rate(table["macs"], table["median_ms"])
    return table[list(EVENT_COLUMNS)]


def grouped_table(events: pd.DataFrame, ms: npt.NDArray[np.float64], by: list[str]) -> pd.DataFrame:
    """Groups of events that agree in ``by``, slowest first.

    Statistics are of the group's sum in each execution, so they are true of the group; shares are
    sums of the events' shares. ``operators`` counts the events of a group.

    Args:
        events: the table of :func:`event_table`.
        ms: times, shape [executions, operators], operators in execution order.
        by: names of the columns that make a group.
    """
    rows = []
    for _, group in events.groupby(by, sort=False, dropna=False):
        sums = ms[:, group["order"].to_numpy()].sum(axis=1, keepdims=True)
        statistics = {name: float(value[0]) for name, value in _statistics(sums).items()}
        rows.append(
            {
                **{name: group[name].iloc[0] for name in by},
                "operators": len(group),
                "calls": int(group["calls"].sum()),
                **statistics,
                "share": float(group["share"].sum()),
                "cumulative_share": 0.0,
                "macs": int(group["macs"].sum()),
            }
        )
    table = pd.DataFrame(rows).sort_values("share", ascending=False, kind="stable")
    table = table.reset_index(drop=True)
    table["cumulative_share"] = table["share"].cumsum()
    table["gmac_per_s"] = _rate(table["macs"], table["median_ms"])
    return table


def module_table(events: pd.DataFrame, ms: npt.NDArray[np.float64], depth: int = 2) -> pd.DataFrame:
    """One row per module, cut to ``depth`` path parts: ``features.3`` rather than its layers.

    ``order`` is that of the module's first operator.
    """
    cut = events["module"].map(lambda path: ".".join(path.split(".")[:depth]) or MODEL_ITSELF)
    named = events.assign(module=cut)
    table = grouped_table(named, ms, ["module"])
    table.insert(1, "order", table["module"].map(named.groupby("module")["order"].min()))
    return table


def inner_table(samples: Samples, columns: list[int]) -> pd.DataFrame:
    """Events inside of operators; their time is part of the operator's and never added to it."""
    statistics = _statistics(samples.ms[:, np.array(columns, dtype=np.int64)])
    keys = [samples.keys[column] for column in columns]
    table = pd.DataFrame(
        {
            "instruction": [key.instruction for key in keys],
            "event": [key.name for key in keys],
            "delegate": [key.delegate or "" for key in keys],
        }
    )
    for name in STATISTICS:
        table[name] = statistics[name]
    return table


def _outermost(key: EventKey, median: float) -> tuple[bool, float]:
    return key.name.startswith(NATIVE_CALL), median


def _dispatch(samples: Samples, operator: OperatorEvent) -> float:
    """Median time that the framework's call takes beyond the kernel, ms."""
    if operator.call is None:
        return 0.0
    return float(np.median(samples.ms[:, operator.call] - samples.ms[:, operator.kernel]))


def _statistics(ms: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
    """Statistics over executions, axis 0, for each column."""
    median, p90 = np.percentile(ms, [50, 90], axis=0)
    values = (ms.min(axis=0), median, p90, ms.mean(axis=0), ms.max(axis=0))
    return dict(zip(STATISTICS, values, strict=True))


def _rate(macs: pd.Series[int], ms: pd.Series[float]) -> pd.Series[float]:
    """Multiply-accumulates per second in units of 1e9; NaN where there are none."""
    known = (macs > 0) & (ms > 0)
    return (macs / ms.where(known)) / 1e6


def _described(node: GraphNode | None) -> dict[str, object]:
    source = node.source if node else None
    return {
        "kind": node.kind if node else "",
        "detail": node.detail if node else "",
        "module": node.module if node else "",
        "module_type": node.module_type if node else "",
        "node": node.name if node else "",
        "source": str(source) if source else "",
        "code": source.text if source else "",
        "output_shape": "x".join(map(str, node.output_shape)) if node else "",
        "macs": node.macs if node else 0,
    }
