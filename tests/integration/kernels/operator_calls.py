"""What tests of operators share: calls drawn at random, and results judged against exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    import torch

INVALID_ARGUMENT = 0x12
"""ExecuTorch's error for a call that the operator refuses."""


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
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
    assert found.shape == exact.shape, f"{what}: {found.shape} instead of {exact.shape}"
    want, allowed = exact.numpy(), bound.numpy()
    assert np.array_equal(np.isnan(found), np.isnan(want)), f"{what}: NaN in other places"
    with np.errstate(invalid="ignore"):  # inf - inf where both are infinite
        wrong = ~np.isnan(want) & (found != want) & ~(np.abs(found - want) <= allowed)
    assert not wrong.any(), f"{what}: {found[wrong][:3]} instead of {want[wrong][:3]}"
