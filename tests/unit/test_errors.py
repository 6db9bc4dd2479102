"""What a user reads when something fails."""

from __future__ import annotations

import pickle

import pytest

from k230_lib.errors import InputError, K230Error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (K230Error("no card"), "no card"),
        (K230Error("no card", board="vb1"), "vb1: no card"),
        (K230Error("no card", board="vb1", hint="put one in."), "vb1: no card. Next: put one in."),
        (K230Error("The card is gone.", hint="look."), "The card is gone. Next: look."),
    ],
)
def test_board_problem_and_next_step_are_sentences(error: K230Error, text: str) -> None:
    assert str(error) == text


def test_an_error_of_another_process_reads_the_same() -> None:
    error = InputError("no card", board="vb1", hint="put one in.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InputError
    assert (str(again), again.board, again.hint) == (str(error), "vb1", "put one in.")
