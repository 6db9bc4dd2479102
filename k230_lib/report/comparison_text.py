"""A comparison of two runs in Markdown, for the terminal."""

from __future__ import annotations

from ..evaluation.compare import Comparison
from .comparison import Change, RunComparison, Side

SIGNIFICANT = 0.05
"""A split of changed images that chance brings less often than this is called significant."""

_LISTED = 20
_NAMED = 5


def comparison_text(found: RunComparison) -> str:
    """Both runs side by side, the verdict, and the first of the changed images."""
    first, second = found.first, found.second
    rows = [
        ("run", first.run, second.run),
        ("model", _model(first), _model(second)),
        ("runner", _runner(first), _runner(second)),
        ("origin", first.origin, second.origin),
        ("top-1", _right(found.top1, found.top1.first_correct), _right(found.top1)),
        ("top-5", _right(found.top5, found.top5.first_correct), _right(found.top5)),
        ("median ms", _ms(first), _ms(second)),
    ]
    lines = ["| | A | B |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {a} | {b} |" for name, a, b in rows]
    lines += ["", f"Top-1: {_verdict(found.top1)}", f"Top-5: {_verdict(found.top5)}"]
    if found.top1.speedup is not None:
        lines.append(f"B is {found.top1.speedup:.2f}x as fast as A (median over the images).")
    scores = found.agreement
    lines.append(
        f"Same best class {scores.top1_equal}/{scores.count}, same five "
        f"{scores.top5_equal}/{scores.count}, largest difference of a score {scores.max_abs:.2g}."
    )
    lines += _notes(found)
    if found.changes:
        lines += ["", *_table(found.changes)]
    return "\n".join(lines) + "\n"


def missing_words(side: Side, total: int) -> str:
    """Which images of a run have no result, the first few by name."""
    more = len(side.missing) - _NAMED
    return (
        f"run {side.run}: {len(side.missing)} of {total} images have no result: "
        + ", ".join(side.missing[:_NAMED])
        + (f" and {more} more" if more > 0 else "")
    )


def _verdict(found: Comparison) -> str:
    changed = len(found.gained) + len(found.lost)
    words = f"lost {len(found.lost)}, gained {len(found.gained)} of {found.count} images"
    if not changed:
        return f"{words}."
    meaning = "" if found.p_value < SIGNIFICANT else "not "
    return (
        f"{words}, {100 * found.accuracy_change:+.2f} points: {meaning}significant "
        f"(exact McNemar test, p = {found.p_value:.2g})."
    )


def _notes(found: RunComparison) -> list[str]:
    notes = [
        missing_words(side, found.total) + "."
        for side in (found.first, found.second)
        if side.missing
    ]
    if found.first.model_sha256 != found.second.model_sha256:
        notes.append("The two runs are of different models (.pte).")
    if found.other_tensors:
        notes.append(
            f"{found.other_tensors} images have the same name and label in both runs, but were "
            "given as different tensors: another preprocessing, or other files."
        )
    return notes


def _table(changes: tuple[Change, ...]) -> list[str]:
    """``place`` is the label's among the five best, from A to B; the margin is A's."""
    lines = [
        "| image | label | A | B | change | place of the label | margin |",
        "| --- | ---: | ---: | ---: | --- | --- | ---: |",
    ]
    words = {"class": "wrong in both", "top5": "other five"}
    for one in changes[:_LISTED]:
        places = f"{_place(one.label, one.first)} -> {_place(one.label, one.second)}"
        margin = f"{one.margin:.2g}" + (" (close)" if one.close_call else "")
        lines.append(
            f"| {one.path} | {one.label} | {one.first[0]} | {one.second[0]} | "
            f"{words.get(one.kind, one.kind)} | {places} | {margin} |"
        )
    if len(changes) > _LISTED:
        lines += ["", f"{len(changes) - _LISTED} more changed images: --json has all."]
    return lines


def _place(label: int, best: tuple[int, ...]) -> str:
    return str(best.index(label) + 1) if label in best else "-"


def _model(side: Side) -> str:
    return f"{side.model} {side.model_sha256[:8]}"


def _runner(side: Side) -> str:
    return f"{side.variant} {side.runner_sha256[:8]}"


def _right(found: Comparison, correct: int | None = None) -> str:
    right = found.second_correct if correct is None else correct
    return f"{100 * right / found.count:.2f} % ({right}/{found.count})" if found.count else "-"


def _ms(side: Side) -> str:
    return "-" if side.latency_ms is None else f"{side.latency_ms:.2f}"
