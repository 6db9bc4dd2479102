from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.inference.frames import FRAME_MAX, Frame, FrameReader, format_frame, parse_frame

RUN = "4f2a90b1c3d4"
BEGIN = Frame("begin", RUN, {"total": "64", "resumed": "0"})
ITEM = Frame("item", RUN, {"seq": "0", "id": "17", "status": "0", "ms": "12.345"})
END = Frame("end", RUN, {"ok": "64", "failed": "0", "records": "64", "load_ms": "3.201"})
FAIL = Frame("fail", "-", {"code": "model", "reason": "cannot read m.pte: [gone] (2)"})
YELLOW = "\x1b[33m<s_fs#dfs_sharefs_open-312#>:open /sharefs//x failed\x1b[0m"
KERNEL = "[E/LWP] lwp 3 says something unasked"


@pytest.mark.parametrize("frame", [BEGIN, ITEM, END, FAIL])
def test_every_kind_is_read_back(frame: Frame) -> None:
    line = format_frame(frame)
    assert parse_frame(line) == frame
    assert FrameReader().feed(f"{line}\r\n") == [frame]


def test_the_crc_is_ccitt_false() -> None:
    # check value of CRC-16/CCITT-FALSE for the digits 1 to 9 is 29b1
    assert format_frame(FAIL).endswith(f"*{_crc(format_frame(FAIL)[:-5]):04x}")
    assert _crc("123456789") == 0x29B1


def _crc(text: str) -> int:
    crc = 0xFFFF
    for byte in text.encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ (0x1021 if crc & 0x8000 else 0)
            crc &= 0xFFFF
    return crc


def test_fields_are_typed() -> None:
    assert ITEM.integer("id") == 17
    assert ITEM.number("ms") == 12.345
    with pytest.raises(KeyError):
        ITEM.integer("total")


@pytest.mark.parametrize("size", [1, 3, 7, 200])
def test_pieces_of_any_size(size: int) -> None:
    text = f"msh />k230_runner\r\n{format_frame(BEGIN)}\r\n{format_frame(ITEM)}\r\nmsh />"
    reader = FrameReader()
    frames = []
    for start in range(0, len(text), size):
        frames += reader.feed(text[start : start + size])
    assert frames == [BEGIN, ITEM]


def test_a_frame_behind_other_text_on_its_line() -> None:
    assert FrameReader().feed(f"msh />{format_frame(ITEM)}\n") == [ITEM]


@pytest.mark.parametrize("noise", [f"{YELLOW}\r\n", f"{KERNEL}\r\n", f"{KERNEL}\r\n{YELLOW}\r\n"])
def test_a_kernel_line_inside_a_frame(noise: str) -> None:
    line = format_frame(ITEM)
    for cut in range(6, len(line)):
        frames = FrameReader().feed(f"{line[:cut]}{noise}{line[cut:]}\r\n")
        assert frames == [ITEM], cut


def test_noise_without_a_newline_inside_a_frame() -> None:
    line = format_frame(END)
    for cut in range(6, len(line)):
        assert FrameReader().feed(f"{line[:cut]}{YELLOW}{line[cut:]}\n") == [END], cut


def test_frames_after_a_torn_one_are_still_read() -> None:
    lost = format_frame(ITEM)[:20]
    text = f"{lost}\r\n{format_frame(ITEM)}\r\n{format_frame(END)}\r\n"
    assert FrameReader().feed(text) == [ITEM, END]


@given(
    st.integers(0, len(format_frame(ITEM)) - 1), st.characters(min_codepoint=32, max_codepoint=126)
)
def test_one_changed_character_is_never_believed(position: int, char: str) -> None:
    line = format_frame(ITEM)
    changed = line[:position] + char + line[position + 1 :]
    if changed != line:
        assert FrameReader().feed(f"{changed}\n") == []


@given(st.text())
def test_other_text_gives_no_frame(text: str) -> None:
    assert FrameReader().feed(text + "\n") == []


def test_what_is_no_frame_cannot_be_formatted() -> None:
    long = Frame("fail", RUN, {"code": "model", "reason": "x" * FRAME_MAX})
    for frame in (long, Frame("item", RUN, {}), Frame("other", RUN, {})):
        with pytest.raises(ValueError, match="no frame"):
            format_frame(frame)


def test_frames_of_the_documentation_are_whole() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "formats.md").read_text()
    frames = [parse_frame(line) for line in text.splitlines() if line.startswith("@K230 ")]
    assert [frame and frame.kind for frame in frames] == ["begin", "item", "end", "fail"]
