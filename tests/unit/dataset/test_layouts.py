from __future__ import annotations

import json
from pathlib import Path

import pytest

from k230_lib.dataset.layouts import Request, list_images
from k230_lib.errors import DatasetError

MAPPING = "n01 tench\nn02 goldfish\nn03 shark\n"


def _touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


def _labels(request: Request) -> dict[str, int]:
    return {entry.path: entry.label for entry in list_images(request).entries}


def test_folders_get_their_class_from_the_mapping_not_from_their_order(tmp_path: Path) -> None:
    _touch(tmp_path / "n03" / "a.jpg")
    _touch(tmp_path / "n02" / "deep" / "b.jpg")
    (tmp_path / "LOC_synset_mapping.txt").write_text(MAPPING)
    # in the order of folders these would be 1 and 0
    assert _labels(Request(tmp_path)) == {"n02/deep/b.jpg": 1, "n03/a.jpg": 2}


def test_the_mapping_is_found_beside_the_image_folder(tmp_path: Path) -> None:
    _touch(tmp_path / "val" / "n02" / "a.jpg")
    (tmp_path / "LOC_synset_mapping.txt").write_text(MAPPING)
    listing = list_images(Request(tmp_path / "val"))
    assert [(e.label, e.wnid) for e in listing.entries] == [(1, "n02")]
    assert listing.origin == "LOC_synset_mapping.txt"


def test_folders_without_a_mapping_are_refused(tmp_path: Path) -> None:
    _touch(tmp_path / "n03" / "a.jpg")
    with pytest.raises(DatasetError, match=r"no label mapping.*Next: .*folder order is no label"):
        list_images(Request(tmp_path))


def test_a_folder_that_the_mapping_does_not_list_is_named(tmp_path: Path) -> None:
    _touch(tmp_path / "n04" / "a.jpg")
    (tmp_path / "LOC_synset_mapping.txt").write_text(MAPPING)
    with pytest.raises(DatasetError, match="folder n04 is of class n04, which LOC_synset_mapping"):
        list_images(Request(tmp_path))


def test_kaggle_layout(tmp_path: Path) -> None:
    for number in (1, 2):
        _touch(tmp_path / "ILSVRC/Data/CLS-LOC/val" / f"ILSVRC2012_val_0000000{number}.JPEG")
    (tmp_path / "LOC_synset_mapping.txt").write_text(MAPPING)
    (tmp_path / "LOC_val_solution.csv").write_text(
        "ImageId,PredictionString\n"
        "ILSVRC2012_val_00000002,n01 1 2 3 4\nILSVRC2012_val_00000001,n03 1 2 3 4\n"
    )
    listing = list_images(Request(tmp_path))
    assert listing.layout == "kaggle"
    assert listing.root == tmp_path / "ILSVRC/Data/CLS-LOC/val"
    assert [(e.path, e.label) for e in listing.entries] == [
        ("ILSVRC2012_val_00000001.JPEG", 2),
        ("ILSVRC2012_val_00000002.JPEG", 0),
    ]


def test_an_image_without_a_solution_is_named(tmp_path: Path) -> None:
    _touch(tmp_path / "ILSVRC2012_val_00000009.JPEG")
    mapping = tmp_path.parent / f"{tmp_path.name}-map.txt"
    mapping.write_text(MAPPING)
    solution = tmp_path.parent / f"{tmp_path.name}-solution.csv"
    solution.write_text("ImageId,PredictionString\nother,n01 1 2 3 4\n")
    with pytest.raises(DatasetError, match=r"ILSVRC2012_val_00000009\.JPEG has no line in"):
        list_images(Request(tmp_path, mapping=mapping, labels=solution))


@pytest.mark.parametrize(("base", "labels"), [(0, [1, 2]), (1, [0, 1])])
def test_flat_folder_with_numbers_needs_and_uses_the_base(
    tmp_path: Path, base: int, labels: list[int]
) -> None:
    _touch(tmp_path / "a.jpg")
    _touch(tmp_path / "b.jpg")
    (tmp_path / "val_map.txt").write_text("b.jpg 2\na.jpg 1\n")
    request = Request(tmp_path, label_base=base, class_count=3)
    assert [entry.label for entry in list_images(request).entries] == labels
    with pytest.raises(DatasetError, match="the number of the first class is not declared"):
        list_images(Request(tmp_path, class_count=3))


def test_flat_folder_with_wnids(tmp_path: Path) -> None:
    _touch(tmp_path / "a.jpg")
    (tmp_path / "val_map.txt").write_text("a.jpg n03\n")
    (tmp_path / "LOC_synset_mapping.txt").write_text(MAPPING)
    assert _labels(Request(tmp_path)) == {"a.jpg": 2}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_lists(tmp_path: Path, kind: str) -> None:
    images = tmp_path / "images"
    _touch(images / "x" / "a, b.jpg")
    _touch(images / 'quo"ted.jpg')
    rows = [("x/a, b.jpg", "n02"), ('quo"ted.jpg', "n01")]
    file = tmp_path / f"list.{kind}"
    if kind == "jsonl":
        file.write_text("".join(json.dumps({"path": p, "wnid": w}) + "\n" for p, w in rows))
    elif kind == "csv":
        file.write_text('path,wnid\n"x/a, b.jpg",n02\n"quo""ted.jpg",n01\n')
    else:
        file.write_text('path\twnid\nx/a, b.jpg\tn02\n"quo""ted.jpg"\tn01\n')
    mapping = tmp_path / "map.txt"
    mapping.write_text(MAPPING)
    request = Request(images, layout="list", labels=file, mapping=mapping)
    assert _labels(request) == {'quo"ted.jpg': 0, "x/a, b.jpg": 1}


def test_a_listed_file_that_is_missing_is_reported_not_dropped(tmp_path: Path) -> None:
    _touch(tmp_path / "a.jpg")
    file = tmp_path / "list.csv"
    file.write_text("file,label\na.jpg,0\ngone.jpg,1\n")
    request = Request(tmp_path, labels=file, label_base=0, class_count=3)
    listing = list_images(request)
    assert [(s.path, s.reason) for s in listing.skipped] == [
        ("gone.jpg", "listed, but no such file")
    ]


def test_a_list_with_other_columns_says_which_it_needs(tmp_path: Path) -> None:
    _touch(tmp_path / "a.jpg")
    file = tmp_path / "list.csv"
    file.write_text("name,truth\na.jpg,0\n")
    with pytest.raises(DatasetError, match="one of the columns path, file, image expected"):
        list_images(Request(tmp_path, layout="list", labels=file))


@pytest.mark.parametrize(("base", "label"), [(0, 2), (1, 1)])
def test_numeric_folders_need_a_declared_base(tmp_path: Path, base: int, label: int) -> None:
    _touch(tmp_path / "2" / "a.jpg")
    assert _labels(Request(tmp_path, label_base=base, class_count=3)) == {"2/a.jpg": label}
    with pytest.raises(DatasetError, match="folder names are numbers, but the number of the first"):
        list_images(Request(tmp_path, class_count=3))


def test_numeric_folders_outside_of_the_classes_are_refused(tmp_path: Path) -> None:
    _touch(tmp_path / "3" / "a.jpg")
    with pytest.raises(DatasetError, match=r"class 3 is outside of 0\.\.2"):
        list_images(Request(tmp_path, label_base=0, class_count=3))


def test_links_are_followed_and_a_circle_of_links_ends(tmp_path: Path) -> None:
    _touch(tmp_path / "elsewhere" / "a.jpg")
    folder = tmp_path / "images" / "n01"
    folder.mkdir(parents=True)
    (folder / "link.jpg").symlink_to(tmp_path / "elsewhere" / "a.jpg")
    (folder / "up").symlink_to(folder, target_is_directory=True)
    (tmp_path / "images" / "n02").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    mapping = tmp_path / "map.txt"
    mapping.write_text(MAPPING)
    request = Request(tmp_path / "images", mapping=mapping)
    assert _labels(request) == {"n01/link.jpg": 0, "n02/a.jpg": 1}


def test_a_folder_that_is_linked_twice_is_not_dropped(tmp_path: Path) -> None:
    _touch(tmp_path / "elsewhere" / "a.jpg")
    folder = tmp_path / "images" / "n01"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / name).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    mapping = tmp_path / "map.txt"
    mapping.write_text(MAPPING)
    request = Request(tmp_path / "images", mapping=mapping)
    assert _labels(request) == {"n01/one/a.jpg": 0, "n01/two/a.jpg": 0}


def test_a_missing_or_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nowhere does not exist"):
        list_images(Request(tmp_path / "nowhere"))
    (tmp_path / "LOC_synset_mapping.txt").write_text(MAPPING)
    with pytest.raises(DatasetError, match="no images found"):
        list_images(Request(tmp_path))
