"""Every operator against ATen, over calls drawn at random, and its answer to illegal calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    import torch

INVALID_ARGUMENT = 0x12
CASES = 300

pytestmark = pytest.mark.slow


def drawn(strategy: st.SearchStrategy[Any], count: int = CASES) -> list[Any]:
    """Values that hypothesis draws, with a fixed seed: one program run then makes all calls."""
    values: list[Any] = []

    @seed(5)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: Any) -> None:
        values.append(value)

    draw()
    return values


def numbers(shape: tuple[int, ...], key: int) -> torch.Tensor:
    """Random float32 values."""
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(key))


def within(found: Any, exact: torch.Tensor, bound: torch.Tensor, what: str) -> None:
    """Asserts |found - exact| <= bound, NaN where exact is NaN."""
    assert tuple(found.shape) == tuple(exact.shape), what
    want, allowed = exact.numpy(), bound.numpy()
    assert np.array_equal(np.isnan(found), np.isnan(want)), f"{what}: NaN in other places"
    with np.errstate(invalid="ignore"):  # inf - inf where both are infinite
        wrong = ~np.isnan(want) & (found != want) & ~(np.abs(found - want) <= allowed)
    assert not wrong.any(), f"{what}: {found[wrong][:3]} instead of {want[wrong][:3]}"


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
    for key, case in enumerate(drawn(convolutions())):
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
