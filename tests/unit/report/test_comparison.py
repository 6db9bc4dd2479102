"""``k230 run compare``: two variants over the same images, from folders of runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from k230_lib.cli import app
from k230_lib.errors import InputError, ResultsError
from k230_lib.inference.queue_outcomes import Failure
from k230_lib.inference.results import ResultRecord
from k230_lib.inference.run import Run, RunSettings
from k230_lib.model.contract import file_sha256
from k230_lib.report.comparison import Change, compare_runs
from k230_lib.report.comparison_text import comparison_text

PORTABLE = RunSettings("portable", "ab" * 32, cross_check=0.0)
RVV = RunSettings("rvv", "cd" * 32, cross_check=0.0)

Evaluate = Callable[..., Path]


@pytest.fixture
def evaluate(record_of: Callable[..., ResultRecord]) -> Evaluate:
    """Evaluate a run to the end; boards are right unless ``best`` says another class."""

    def run_it(
        run: Run,
        best: Mapping[int, int] | None = None,
        *,
        latency_ms: float = 2.0,
        without: tuple[int, ...] = (),
        last: ResultRecord | None = None,
    ) -> Path:
        queue = run.queue()
        queue.board_begins("b1")
        while (chunk := queue.lease("b1", 100)) is not None:
            records = [
                record_of(s.id, (best or {}).get(s.id, s.label), latency_ms)
                for s in chunk.samples
                if s.id not in without
            ]
            if last is not None:
                records = [
                    last if record.sample_id == last.sample_id else record for record in records
                ]
            gone = [Failure(s.id, "crash") for s in chunk.samples if s.id in without]
            queue.commit(chunk, "b1", records, gone)
        queue.board_ends("b1", "done", "")
        return run.folder

    return run_it


def compared(*words: object) -> Result:
    return CliRunner().invoke(app, ["run", "compare", *map(str, words)])


def test_changed_images_are_named_lost_ones_first(
    make_inputs: Callable, evaluate: Evaluate
) -> None:
    inputs = make_inputs()
    first = evaluate(inputs.open(PORTABLE), {2: 9, 4: 5})
    second = evaluate(inputs.open(RVV), {4: 6, 7: 1, 8: 0}, latency_ms=0.5)
    found = compare_runs(first, second)
    assert [(one.index, one.kind) for one in found.changes] == [
        (7, "lost"),
        (8, "lost"),
        (2, "gained"),
        (4, "class"),
    ]
    assert (found.top1.lost, found.top1.gained) == ((7, 8), (2,))
    assert (found.top1.first_correct, found.top1.second_correct) == (10, 9)
    # 7 stays among the five best when another class is raised above it; 4 never was
    assert (found.top5.lost, found.top5.gained) == ((), (2,))
    assert found.top1.speedup == pytest.approx(4.0)
    assert (found.first.variant, found.second.variant) == ("portable", "rvv")
    assert (found.first.latency_ms, found.second.latency_ms) == (2.0, 0.5)
    lost = found.changes[0]
    assert (lost.path, lost.label, lost.first[0], lost.second[:2]) == ("c7/7.png", 7, 7, (1, 9))
    assert lost.margin == pytest.approx(4.8)
    assert not lost.close_call


def test_another_five_is_a_change_another_order_of_them_is_none(
    make_inputs: Callable, evaluate: Evaluate, logits_of: Callable, record_of: Callable
) -> None:
    inputs = make_inputs()
    scores = logits_of(0, 0)
    scores[9], scores[8] = scores[8], scores[9]
    order = dataclasses.replace(record_of(0, 0), logits=scores)
    scores = logits_of(1, 1)
    scores[5] = scores[6] + np.float32(0.001)
    five = dataclasses.replace(record_of(1, 1), logits=scores)
    first = evaluate(inputs.open(PORTABLE))
    assert compare_runs(first, evaluate(inputs.open(RVV), last=order)).changes == ()
    again = dataclasses.replace(RVV, variant="other")
    (change,) = compare_runs(first, evaluate(inputs.open(again), last=five)).changes
    assert (change.kind, change.first, change.second) == ("top5", (1, 9, 8, 7, 6), (1, 9, 8, 7, 5))
    assert change.margin == pytest.approx(0.1, abs=1e-6)


def test_table_and_json_say_the_same(make_inputs: Callable, evaluate: Evaluate) -> None:
    inputs = make_inputs()
    first = evaluate(inputs.open(PORTABLE))
    second = evaluate(inputs.open(RVV), {7: 1})
    shown = compared(first, second)
    assert shown.exit_code == 0
    assert "| runner | portable abababab | rvv cdcdcdcd |" in shown.stdout
    assert "| top-1 | 100.00 % (12/12) | 91.67 % (11/12) |" in shown.stdout
    assert (
        "Top-1: lost 1, gained 0 of 12 images, -8.33 points: not significant "
        "(exact McNemar test, p = 1)."
    ) in shown.stdout
    assert "Top-5: lost 0, gained 0 of 12 images.\n" in shown.stdout
    assert "| c7/7.png | 7 | 7 | 1 | lost | 1 -> 4 | 4.8 |" in shown.stdout
    answer = json.loads(compared("--json", first, second).stdout)
    assert answer["summary"] == shown.stdout
    assert (answer["top1"]["lost"], answer["top1"]["p_value"]) == ([7], 1.0)
    assert [change["path"] for change in answer["changes"]] == ["c7/7.png"]
    assert answer["failures"] == []


def test_equal_answers_need_no_verdict(make_inputs: Callable, evaluate: Evaluate) -> None:
    inputs = make_inputs()
    first, second = evaluate(inputs.open(PORTABLE)), evaluate(inputs.open(RVV))
    shown = compared(first, second, "--max-lost", 0, "--max-drop", 0)
    assert shown.exit_code == 0
    assert "Top-1: lost 0, gained 0 of 12 images.\n" in shown.stdout
    assert (
        "Same best class 12/12, same five 12/12, largest difference of a score 0." in shown.stdout
    )
    assert shown.stdout.endswith("a score 0.\n")


def test_much_that_is_lost_is_significant(make_inputs: Callable, evaluate: Evaluate) -> None:
    inputs = make_inputs(count=40)
    first = evaluate(inputs.open(PORTABLE))
    second = evaluate(inputs.open(RVV), {n: (n + 1) % 10 for n in range(30)})
    text = comparison_text(compare_runs(first, second))
    assert "lost 30, gained 0 of 40 images, -75.00 points: significant" in text
    assert "10 more changed images: --json has all." in text
    assert text.count("| lost |") == 20


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (("--max-lost", 1), "2 images lost, 1 allowed"),
        (("--max-drop", 8), "top-1 falls by 8.33 percentage points, 8 allowed"),
        (("--max-lost", 2, "--max-drop", 8.4), None),
    ],
)
def test_worse_than_allowed_is_exit_status_2(
    make_inputs: Callable, evaluate: Evaluate, limits: tuple[object, ...], words: str | None
) -> None:
    inputs = make_inputs()
    first = evaluate(inputs.open(PORTABLE), {2: 9})
    second = evaluate(inputs.open(RVV), {7: 1, 8: 0})
    done = compared(first, second, *limits)
    assert done.exit_code == (2 if words else 0)
    assert done.stderr == (f"worse than allowed: {words}\n" if words else "")


def test_images_without_a_result_fail_unless_allowed(
    make_inputs: Callable, evaluate: Evaluate
) -> None:
    inputs = make_inputs()
    first = evaluate(inputs.open(PORTABLE), {2: 9})
    second = evaluate(inputs.open(RVV), without=(3, 11))
    done = compared(first, second)
    assert isinstance(done.exception, ResultsError)
    assert f"run {second.name}: 2 of 12 images have no result: c3/3.png, c1/11.png" in str(
        done.exception
    )
    allowed = compared("--allow-missing", first, second)
    assert allowed.exit_code == 0
    assert "2 of 12 images have no result" in allowed.stdout
    assert "Top-1: lost 0, gained 1 of 10 images" in allowed.stdout
    answer = json.loads(compared("--allow-missing", "--json", first, second).stdout)
    assert (answer["top1"]["only_first"], answer["top1"]["only_second"]) == (2, 0)


def test_runs_of_other_images_are_not_compared(
    make_inputs: Callable, evaluate: Evaluate, tmp_path: Path
) -> None:
    inputs = make_inputs()
    first = evaluate(inputs.open(PORTABLE))
    manifest = inputs.dataset / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"label": 3', '"label": 4'))
    with pytest.raises(InputError, match="not over the same images and labels: 12 and 12 images"):
        compare_runs(first, evaluate(inputs.open(RVV)))
    with pytest.raises(InputError, match="is no run"):
        compare_runs(first, tmp_path)


def test_a_model_made_anew_since_does_not_matter_and_is_told(
    make_inputs: Callable, evaluate: Evaluate
) -> None:
    inputs = make_inputs()
    first = evaluate(inputs.open(PORTABLE))
    program, contract = inputs.model / "model.pte", inputs.model / "model.json"
    program.write_bytes(program.read_bytes()[::-1])
    document = json.loads(contract.read_text())
    document["pte"]["sha256"] = file_sha256(program)
    contract.write_text(json.dumps(document))
    text = comparison_text(compare_runs(first, evaluate(inputs.open(PORTABLE))))
    assert "The two runs are of different models (.pte)." in text


def test_scores_that_are_no_numbers_leave_the_json_valid(
    make_inputs: Callable, evaluate: Evaluate, record_of: Callable
) -> None:
    inputs = make_inputs()
    nothing = dataclasses.replace(record_of(5, 5), logits=np.full(10, np.nan, np.float32))
    first = evaluate(inputs.open(PORTABLE))
    done = compared("--json", first, evaluate(inputs.open(RVV), last=nothing))
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    assert answer["agreement"]["max_abs"] is None
    assert [Change(**change).kind for change in answer["changes"]] == ["lost"]
