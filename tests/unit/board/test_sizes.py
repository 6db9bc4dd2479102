"""Sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.board.sizes import human, parse_size
from k230_lib.errors import InputError

_ROOM = 62_000_003  # sectors, about 31 GB


@pytest.mark.parametrize(
    ("text", "sectors"),
    [
        ("8.5GB", 16_601_560),  # the last whole 4 KiB below 8.5e9 bytes
        ("7GiB", 7 * 2**21),
        ("512MiB", 2**20),
        ("512 MiB", 2**20),
        ("1000kB", 1952),
        ("1000KB", 1952),
        ("16777216s", 16_777_216),
        ("16777217s", 16_777_217),
        ("100%", _ROOM),
        ("100.0%", _ROOM),
        ("50%", 31_000_000),
    ],
)
def test_sizes(text: str, sectors: int) -> None:
    assert parse_size(text).sectors(_ROOM) == sectors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("8.5", "no unit"),
        ("8.5XB", "unit 'XB'"),
        ("8.5gb", "unit 'gb'"),
        ("-1GB", "not a positive number"),
        ("0GB", "zero"),
        ("0%", "zero"),
        ("101%", "more than there is"),
        ("1.5s", "whole number"),
        ("p4", "not a positive number"),
        ("", "not a positive number"),
        ("GB", "not a positive number"),
        ("1e9B", "not a positive number"),
        ("\u0661GB", "not a positive number"),
    ],
)
def test_what_is_no_size_is_told_with_examples(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        parse_size(text)
    assert "8.5GB" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.integers(1, 64 * 10**9), st.sampled_from(["B", "kB", "MiB", "GB"]))
def test_bytes_never_round_up(value: int, unit: str) -> None:
    factor = {"B": 1, "kB": 1000, "MiB": 2**20, "GB": 10**9}[unit]
    sectors = parse_size(f"{value}{unit}").sectors(_ROOM)
    assert 0 <= value * factor - sectors * 512 < 4096 + 512


def test_human() -> None:
    assert [human(n) for n in (0, 512, 268435456, 2**43)] == [
        "0 B",
        "512 B",
        "256.0 MiB",
        "8.0 TiB",
    ]
