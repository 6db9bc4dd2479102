"""Each way to label the same pictures must give the same accuracy; a wrong one must be named.

The "model" reads the class off a picture's grey, so its accuracy is known to be 100 %.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from k230_lib.dataset.build import Settings, plan, prepare
from k230_lib.dataset.layouts import Request
from k230_lib.dataset.manifest import read_manifest, shard_paths
from k230_lib.dataset.shards import read_samples
from k230_lib.errors import DatasetError
from k230_lib.evaluation.accuracy import Accuracy, score
from k230_lib.model.contract import ModelContract

MakeContract = Callable[..., ModelContract]

CLASSES = 8
STEP = 30
NAMES = [f"name{k}" for k in range(CLASSES)]
# sorted by wnid the classes come in another order than by index
WNIDS = [f"n{(k * 5) % CLASSES:02d}" for k in range(CLASSES)]
PICTURES = [(f"ILSVRC2012_val_{number:08d}.png", number % CLASSES) for number in range(24)]


def _paint(root: Path, place: Callable[[str, int], str]) -> None:
    for name, label in PICTURES:
        path = root / place(name, label)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20), label * STEP).save(path)


def _mapping(root: Path, separator: str = " ") -> Path:
    path = root / "LOC_synset_mapping.txt"
    path.write_text("".join(f"{w}{separator}{n}\n" for w, n in zip(WNIDS, NAMES, strict=True)))
    return path


def _folders(root: Path) -> Request:
    _paint(root / "val", lambda name, label: f"{WNIDS[label]}/{name}")
    return Request(root / "val", mapping=_mapping(root))


def _folders_with_colons(root: Path) -> Request:
    _paint(root / "val", lambda name, label: f"{WNIDS[label]}/{name}")
    return Request(root / "val", mapping=_mapping(root, " : "))


def _kaggle(root: Path) -> Request:
    _paint(root, lambda name, label: f"ILSVRC/Data/CLS-LOC/val/{name}")
    _mapping(root)
    rows = "".join(f"{Path(n).stem},{WNIDS[k]} 1 2 3 4 \n" for n, k in reversed(PICTURES))
    (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n" + rows)
    return Request(root)


def _flat(base: int) -> Callable[[Path], Request]:
    def make(root: Path) -> Request:
        _paint(root, lambda name, label: name)
        lines = "".join(f"{name} {label + base}\n" for name, label in reversed(PICTURES))
        (root / "val_map.txt").write_text(lines)
        return Request(root, label_base=base)

    return make


def _flat_wnids(root: Path) -> Request:
    _paint(root / "val", lambda name, label: name)
    _mapping(root)
    lines = "".join(f"{name}\t{WNIDS[label]}\n" for name, label in PICTURES)
    (root / "val" / "val_map.txt").write_text(lines)
    return Request(root / "val")


def _csv(root: Path) -> Request:
    _paint(root / "val", lambda name, label: name)
    rows = "".join(f"{name},{label + 1}\n" for name, label in reversed(PICTURES))
    (root / "list.csv").write_text("file,label\n" + rows)
    return Request(root / "val", labels=root / "list.csv", label_base=1)


def _jsonl(root: Path) -> Request:
    _paint(root / "val", lambda name, label: name)
    lines = (json.dumps({"path": n, "wnid": WNIDS[k]}) + "\n" for n, k in reversed(PICTURES))
    (root / "list.jsonl").write_text("".join(lines))
    return Request(root / "val", labels=root / "list.jsonl", mapping=_mapping(root))


def _numeric(base: int) -> Callable[[Path], Request]:
    def make(root: Path) -> Request:
        _paint(root, lambda name, label: f"{label + base}/{name}")
        return Request(root, label_base=base)

    return make


CONVENTIONS = {
    "folders": _folders,
    "folders, colons": _folders_with_colons,
    "kaggle": _kaggle,
    "flat from 0": _flat(0),
    "flat from 1": _flat(1),
    "flat wnids": _flat_wnids,
    "csv from 1": _csv,
    "jsonl wnids": _jsonl,
    "numeric from 0": _numeric(0),
    "numeric from 1": _numeric(1),
}


def _judge(request: Request, contract: ModelContract, out: Path) -> Accuracy:
    done = prepare(plan(request, contract, Settings("set", out, dtype="uint8")))
    rows = []
    for shard in done.dataset.shards:
        for _, data in read_samples(shard_paths(done.folder, shard)[1]):
            grey = round(float(data.mean()) / STEP)
            rows.append(np.eye(contract.class_count)[grey + contract.label_offset])
    labels = [sample.label for sample in read_manifest(done.folder)]
    return score(np.array(rows, np.float32), labels)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("offset", [0, 1])
def test_the_accuracy_is_the_same_by_every_convention(
    tmp_path: Path, make_contract: MakeContract, convention: str, offset: int
) -> None:
    names = ["background", *NAMES] if offset else NAMES
    contract = make_contract(names=names, label_offset=offset)
    request = CONVENTIONS[convention](tmp_path / "data")
    figures = _judge(request, contract, tmp_path / "out")
    assert (figures.count, figures.top1_correct, figures.suspect) == (24, 24, None)


def test_a_wrong_base_is_an_error_or_is_named(tmp_path: Path, make_contract: MakeContract) -> None:
    request = _flat(0)(tmp_path / "a")
    wrong = Request(request.images, label_base=1)
    with pytest.raises(DatasetError, match=r"class 0 is outside of 1\.\.8"):
        _judge(wrong, make_contract(names=NAMES), tmp_path / "out")
    # with more classes than are used nothing is outside: the results tell
    request = _flat(1)(tmp_path / "b")
    wrong = Request(request.images, label_base=0)
    figures = _judge(wrong, make_contract(names=[*NAMES, "unused"]), tmp_path / "out")
    assert figures.top1_correct == 0
    assert "24 with -1 added to each label" in (figures.suspect or "")


def test_an_undeclared_background_class_is_named(
    tmp_path: Path, make_contract: MakeContract
) -> None:
    contract = make_contract(names=["background", *NAMES], label_offset=0)
    with pytest.raises(DatasetError, match="set label_offset to 1"):
        _judge(_folders(tmp_path / "data"), contract, tmp_path / "out")
