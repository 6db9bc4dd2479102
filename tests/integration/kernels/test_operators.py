"""Operators other than convolution against ATen, over drawn calls, and illegal calls of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from .operator_calls import INVALID_ARGUMENT, drawn, numbers, within

pytestmark = pytest.mark.slow


@st.composite
def elementwise(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes of the same rank that broadcast."""
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    other = [draw(st.sampled_from([size, size, 1])) for size in shape]
    return (shape, other) if draw(st.booleans()) else (other, shape)


def test_add_agrees_with_aten(calls: Any) -> None:
    import torch

    expected = []
    for key, (left, right) in enumerate(drawn(elementwise(), 120)):
        a, b = numbers(tuple(left), key), numbers(tuple(right), key + 7)
        alpha = [1, 1, -2, 0.5][key % 4]
        if key % 5 == 0:
            a.view(-1)[0] = float("nan")
        exact = torch.add(a.double(), b.double(), alpha=alpha)
        bound = (a.nan_to_num().abs() + abs(alpha) * b.abs()).double() * 4e-7
        calls.add("aten::add.out", a, b, alpha, out=torch.empty(exact.shape))
        expected.append((exact, bound))
    calls.add("aten::add.out", torch.ones(2, 3), torch.ones(2, 4), 1, out=torch.empty(2, 4))
    outcomes, log = calls.run()
    for outcome, (exact, bound) in zip(outcomes, expected, strict=False):
        assert (outcome.error, outcome.kernel) == (0, "keyed")
        within(outcome.value, exact, bound, "add")
    assert outcomes[-1].error == INVALID_ARGUMENT
    assert "do not broadcast" in log


def test_clamps_agree_with_aten(calls: Any) -> None:
    import torch

    nan = float("nan")
    bounds = [(0.0, 6.0), (-1, 1), (2.0, 1.0), (None, 0.25), (-0.5, None), (nan, 1.0)]
    shapes = drawn(st.lists(st.integers(1, 9), min_size=1, max_size=4), 60)
    expected = []
    for key, shape in enumerate(shapes):
        x = numbers(tuple(shape), key)
        x.view(-1)[key % x.numel()] = [nan, float("inf"), -0.0][key % 3]
        low, high = bounds[key % len(bounds)]
        calls.add("aten::clamp.out", x, low, high, out=torch.empty(x.shape))
        expected.append(torch.clamp(x, low, high))
        if low is not None and high is not None:
            calls.add("aten::hardtanh.out", x, low, high, out=torch.empty(x.shape))
            expected.append(torch.clamp(x, low, high))
    calls.add("aten::clamp.out", numbers((3,), 0), None, None, out=torch.empty(3))
    outcomes, log = calls.run()
    for outcome, exact in zip(outcomes, expected, strict=False):
        assert (outcome.error, outcome.kernel) == (0, "keyed")
        within(outcome.value, exact, torch.zeros(exact.shape), "clamp")
    assert outcomes[-1].error == INVALID_ARGUMENT
    assert "at least one bound" in log


@st.composite
def means(draw: st.DrawFn) -> tuple[list[int], list[int], bool]:
    """Shape, dimensions and keepdim of a mean."""
    shape = draw(st.lists(st.integers(1, 9), min_size=2, max_size=4))
    dims = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    dims = [d - len(shape) if draw(st.booleans()) else d for d in dims]
    keep = draw(st.booleans()) or len(dims) == len(shape)
    return shape, dims, keep


def test_mean_agrees_with_aten(calls: Any) -> None:
    import torch

    expected = []
    for key, (shape, dims, keep) in enumerate(drawn(means(), 150)):
        x = numbers(tuple(shape), key)
        exact = x.double().mean(dims, keepdim=keep)
        bound = x.double().abs().mean(dims, keepdim=keep) * (x.numel() + 2) * 2.4e-7
        calls.add("aten::mean.out", x, dims, keep, None, out=torch.empty(exact.shape))
        expected.append((exact, bound, (shape, dims, keep)))
    for dims in ([0, 0], [2], [-3]):
        calls.add("aten::mean.out", numbers((2, 2), 0), dims, True, None, out=torch.empty(2, 2))
    outcomes, log = calls.run()
    for outcome, (exact, bound, case) in zip(outcomes, expected, strict=False):
        assert (outcome.error, case) == (0, case)
        within(outcome.value, exact, bound, f"mean {case}")
    assert [outcome.error for outcome in outcomes[-3:]] == [INVALID_ARGUMENT] * 3
    assert log.count("out of range or named twice") == 3


@st.composite
def products(draw: st.DrawFn) -> tuple[int, int, int, str]:
    """m, k, n and the form of the addend."""
    return (
        draw(st.sampled_from([1, 1, 2, 5, 7])),
        draw(st.integers(1, 80)),
        draw(st.integers(1, 90)),
        draw(st.sampled_from(["row", "one", "column", "whole"])),
    )


def test_addmm_and_linear_agree_with_aten(calls: Any) -> None:
    import torch

    expected = []
    for key, (m, k, n, form) in enumerate(drawn(products(), 120)):
        a, b = numbers((m, k), key), numbers((k, n), key + 1)
        shape = {"row": (n,), "one": (1,), "column": (m, 1), "whole": (m, n)}[form]
        c = numbers(shape, key + 2)
        beta, alpha = [(1, 1), (0.5, 2.0), (0, 1), (-1, 0.25)][key % 4]
        exact = torch.addmm(c.double(), a.double(), b.double(), beta=beta, alpha=alpha)
        size = torch.addmm(c.abs(), a.abs(), b.abs(), beta=abs(beta), alpha=abs(alpha)).double()
        bound = size * 2 * (k + 3) * 1.2e-7
        calls.add("aten::addmm.out", c, a, b, beta, alpha, out=torch.empty(m, n))
        expected.append((exact, bound))
        w, bias = b.t().contiguous(), numbers((n,), key + 3) if form == "row" else None
        wide = [t if t is None else t.double() for t in (a, w, bias)]
        size = torch.nn.functional.linear(*(t if t is None else t.abs() for t in wide))
        calls.add("aten::linear.out", a, w, bias, out=torch.empty(m, n))
        expected.append((torch.nn.functional.linear(*wide), size * 2 * (k + 3) * 1.2e-7))
    calls.add(
        "aten::addmm.out", numbers((4,), 0), numbers((2, 3), 0), numbers((5, 4), 0), 1, 1,
        out=torch.empty(2, 4),
    )  # fmt: skip
    calls.add("aten::linear.out", numbers((2, 3), 0), numbers((4, 5), 0), None,
              out=torch.empty(2, 4))  # fmt: skip
    outcomes, log = calls.run()
    for outcome, (exact, bound) in zip(outcomes, expected, strict=False):
        assert (outcome.error, outcome.kernel) == (0, "keyed")
        within(outcome.value, exact, bound, "product")
    assert [outcome.error for outcome in outcomes[-2:]] == [INVALID_ARGUMENT] * 2
    assert "inner sizes 3 and 5 differ" in log
    assert "3 features, 5 expected" in log


def test_permute_copy_equals_aten(calls: Any) -> None:
    import torch

    expected = []
    shapes = drawn(st.lists(st.integers(1, 20), min_size=2, max_size=4), 60)
    for key, shape in enumerate(shapes):
        x = numbers(tuple(shape), key)
        order = torch.randperm(len(shape), generator=torch.Generator().manual_seed(key)).tolist()
        named = [d - len(shape) if key % 3 == 0 else d for d in order]
        exact = x.permute(order).contiguous()
        calls.add("aten::permute_copy.out", x, named, out=torch.empty(exact.shape))
        expected.append(exact)
    for dims in ([0, 0], [0], [0, 2]):
        calls.add("aten::permute_copy.out", numbers((2, 2), 0), dims, out=torch.empty(2, 2))
    outcomes, log = calls.run()
    for outcome, exact in zip(outcomes, expected, strict=False):
        assert (outcome.error, outcome.kernel) == (0, "keyed")
        assert np.array_equal(outcome.value, exact.numpy())
    assert [outcome.error for outcome in outcomes[-3:]] == [INVALID_ARGUMENT] * 3
    assert "2 dimensions must be named" in log
    assert log.count("out of range or named twice") == 2


BATCH_NORM = "aten::_native_batch_norm_legit_no_training.out"


def test_batch_norm_agrees_with_aten(calls: Any) -> None:
    import torch

    expected = []
    sizes = st.tuples(*(st.integers(1, high) for high in (2, 9, 12, 12)))
    for key, size in enumerate(drawn(sizes, 60)):
        x, channels = numbers(size, key), size[1]
        weight, bias, mean = (numbers((channels,), key + i) for i in (1, 2, 3))
        variance = numbers((channels,), key + 4).abs()
        wide = [t.double() for t in (weight, bias, mean, variance)]
        exact = torch.nn.functional.batch_norm(
            x.double(), wide[2], wide[3], wide[0], wide[1], eps=1e-5
        )
        scale = (wide[0].abs() / (wide[3] + 1e-5).sqrt()).view(-1, 1, 1)
        bound = (x.abs() + wide[2].abs().view(-1, 1, 1)) * scale + wide[1].abs().view(-1, 1, 1)
        empty = torch.empty(1)
        calls.add(
            BATCH_NORM, x, weight, bias, mean, variance, 0.1, 1e-5,
            out=torch.empty(size), more=[empty, empty],
        )  # fmt: skip
        expected.append((exact, bound * 1e-6))
    short = numbers((3,), 0)
    x = numbers((1, 4, 2, 2), 0)
    calls.add(BATCH_NORM, x, short, short, short, short, 0.1, 1e-5, out=x, more=[short, short])
    outcomes, log = calls.run()
    for outcome, (exact, bound) in zip(outcomes, expected, strict=False):
        assert (outcome.error, outcome.kernel) == (0, "keyed")
        within(outcome.value, exact, bound, "batch norm")
    assert outcomes[-1].error == INVALID_ARGUMENT
    assert "need 4 float32 values each" in log
