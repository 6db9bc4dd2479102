from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.dataset.preprocess import Dtype
from k230_lib.dataset.shards import build_list, format_list, parse_list, read_samples
from k230_lib.errors import DatasetError

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_the_text_is_that_of_the_format() -> None:
    inputs = build_list(
        7,
        [0x8D1F9A20, 0x3AC44E1],
        bin_file="shard-00000.bin",
        dtype="float32",
        nbytes=49152,
        mean=MEAN,
        std=STD,
    )
    assert format_list(inputs) == (
        "#k230-inputs 1 dtype=float32 nbytes=49152\n"
        "7 shard-00000.bin 0 8d1f9a20\n"
        "8 shard-00000.bin 49152 03ac44e1\n"
    )


def test_uint8_lists_carry_mean_and_std() -> None:
    inputs = build_list(0, [1], bin_file="s.bin", dtype="uint8", nbytes=3, mean=MEAN, std=STD)
    head = format_list(inputs).splitlines()[0]
    assert head == (
        "#k230-inputs 1 dtype=uint8 nbytes=3 mean=0.485,0.456,0.406 std=0.229,0.224,0.225"
    )


@given(
    dtype=st.sampled_from(["uint8", "float32"]),
    numbers=st.tuples(st.integers(0, 10**9), st.integers(1, 10**7)),
    crcs=st.lists(st.integers(0, 2**32 - 1), max_size=5),
    scale=st.lists(st.tuples(st.floats(0, 1), st.floats(0.001, 1)), min_size=3, max_size=3),
)
def test_what_is_written_is_read_again(
    dtype: Dtype, numbers: tuple[int, int], crcs: list[int], scale: list[tuple[float, float]]
) -> None:
    mean, std = zip(*scale, strict=True)
    inputs = build_list(
        numbers[0], crcs, bin_file="a.bin", dtype=dtype, nbytes=numbers[1], mean=mean, std=std
    )
    assert parse_list(format_list(inputs)) == inputs


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#k230-inputs 2 dtype=uint8 nbytes=3\n",
        "#k230-inputs 1 nbytes=3\n",
        "#k230-inputs 1 dtype=int8 nbytes=3\n",
        "#k230-inputs 1 dtype=uint8 nbytes=3\n0 a.bin 0\n",
        "#k230-inputs 1 dtype=uint8 nbytes=3\n0 a.bin zero 00000000\n",
    ],
)
def test_a_damaged_list_is_refused(text: str) -> None:
    with pytest.raises(DatasetError):
        parse_list(text)


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    samples = [b"abc", b"def"]
    (tmp_path / "s.bin").write_bytes(b"".join(samples))
    inputs = build_list(
        5,
        [zlib.crc32(sample) for sample in samples],
        bin_file="s.bin",
        dtype="uint8",
        nbytes=3,
        mean=MEAN,
        std=STD,
    )
    (tmp_path / "s.list").write_text(format_list(inputs))
    return tmp_path / "s.list"


def test_samples_are_read_with_their_ids(shard: Path) -> None:
    assert [(index, data.tobytes()) for index, data in read_samples(shard)] == [
        (5, b"abc"),
        (6, b"def"),
    ]


@pytest.mark.parametrize("damage", [b"abcdeX", b"abcde", b""])
def test_damaged_bytes_are_never_used(shard: Path, damage: bytes) -> None:
    shard.with_suffix(".bin").write_bytes(damage)
    with pytest.raises(DatasetError, match=r"differs from its checksum|is missing"):
        list(read_samples(shard))


def test_a_missing_bin_is_named(shard: Path) -> None:
    shard.with_suffix(".bin").unlink()
    with pytest.raises(DatasetError, match=r"s\.bin is missing"):
        list(read_samples(shard))
