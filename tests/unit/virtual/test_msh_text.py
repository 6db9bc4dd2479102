from __future__ import annotations

import signal

import pytest

from k230_lib.virtual import msh_text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls /sharefs", ["ls", "/sharefs"]),
        ("  a \t b  ", ["a", "b"]),
        ('echo "two words" f', ["echo", "two words", "f"]),
        ('echo mid"dle quote"', ["echo", 'mid"dle', 'quote"']),
        (r'echo "a\"b"', ["echo", r"a\"b"]),
        ("echo 'a b'", ["echo", "'a", "b'"]),
        ("a;b && c | d > e $HOME *", ["a;b", "&&", "c", "|", "d", ">", "e", "$HOME", "*"]),
        ("", []),
    ],
)
def test_split_follows_msh_rules(line: str, words: list[str]) -> None:
    assert msh_text.split_line(line) == words


def test_program_candidates() -> None:
    assert msh_text.program_candidates("/sharefs", "run") == [
        "/sharefs/run",
        "/sharefs/run.elf",
        "/bin/run",
        "/bin/run.elf",
    ]
    assert msh_text.program_candidates("/sharefs/a", "../run.elf") == ["/sharefs/run.elf"]


def test_arguments_share_one_page() -> None:
    assert msh_text.arguments_fit(["x" * 3000])
    assert not msh_text.arguments_fit(["x" * 3600])


def test_crash_report_names_the_fault_and_the_program() -> None:
    report = msh_text.crash_report("k230_runner", signal.SIGSEGV)
    assert "[FATAL ERROR] Exception 13:Load Page Fault" in report
    assert "User Fault, killing thread: k230_runner" in report
    assert msh_text.crash_report("k230_runner", signal.SIGINT) == ""
