"""The outputs of a profile: what a user opens."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

from k230_lib.errors import EnvironmentProblemError, InputError
from k230_lib.profiling.capture import Capture, write_capture
from k230_lib.profiling.commands import app
from k230_lib.profiling.compare import compare
from k230_lib.profiling.profile import ModelFiles, Profile, load_profile
from k230_lib.profiling.testing import TIMES_NS, write_etdump, write_etrecord, write_pte
from k230_lib.report.charts import LayerMark, layer_chart, ticks
from k230_lib.report.numbers import count, factor, milliseconds, percent
from k230_lib.report.profile_page import page
from k230_lib.report.profile_report import write_profile_report

FASTER_NS = (90_000, 40_000, 60_000, 100_000, 30_000, 10_000, 20_000)


class Page(HTMLParser):
    """Text of the page, its open tags and all it refers to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.links: list[str] = []
        self.open: list[str] = []
        self.rows = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "input", "br", "link", "img", "rect", "line", "circle"):
            self.open.append(tag)
        self.rows += tag == "tr"
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("rect", "line", "circle"):
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data + " "


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Profile]:
    folder = tmp_path_factory.mktemp("profiles")
    files = ModelFiles(write_etrecord(folder / "r"), write_pte(folder / "p"))
    base = write_etdump(folder / "a", times=[TIMES_NS] * 3)
    fast = write_etdump(folder / "b", times=[FASTER_NS] * 3)
    return (
        load_profile(base, Capture("portable", "board1", "mobile<net>", "measured_here"), files),
        load_profile(fast, Capture("rvv", "board1", "mobile<net>", "measured_here"), files),
    )


@pytest.fixture(scope="module")
def written(variants: tuple[Profile, Profile], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole report."""
    folder = tmp_path_factory.mktemp("report") / "made"
    assert write_profile_report(folder, variants, variants, compare(variants))
    return folder


def test_the_page_answers_first_what_a_user_asks(variants: tuple[Profile, Profile]) -> None:
    text = Page(page(variants, variants, compare(variants), [])).text
    for answer in ("0.365", "5.52\u00d7", "aten.", "convolution", "71.4\u202f%", "What to do next"):
        assert answer in text, answer
    assert text.index("5.52\u00d7") < text.index("Layer by layer")
    assert text.index("What to do next") < text.index("Layer by layer")
    assert "virtual boards: ratios count, times do not" in text


def test_the_page_needs_no_other_file(variants: tuple[Profile, Profile]) -> None:
    html = page(variants, variants, compare(variants), [])
    parsed = Page(html)
    assert parsed.open == []
    assert parsed.links == []
    assert not re.search(r"https?://|@import|url\(", html)


def test_names_from_files_cannot_become_markup(variants: tuple[Profile, Profile]) -> None:
    html = page(variants, variants, compare(variants), ["<script>x</script>"])
    assert "mobile<net>" not in html
    assert "mobile&lt;net&gt;" in html
    assert "<script>x" not in html


def test_the_page_has_both_themes(variants: tuple[Profile, Profile]) -> None:
    html = page(variants, variants, compare(variants), [])
    assert "prefers-color-scheme: dark" in html
    assert 'data-theme="dark"' in html


def test_one_variant_is_shown_without_speed_ups(variants: tuple[Profile, Profile]) -> None:
    text = Page(page(variants[:1], variants[:1], None, [])).text
    assert "profile a second variant to compare" in text
    assert "\u00d7" not in text


def test_a_page_without_an_etrecord_says_so(tmp_path: Path) -> None:
    profile = load_profile(write_etdump(tmp_path / "a"), Capture("portable", ""))
    text = Page(page([profile], [profile], None, [])).text
    assert "none was given" in text
    assert "no ETRecord" in text
    assert "convolution.out" in text
    assert "does not say where it is from" in text


def test_a_slower_variant_is_shown_as_a_failure(variants: tuple[Profile, Profile]) -> None:
    text = Page(page(variants, variants, compare(variants), ["rvv: too slow"])).text
    assert "Slower than allowed: rvv: too slow" in text


def test_all_outputs_are_written(written: Path) -> None:
    assert (written / "report.html").exists()
    for stem in ("summary", "events-rvv.board1", "operators-portable.board1", "comparison"):
        csv = pd.read_csv(written / "tables" / f"{stem}.csv", keep_default_na=False)
        parquet = pd.read_parquet(written / "tables" / f"{stem}.parquet")
        assert list(csv.columns) == list(parquet.columns)
        assert len(csv) == len(parquet) > 0
    for plot in ("top-operators", "layers", "variants"):
        assert (written / "plots" / f"{plot}.svg").read_text().startswith("<?xml")
        assert (written / "plots" / f"{plot}.png").read_bytes()[:4] == b"\x89PNG"
    document = json.loads((written / "profile.json").read_text())
    assert document["comparison"]["variants"][0]["speedup"] == pytest.approx(2.015 / 0.365)
    assert document["profiles"][1]["bottleneck"] == "1x1 convolution"
    assert document["profiles"][1]["bottleneck_share"] == pytest.approx(100 / 350)
    assert document["profiles"][0]["top"][0]["operator"] == "aten.convolution.default"
    assert json.loads((written / "trace.json").read_text())["traceEvents"]


def test_the_workbook_has_the_tables_as_numbers(written: Path) -> None:
    book = openpyxl.load_workbook(written / "profile.xlsx")
    assert book.sheetnames[:5] == ["Summary", "Operators", "By module", "Events", "Comparison"]
    rows = list(book["Comparison"].iter_rows(values_only=True))
    first = dict(zip(rows[0], rows[1], strict=True))
    assert first["operator"] == "aten.convolution.default"
    assert first["rvv_speedup"] == pytest.approx(1.9 / 0.25)
    events = book["Events"]
    assert events.max_row == 1 + 2 * len(TIMES_NS)
    assert events.freeze_panes == "A2"


def test_a_folder_that_cannot_be_written_is_named(
    variants: tuple[Profile, Profile], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblemError, match="the report cannot be written"):
        write_profile_report(tmp_path / "file", variants, variants, None)


def run(folder: Path, variant: str, times: tuple[int, ...]) -> None:
    folder.mkdir(parents=True)
    write_etdump(folder / "model.etdump", times=[times] * 2)
    write_capture(folder, Capture(variant, "board1"))


def test_the_command_reports_a_run_and_fails_on_a_limit(tmp_path: Path) -> None:
    run(tmp_path / "portable", "portable", TIMES_NS)
    run(tmp_path / "rvv", "rvv", FASTER_NS)
    command = ["report", str(tmp_path), "--baseline", "rvv"]
    good = CliRunner().invoke(app, command)
    assert good.exit_code == 0, good.output
    assert "portable is 0.18x as fast as rvv" in good.output
    assert (tmp_path / "report" / "report.html").exists()
    bad = CliRunner().invoke(app, [*command, "--fail-slower", "5"])
    assert bad.exit_code == 2
    assert "slower than allowed: portable" in bad.output


def test_the_command_compares_single_traces(tmp_path: Path) -> None:
    write_etdump(tmp_path / "a")
    write_etdump(tmp_path / "b", times=[FASTER_NS])
    pair = [f"portable={tmp_path / 'a'}", f"rvv={tmp_path / 'b'}"]
    done = CliRunner().invoke(app, ["compare", *pair, "--out", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    assert "rvv is 5.52x as fast as portable" in done.output
    lost = CliRunner().invoke(app, ["compare", *pair, "--model", f"scalar={tmp_path}"])
    assert "--model for scalar, but there is no such trace" in str(lost.exception)
    wrong = CliRunner().invoke(app, ["compare", "a.etdump", "--out", str(tmp_path / "r")])
    assert isinstance(wrong.exception, InputError)
    assert "expected NAME=ETDUMP" in str(wrong.exception)


def test_check_mode_says_whether_the_report_would_change(tmp_path: Path) -> None:
    def changes(*options: str) -> bool:
        done = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--json", *options])
        assert done.exit_code == 0, done.output
        return bool(json.loads(done.stdout)["changed"])

    assert changes("--check")
    run(tmp_path / "run" / "portable", "portable", TIMES_NS)
    assert changes("--check")
    assert not (tmp_path / "run" / "report").exists()
    assert changes()
    assert not changes("--check")
    assert not changes()
    run(tmp_path / "run" / "rvv", "rvv", FASTER_NS)
    assert changes("--check")
    assert not changes("--check", "--variant", "portable")


def test_a_limit_without_a_second_variant_is_refused(tmp_path: Path) -> None:
    dump = write_etdump(tmp_path / "a")
    done = CliRunner().invoke(app, ["report", str(dump), "--fail-slower", "5"])
    assert isinstance(done.exception, InputError)
    assert "only one variant" in str(done.exception)


def test_figures_are_written_for_people() -> None:
    assert [milliseconds(v) for v in (34260, 115.31, 14.2626, 0.1234, 0.0001, 0, None)] == [
        "34\u202f260",
        "115.3",
        "14.26",
        "0.123",
        "<0.001",
        "0.000",
        "\u2013",
    ]
    assert [percent(v) for v in (0.9779, 0.0003, 0, None)] == [
        "97.8\u202f%",
        "<0.1\u202f%",
        "0.0\u202f%",
        "\u2013",
    ]
    assert [factor(v) for v in (1.0, 8.126, 27.66, 235.4, float("inf"))] == [
        "1.00\u00d7",
        "8.13\u00d7",
        "27.7\u00d7",
        "235\u00d7",
        "\u221e",
    ]
    assert count(300_800_000) == "300.8 M"


def test_axes_have_round_numbers() -> None:
    assert ticks(1.62) == [0, 0.5, 1.0, 1.5]
    assert ticks(87) == [0, 25, 50, 75]
    assert ticks(0) == [0]


def test_the_layer_chart_has_a_mark_per_operator() -> None:
    marks = [LayerMark(f"m{i} <&>", f"features.{i // 3}", "dense", i + 1, 2.0) for i in range(9)]
    chart = layer_chart(marks)
    assert chart.count("<rect") == chart.count("<circle") == 9
    assert "m0 &lt;&amp;&gt;" in chart
    assert "<circle" not in layer_chart([LayerMark("a", "g", "dense", 1.0, None)])
