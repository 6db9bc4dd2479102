from __future__ import annotations

from pathlib import Path

import pytest

from k230_lib.dataset.labels import (
    LabelMap,
    check_names,
    class_number,
    read_solution,
    read_synset_mapping,
    read_val_map,
)
from k230_lib.errors import DatasetError
from k230_lib.model.contract import ModelClass


@pytest.mark.parametrize(
    "line", ["n01 tench, Tinca tinca", "n01 : tench, Tinca tinca", "n01: tench, Tinca tinca"]
)
def test_both_spellings_of_the_mapping_mean_the_same(tmp_path: Path, line: str) -> None:
    file = tmp_path / "map.txt"
    file.write_text(f"{line}\n\nn02 goldfish\n")
    labels = read_synset_mapping(file)
    assert labels.names == ("tench, Tinca tinca", "goldfish")
    assert labels.index == {"n01": 0, "n02": 1}


def test_a_byte_order_mark_is_no_part_of_the_first_wnid(tmp_path: Path) -> None:
    file = tmp_path / "map.txt"
    file.write_bytes(b"\xef\xbb\xbfn01 tench\r\nn02 goldfish\r\n")
    assert read_synset_mapping(file).wnids == ("n01", "n02")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n01\n", ":1: 'wnid name' expected, found 'n01'"),
        ("n01 a\nn01 b\n", "n01 is listed twice"),
        ("\n", "no classes found"),
    ],
)
def test_a_bad_mapping_is_told_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "map.txt"
    file.write_text(text)
    with pytest.raises(DatasetError) as caught:
        read_synset_mapping(file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_label_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere\.txt cannot be read: No such file"):
        read_synset_mapping(tmp_path / "nowhere.txt")


def test_the_solution_gives_the_class_of_each_image_with_any_number_of_boxes(
    tmp_path: Path,
) -> None:
    file = tmp_path / "LOC_val_solution.csv"
    file.write_text(
        "ImageId,PredictionString\n"
        "ILSVRC2012_val_00000001,n01 1 2 3 4 n01 5 6 7 8 \n"
        "ILSVRC2012_val_00000002,n02 1 2 3 4 \n"
    )
    assert read_solution(file) == {
        "ILSVRC2012_val_00000001": "n01",
        "ILSVRC2012_val_00000002": "n02",
    }


def test_a_solution_with_two_classes_for_an_image_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text("ImageId,PredictionString\na,n01 1 2 3 4 n02 5 6 7 8\n")
    with pytest.raises(DatasetError, match="one class expected for a, found"):
        read_solution(file)


def test_the_val_map_keeps_names_with_blanks(tmp_path: Path) -> None:
    file = tmp_path / "val_map.txt"
    file.write_text("my dog.JPEG 3\nplain.JPEG 1\nwith tab.png\tn02\n")
    assert read_val_map(file) == {"my dog.JPEG": "3", "plain.JPEG": "1", "with tab.png": "n02"}


def test_a_file_with_two_labels_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "val_map.txt"
    file.write_text("a.png 1\na.png 2\n")
    with pytest.raises(DatasetError, match=r"a\.png has two labels, 1 and 2"):
        read_val_map(file)


def test_class_numbers_are_counted_from_the_declared_base() -> None:
    assert class_number("1", 1, 1000, "x") == 0
    assert class_number("999", 0, 1000, "x") == 999


@pytest.mark.parametrize(
    ("text", "base"), [("0", 1), ("1000", 0), ("1001", 1), ("-1", 0), ("n1", 0)]
)
def test_class_numbers_outside_of_the_range_are_refused(text: str, base: int) -> None:
    with pytest.raises(DatasetError):
        class_number(text, base, 1000, "x")


def _classes(*names: str) -> list[ModelClass]:
    return [ModelClass(k, name) for k, name in enumerate(names)]


def test_a_background_class_that_was_not_declared_is_found_by_the_names() -> None:
    labels = LabelMap(("n1", "n2", "n3"), ("tench, Tinca", "goldfish", "shark"), "map.txt")
    classes = _classes("background", "tench", "goldfish", "shark")
    check_names(labels, classes, 1)
    with pytest.raises(DatasetError, match="label_offset 1, not 0"):
        check_names(labels, classes, 0)


def test_names_in_another_language_are_no_error() -> None:
    labels = LabelMap(("n1", "n2"), ("Schleie", "Goldfisch"), "map.txt")
    check_names(labels, _classes("tench", "goldfish"), 0)
