"""Reading console text: pure functions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.board import console_text as ct

PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_text_does_not_depend_on_how_the_bytes_are_cut(data: bytes, cuts: list[int]) -> None:
    whole = ct.TextStream()
    expected = whole.feed(data) + whole.feed(b"\r\n")
    parts = ct.TextStream()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    seen = "".join(parts.feed(data[a:b]) for a, b in itertools.pairwise(places)) + parts.feed(
        b"\r\n"
    )
    assert seen == expected


def test_colours_and_nul_are_removed() -> None:
    stream = ct.TextStream()
    text = stream.feed(
        b"\x1b[33m<s_fs#dfs_sharefs_open-275#>:open /x failed\r\n\x1b[0mmsh\0 />\x1b["
    )
    assert text == "<s_fs#dfs_sharefs_open-275#>:open /x failed\nmsh />"
    assert stream.feed(b"0mready") == "ready"


@given(PRINTABLE)
def test_an_undisturbed_echo_is_accepted(line: str) -> None:
    assert ct.echoed(line, line)


@given(PRINTABLE, st.integers(0, 60), PRINTABLE, st.integers(0, 60))
def test_whole_kernel_lines_inside_an_echo_are_put_up_with(
    line: str, place: int, noise: str, second: int
) -> None:
    a, b = sorted((min(place, len(line)), min(second, len(line))))
    assert ct.echoed(line, f"{line[:a]}{noise}\n{line[a:b]}[E/x] y\n{line[b:]}")


@given(PRINTABLE, st.integers(0, 59), st.sampled_from("abcXYZ 0-/"))
def test_a_damaged_echo_is_refused(line: str, place: int, char: str) -> None:
    at = place % len(line)
    for damaged in (line[:at] + line[at + 1 :], line[:at] + char + line[at:]):
        if damaged != line:
            assert not ct.echoed(line, damaged)


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("junk\nmsh />", ct.Speaker.MSH),
        ("\nmsh /sharefs/k230>[E/mmc] late line\n", ct.Speaker.MSH),
        ("\n[root@canaan ~ ]# ", ct.Speaker.LINUX),
        ("canaan login: ", ct.Speaker.LINUX),
        ("q\nPassword: ", ct.Speaker.LINUX),
        ("/ # ", ct.Speaker.LINUX),
        ("-sh: q: not found\n", ct.Speaker.LINUX),
        ("K230# ", ct.Speaker.UBOOT),
        ("Unknown command 'q' - try 'help'\n", ct.Speaker.UBOOT),
        ("", ct.Speaker.UNKNOWN),
        ("progress 17 %", ct.Speaker.UNKNOWN),
    ],
)
def test_who_speaks(text: str, who: ct.Speaker) -> None:
    assert ct.speaker(text) is who


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("x" * 1024, "1024 characters"),
        ("a " * 101, "101 words"),
        ("echo \t", "cannot be typed"),
        ("echo ä", "cannot be typed"),
        ("echo \x03", "cannot be typed"),
    ],
)
def test_lines_that_msh_cannot_take(line: str, part: str) -> None:
    assert part in (ct.check_line(line) or "")


@pytest.mark.parametrize("line", ["", "x" * 1023, " ".join(["a"] * 100), 'echo "a b" /sharefs/x'])
def test_lines_that_msh_takes(line: str) -> None:
    assert ct.check_line(line) is None


def test_faults_are_told_apart() -> None:
    crash = "[E/DBG] [FATAL ERROR] Exception 13:Load Page Fault"
    assert ct.crash_text(f"out\n{crash}\n") == crash[8:]
    assert ct.crash_text("Memory exhaustion!\n") == "Memory exhaustion!"
    assert ct.crash_text("Exception handling is on") is None
    assert ct.kernel_death("x\nUnhandled Exception 5:Load Access Fault\n")
    assert ct.kernel_death("(0) assertion failed at function:rt_free, line number:1\n")
    assert ct.kernel_death("no Unhandled Exception 5: here") is None
    assert ct.command_not_found("x\nfoo: command not found.\n") == "foo"


def test_a_flood_keeps_its_ends_only() -> None:
    kept = ct.BoundedText(head=100, tail=200)
    for number in range(10_000):
        kept.add(f"line {number}\n")
    assert kept.text.startswith("line 0\n")
    assert kept.text.endswith("line 9999\n")
    assert "characters not kept" in kept.text
    assert len(kept.text) < 700
    assert kept.last(10) == "line 9999\n"
