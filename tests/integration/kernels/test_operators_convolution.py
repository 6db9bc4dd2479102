"""Convolution against ATen, over calls drawn at random, and its answer to illegal calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from .operator_calls import INVALID_ARGUMENT, drawn, numbers, within

CASES = 300

pytestmark = pytest.mark.slow


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    """A legal call of aten::convolution, with one or two spatial dimensions."""
    spatial = draw(st.sampled_from([1, 2, 2, 2]))
    groups = draw(st.integers(1, 4))
    transposed = draw(st.sampled_from([False, False, False, True]))
    per_group_in, per_group_out = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    kernel = [draw(st.integers(1, 4)) for _ in range(spatial)]
    stride = [draw(st.integers(1, 3)) for _ in range(spatial)]
    padding = [draw(st.integers(0, 3)) for _ in range(spatial)]
    dilation = [draw(st.integers(1, 2)) for _ in range(spatial)]
    size = []
    for i in range(spatial):
        span = dilation[i] * (kernel[i] - 1) + 1
        # for a transposed one: large enough that something is left after the padding
        least = 1 + 2 * padding[i] if transposed else max(1, span - 2 * padding[i])
        size.append(draw(st.integers(least, least + 20)))
    if draw(st.booleans()) and spatial == 2:  # the shapes with kernels of their own
        kernel = [draw(st.sampled_from([1, 3]))] * 2
        padding = [kernel[0] // 2] * 2
        stride = [draw(st.integers(1, 2))] * 2
        dilation = [1, 1]
        size = [max(s, 2 * padding[0] + 1) for s in size]
        if kernel[0] == 3 and not transposed:
            per_group_in = per_group_out = 1
    extra = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
    return {
        "input": (draw(st.integers(1, 2)), groups * per_group_in, *size),
        "weight": (
            (groups * per_group_in, per_group_out, *kernel)
            if transposed
            else (groups * per_group_out, per_group_in, *kernel)
        ),
        "bias": groups * per_group_out if draw(st.booleans()) else None,
        "rest": [
            stride, padding, dilation, transposed, extra if transposed else [0] * spatial, groups
        ],
        "channels_last": spatial == 2 and draw(st.sampled_from([False, False, True])),
        "clamp": draw(st.sampled_from([None, (0.0, 6.0), (-0.5, 0.5), (0.0, float("inf"))])),
        "special": draw(st.sampled_from([None, None, None, float("nan"), float("inf"), -0.0])),
    }  # fmt: skip


def test_convolution_agrees_with_aten(calls: Any) -> None:
    import torch

    expected = []
    for key, case in enumerate(drawn(convolutions(), CASES)):
        x, w = numbers(case["input"], key), numbers(case["weight"], key + 1)
        bias = numbers((case["bias"],), key + 2) if case["bias"] else None
        if case["special"] is not None:
            x.view(-1)[key % x.numel()] = case["special"]
        wide = [None if t is None else t.double() for t in (x, w, bias)]
        exact = torch.ops.aten.convolution(*wide, *case["rest"])
        clean = [None if t is None else t.nan_to_num(0, 0, 0).abs() for t in wide]
        bound = torch.ops.aten.convolution(*clean, *case["rest"])
        terms = w[0].numel() * w.shape[0] if case["rest"][3] else w[0].numel()
        bound = bound * (2 * (terms + 2) * np.finfo(np.float32).eps) + 1e-37
        if case["clamp"]:
            exact = exact.clamp(*case["clamp"])
        out = torch.empty(exact.shape)
        if case["channels_last"]:
            x, out = (t.to(memory_format=torch.channels_last) for t in (x, out))
        if case["clamp"]:
            calls.add("k230::conv2d_clamp.out", x, w, bias, *case["rest"], *case["clamp"], out=out)
        else:
            calls.add("aten::convolution.out", x, w, bias, *case["rest"], out=out)
        expected.append((case, exact, bound, out.dim_order()))
    outcomes, log = calls.run()
    assert len(outcomes) == len(expected)
    ours = 0
    for outcome, (case, exact, bound, order) in zip(outcomes, expected, strict=True):
        assert outcome.error == 0, f"{case}: error {outcome.error}\n{log[-500:]}"
        ours += outcome.kernel == "keyed" or case["clamp"] is not None
        value = in_order(outcome.value, exact.shape, order)
        within(value, exact, bound, str(case))
    assert ours > CASES // 2


def in_order(value: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
    """The values as a logical array, from the order they have in memory."""
    memory = value.reshape([shape[d] for d in order])
    return memory.transpose(np.argsort(order))


def test_convolution_without_temporary_memory(calls: Any) -> None:
    import torch

    x, w = numbers((1, 3, 20, 20), 0), numbers((8, 3, 3, 3), 1)
    exact = torch.nn.functional.conv2d(x.double(), w.double(), None, 2, 1)
    calls.temp(0)
    calls.add(
        "aten::convolution.out", x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1,
        out=torch.empty(exact.shape),
    )  # fmt: skip
    (outcome,), _ = calls.run()
    assert outcome.error == 0
    within(outcome.value, exact, torch.full(exact.shape, 1e-4), "no panel")


def test_empty_batch(calls: Any) -> None:
    import torch

    x, w = torch.empty(0, 3, 8, 8), numbers((4, 3, 1, 1), 0)
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    calls.add("aten::convolution.out", x, w, None, *rest, out=torch.empty(0, 4, 8, 8))
    (outcome,), _ = calls.run()
    assert outcome.error == 0
    assert outcome.value.shape == (0, 4, 8, 8)


@st.composite
def illegal_convolutions(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """A legal call with one thing made wrong, and the word that must be in the log."""
    shapes: dict[str, Any] = {"x": (1, 4, 9, 9), "w": (6, 4, 3, 3), "b": (6,), "out": (1, 6, 9, 9)}
    rest: list[Any] = [[1, 1], [1, 1], [1, 1], False, [0, 0], 1]
    types = {"x": "float32", "w": "float32", "b": "float32"}
    wrong = draw(
        st.sampled_from(
            ["stride", "padding", "dilation", "groups", "multiple", "channels", "bias", "rank",
             "larger", "float32", "output padding"]
        )
    )  # fmt: skip
    if wrong == "stride":
        rest[0] = draw(st.sampled_from([[0, 1], [-1, 1], [1, 1, 1]]))
    elif wrong == "padding":
        rest[1] = draw(st.sampled_from([[-1, 0], [1, 1, 1]]))
    elif wrong == "dilation":
        rest[2] = [0, 1]
    elif wrong == "groups":
        rest[5] = draw(st.sampled_from([0, -2]))
    elif wrong == "multiple":
        rest[5] = 3
    elif wrong == "channels":
        shapes["w"] = (6, 3, 3, 3)
    elif wrong == "bias":
        shapes["b"] = draw(st.sampled_from([(5,), (1,)]))
    elif wrong == "rank":
        shapes["w"] = (6, 4, 9)
    elif wrong == "larger":
        shapes["w"], rest[1] = (6, 4, 12, 3), [0, 0]
    elif wrong == "float32":
        types[draw(st.sampled_from(["x", "w", "b"]))] = "float64"
    else:
        rest[3], rest[4], shapes["w"] = True, [1, 0], (4, 6, 3, 3)
    return wrong, [shapes, types, rest]


def test_illegal_convolution_is_refused_with_the_reason(calls: Any) -> None:
    import torch

    words = []
    for word, (shapes, types, rest) in drawn(illegal_convolutions(), 60):
        x, w, b = (
            torch.ones(shapes[name], dtype=getattr(torch, types[name])) for name in ("x", "w", "b")
        )
        # through the operator that is only ours: a fallback would word it otherwise
        calls.add("k230::conv2d_clamp.out", x, w, b, *rest, 0.0, 6.0, out=torch.ones(shapes["out"]))
        words.append(word)
    outcomes, log = calls.run()
    assert [outcome.error for outcome in outcomes] == [INVALID_ARGUMENT] * len(words)
    reasons = [line for line in log.splitlines() if "k230: conv2d_clamp: " in line]
    assert len(reasons) == len(words)
    for word, reason in zip(words, reasons, strict=True):
        assert word in reason


def test_output_too_small_is_refused(calls: Any) -> None:
    import torch

    x, w = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 1, 1)
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    calls.add("aten::convolution.out", x, w, None, *rest, out=torch.empty(1, 4, 7, 8))
    (outcome,), log = calls.run()
    assert (outcome.error, outcome.kernel) == (INVALID_ARGUMENT, "keyed")
    assert "cannot hold the result" in log
