from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from k230_lib.dataset import build, chunk
from k230_lib.dataset.build import Outcome, Settings, plan, prepare, unchanged
from k230_lib.dataset.layouts import Request
from k230_lib.dataset.manifest import load, read_manifest, read_skipped, shard_paths
from k230_lib.dataset.preprocess import encode
from k230_lib.dataset.shards import load_list, read_samples
from k230_lib.errors import DatasetError
from k230_lib.model.contract import ModelContract, Preprocessing

MakeContract = Callable[..., ModelContract]
MakeTree = Callable[..., Path]
Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, make_contract: MakeContract) -> Run:
    def prepare_it(
        images: Path, contract: ModelContract | None = None, **settings: object
    ) -> Outcome:
        values = {"name": "set", "out": tmp_path / "datasets", "shard_size": 4, **settings}
        chosen = Settings(**values)  # type: ignore[arg-type]
        return prepare(plan(Request(images), contract or make_contract(), chosen))

    return prepare_it


def test_every_byte_is_where_manifest_and_list_say(make_tree: MakeTree, run: Run) -> None:
    images = make_tree()
    done = run(images, dtype="uint8")
    samples = list(read_manifest(done.folder))
    assert [sample.index for sample in samples] == list(range(6))
    assert [(s.path, s.label, s.wnid) for s in samples[:3]] == [
        ("n01/n01_0.png", 0, "n01"),
        ("n01/n01_1.png", 0, "n01"),
        ("n02/n02_0.png", 1, "n02"),
    ]
    listed = {}
    for shard in done.dataset.shards:
        binary, listing = shard_paths(done.folder, shard)
        assert hashlib.sha256(binary.read_bytes()).hexdigest() == shard.bin_sha256
        assert hashlib.sha256(listing.read_bytes()).hexdigest() == shard.list_sha256
        assert binary.stat().st_size == shard.bin_bytes
        assert load_list(listing).nbytes == 3 * 16 * 16
        listed |= {index: (shard.name, data.tobytes()) for index, data in read_samples(listing)}
    for sample in samples:
        shard_name, data = listed[sample.index]
        image_file = (images / sample.path).read_bytes()
        wanted = encode(Image.open(images / sample.path), Preprocessing(20, 16), "uint8")
        assert data == wanted
        assert sample.shard == shard_name
        assert sample.sha256 == hashlib.sha256(data).hexdigest()
        assert int(sample.crc32, 16) == zlib.crc32(data)
        assert sample.image_sha256 == hashlib.sha256(image_file).hexdigest()
    assert [(s.name, s.first_index, s.count) for s in done.dataset.shards] == [
        ("shard-00000", 0, 4),
        ("shard-00001", 4, 2),
    ]


def test_the_description_names_the_labels_and_the_contract(
    make_tree: MakeTree, run: Run, make_contract: MakeContract
) -> None:
    done = run(make_tree(), dtype="float32")
    dataset = load(done.folder)
    assert dataset == done.dataset
    assert dataset.nbytes == 4 * 3 * 16 * 16
    assert dataset.preprocessing == make_contract().input.preprocessing
    assert dataset.counts == {"images": 6, "skipped": 0, "classes": 3}
    assert dataset.labels["origin"] == "LOC_synset_mapping.txt"


def test_nothing_is_done_twice(make_tree: MakeTree, run: Run) -> None:
    images = make_tree()
    first = run(images)
    again = run(images)
    assert (first.changed, again.changed) == (True, False)
    assert again.dataset == first.dataset


def test_a_changed_picture_is_noticed_and_only_its_shard_made_anew(
    make_tree: MakeTree, run: Run
) -> None:
    images = make_tree()
    before = run(images)
    Image.new("RGB", (30, 30), (1, 2, 3)).save(images / "n03" / "n03_1.png")
    after = run(images)
    assert after.changed
    assert after.reused == 1
    assert after.dataset.shards[0] == before.dataset.shards[0]
    assert after.dataset.shards[1].bin_sha256 != before.dataset.shards[1].bin_sha256


def test_a_second_model_with_the_same_preprocessing_uses_the_shards_again(
    make_tree: MakeTree, run: Run, make_contract: MakeContract
) -> None:
    images = make_tree()
    run(images)
    # other classes and offset, same preprocessing
    contract = make_contract(names=("background", "tench", "goldfish", "shark"), label_offset=1)
    other = run(images, contract, name="other")
    assert other.reused == len(other.dataset.shards) == 2
    assert [sample.label for sample in read_manifest(other.folder)] == [1, 1, 2, 2, 3, 3]
    third = run(images, make_contract(mean=(0.5, 0.5, 0.5)), name="third")
    assert third.reused == 0


def test_an_interrupted_run_continues(
    make_tree: MakeTree, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    images = make_tree(per_class=4)
    made: list[int] = []
    whole = chunk.run

    def dies_at_the_third(task: chunk.ChunkTask) -> chunk.ChunkResult:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(len(task.paths))
        return whole(task)

    monkeypatch.setattr(build.chunk, "run", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run(images)
    assert {path.name for path in (tmp_path / "datasets").iterdir()} == {".store", ".set.lock"}
    monkeypatch.setattr(build.chunk, "run", whole)
    done = run(images)
    assert done.reused == 2
    assert done.dataset.counts["images"] == 12


@pytest.mark.parametrize("damage", ["bytes", "notes", "gone"])
def test_a_damaged_store_is_not_believed(
    make_tree: MakeTree, run: Run, tmp_path: Path, damage: str
) -> None:
    images = make_tree()
    wanted = run(images).dataset.shards
    for packed in (tmp_path / "datasets" / ".store").glob("*/*.bin"):
        if damage == "notes":
            packed.with_suffix(".json").write_text("{")
            continue
        size = packed.stat().st_size
        packed.unlink()
        if damage == "bytes":
            packed.write_bytes(b"\0" * size)
    again = run(images, name="again")
    assert again.reused == 0
    assert again.dataset.shards == wanted


@pytest.mark.parametrize("part", ["manifest.jsonl", "shards/shard-00001.bin", "dataset.json"])
def test_a_dataset_with_a_missing_part_is_made_again(
    make_tree: MakeTree, run: Run, part: str
) -> None:
    images = make_tree()
    done = run(images)
    (done.folder / part).unlink()
    again = run(images)
    assert again.changed
    assert (again.folder / part).is_file()


def test_unusable_files_fail_the_job_and_are_all_listed(
    make_tree: MakeTree, run: Run, tmp_path: Path
) -> None:
    images = make_tree()
    (images / "n01" / "broken.png").write_bytes((images / "n01/n01_0.png").read_bytes()[:300])
    (images / "n02" / "empty.jpg").touch()
    (images / "n03" / "notes.txt").write_text("not a picture")
    with pytest.raises(DatasetError) as caught:
        run(images, max_skipped=2)
    assert "3 of 9 files cannot be used (allowed: 2)" in str(caught.value)
    report = tmp_path / "datasets" / "set.skipped.jsonl"
    assert str(report) in str(caught.value)
    reasons = {e["path"]: e["reason"] for e in map(json.loads, report.read_text().splitlines())}
    assert reasons["n02/empty.jpg"] == "empty file"
    assert reasons["n03/notes.txt"] == "not an image"
    assert "truncated" in reasons["n01/broken.png"]
    assert not (tmp_path / "datasets" / "set").exists()


def test_unusable_files_below_the_limit_are_counted_and_numbering_has_no_gap(
    make_tree: MakeTree, run: Run
) -> None:
    images = make_tree()
    (images / "n01" / "n01_0a.png").write_bytes(b"x")
    done = run(images, max_skipped=1)
    assert done.dataset.counts == {"images": 6, "skipped": 1, "classes": 3}
    assert read_skipped(done.folder) == [{"path": "n01/n01_0a.png", "reason": "not an image"}]
    samples = list(read_manifest(done.folder))
    assert [sample.index for sample in samples] == list(range(6))
    assert [s.count for s in done.dataset.shards] == [3, 3]
    assert samples[3].offset == 0


def test_no_usable_file_at_all_fails_whatever_the_limit(make_tree: MakeTree, run: Run) -> None:
    images = make_tree(per_class=0)
    (images / "n01").mkdir()
    (images / "n01" / "a.png").write_bytes(b"x")
    with pytest.raises(DatasetError, match="1 of 1 files cannot be used"):
        run(images, max_skipped=10)


def test_the_old_dataset_survives_a_failed_attempt(make_tree: MakeTree, run: Run) -> None:
    images = make_tree()
    before = run(images)
    (images / "n01" / "bad.png").write_bytes(b"x")
    with pytest.raises(DatasetError):
        run(images)
    assert load(before.folder) == before.dataset
    assert len(list(read_manifest(before.folder))) == 6


def test_a_file_that_may_not_be_read_is_listed(make_tree: MakeTree, run: Run) -> None:
    images = make_tree()
    (images / "n01" / "dead.png").symlink_to("nowhere.png")
    done = run(images, max_skipped=1)
    assert read_skipped(done.folder) == [
        {"path": "n01/dead.png", "reason": "cannot be read: No such file or directory"}
    ]


def test_duplicates_and_odd_names_are_samples_like_others(make_tree: MakeTree, run: Run) -> None:
    images = make_tree()
    data = (images / "n01/n01_0.png").read_bytes()
    names = ["ein Bild.JPEG", "größe-中文.png", 'it\'s "quoted".png']
    for name in names:
        (images / "n02" / name).write_bytes(data)
    done = run(images)
    samples = {Path(s.path).name: s for s in read_manifest(done.folder)}
    assert len({samples[name].sha256 for name in names}) == 1
    assert {samples[name].label for name in names} == {1}
    assert done.dataset.counts["images"] == 9


def test_a_label_outside_of_the_model_is_refused(
    make_tree: MakeTree, run: Run, make_contract: MakeContract
) -> None:
    with pytest.raises(DatasetError, match="has class 2, but the model small has 2 classes"):
        run(make_tree(), make_contract(names=("a", "b")))


def test_worker_processes_make_the_same_dataset(make_tree: MakeTree, run: Run) -> None:
    images = make_tree(per_class=12)
    one = run(images, name="one", workers=1, out=images.parent / "a")
    many = run(images, name="one", workers=2, out=images.parent / "b")
    assert many.dataset == one.dataset
    assert many.reused == 0
    assert (many.folder / "manifest.jsonl").read_text() == (
        one.folder / "manifest.jsonl"
    ).read_text()


def test_a_plan_says_beforehand_whether_anything_would_change(
    make_tree: MakeTree, make_contract: MakeContract, run: Run, tmp_path: Path
) -> None:
    images = make_tree()
    todo = plan(
        Request(images), make_contract(), Settings("set", tmp_path / "datasets", shard_size=4)
    )
    assert unchanged(todo) is None
    assert not (tmp_path / "datasets").exists()
    run(images)
    assert unchanged(todo) is not None
    os.utime(images / "n01/n01_0.png", (1, 1))
    touched = plan(Request(images), make_contract(), todo.settings)
    assert unchanged(touched) is None
