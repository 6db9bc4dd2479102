"""Listings of files, and cutting them into transfers and putting them together again."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k230_lib.board.listing import (
    MIB,
    STAGING,
    Manifest,
    SavedFile,
    missing,
    parcels,
    parse_listing,
    pieces,
    write_pieces,
)
from k230_lib.errors import BoardCommandError, StorageError

_A, _B = "a" * 64, "b" * 64


def _text(**sections: str) -> str:
    names = ("odd", "other", "dirs", "files", "sizes", "programs", "links")
    body = "".join(f"\n@@{name}\n{sections.get(name, '')}" for name in names)
    return body + "\n@@end\n"


def _file(path: str, size: int = 10, digest: str = _A) -> SavedFile:
    return SavedFile(path, digest, size, False)


def test_listing_with_names_that_people_give() -> None:
    manifest = parse_listing(
        _text(
            dirs=".\n./app\n./app/empty dir\n",
            files=f"{_A}  ./app/run.elf\n{_B}  ./名前 \n",
            sizes="  1234 ./app/run.elf\n0 ./名前 \n  1234 total\n",
            programs="./app/run.elf\n",
            links="./latest\napp/run.elf\n",
        ),
        board="b1",
    )
    assert manifest.dirs == ("app", "app/empty dir")
    assert manifest.files == (
        SavedFile("app/run.elf", _A, 1234, True),
        SavedFile("名前 ", _B, 0, False),
    )
    assert manifest.links == (("latest", "app/run.elf"),)
    assert manifest.bytes == 1234 and not manifest.empty


def test_a_file_called_total_counts() -> None:
    text = _text(files=f"{_A}  ./total\n", sizes="7 ./total\n")
    assert parse_listing(text, board="b1").files == (_file("total", 7),)


def test_empty_partition() -> None:
    assert parse_listing(_text(dirs=".\n"), board="b1").empty


@pytest.mark.parametrize(("section", "words"), [("odd", "line break"), ("other", "not a file")])
def test_what_could_not_be_put_back_is_refused_before_anything(section: str, words: str) -> None:
    with pytest.raises(StorageError, match=f"b1: './x' .*{words}"):
        parse_listing(_text(**{section: "./x\n"}), board="b1")


def test_cut_off_or_changing_listing() -> None:
    with pytest.raises(BoardCommandError, match="cut off"):
        parse_listing("\n@@odd\n\n@@other\n", board="b1")
    with pytest.raises(BoardCommandError, match="changed while"):
        parse_listing(_text(files=f"{_A}  ./x\n"), board="b1")


def test_manifest_survives_json() -> None:
    manifest = Manifest(("d",), (_file("d/f\udcff"),), (("l", "t"),))
    assert Manifest.from_json(manifest.to_json()) == manifest


@given(
    st.lists(st.integers(0, 9 * MIB), max_size=6),
    st.integers(1, 4),
)
def test_pieces_cover_every_byte_once(sizes: list[int], size: int) -> None:
    files = [
        SavedFile(f"f{number}", f"{number:064d}", value, False)
        for number, value in enumerate(sizes)
    ]
    got: dict[str, int] = {}
    for batch in pieces(files, size=size * MIB):
        assert sum(piece.bytes for piece in batch) < 2 * size * MIB or len(batch) == 1
        for piece in batch:
            assert got.get(piece.file.path, 0) == piece.skip * MIB
            got[piece.file.path] = piece.skip * MIB + piece.bytes
    assert got == {file.path: file.bytes for file in files}


def test_pieces_go_on_where_a_large_file_was_cut() -> None:
    large = SavedFile("large", _A, 9 * MIB + 5, False)
    batches = list(pieces([large], {_A: 5 * MIB + 77}, size=2 * MIB))
    assert [(batch[0].skip, batch[0].bytes) for batch in batches] == [
        (5, 2 * MIB),
        (7, 2 * MIB),
        (9, 5),
    ]


def test_equal_contents_go_once() -> None:
    assert len([p for batch in pieces([_file("a"), _file("b")]) for p in batch]) == 1


def test_short_answer_is_noticed() -> None:
    (batch,) = pieces([_file("a"), _file("b", digest=_B)])
    stored: list[bytes] = []
    assert not write_pieces(batch, bytes(19), lambda piece, data: stored.append(data))
    assert stored == []
    assert write_pieces(batch, b"a" * 10 + b"b" * 10, lambda piece, data: stored.append(data))
    assert stored == [b"a" * 10, b"b" * 10]


def _receive(parcel: bytes, root: Path) -> None:
    """What the board's script does with a parcel."""
    line, _, rest = parcel.partition(b"\n")
    if line == b"tar":
        with tarfile.open(fileobj=io.BytesIO(rest)) as archive:
            archive.extractall(root, filter="tar")
        return
    skip, mode, path = line.decode().split(" ", 2)
    with (root / path).open("r+b" if skip != "0" else "wb") as file:
        file.seek(int(skip) * MIB)
        file.write(rest)
    (root / path).chmod(int(mode, 8))


def test_parcels_put_everything_back(tmp_path: Path) -> None:
    contents = {
        "small": b"x" * 3,
        "empty": b"",
        "d/deep/" + "n" * 120: b"long name",
        "d/large": bytes(range(256)) * 4096 * 3 + b"end",
        "middle": b"m" * (MIB - 1),
        "other": b"o" * (MIB - 1),
    }
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    files = []
    for path, data in contents.items():
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        files.append(SavedFile(path, digest, len(data), path == "d/large"))
    manifest = Manifest(("d", "d/deep"), tuple(files), (("link", "small"),))
    target = tmp_path / "target"
    target.mkdir()
    for parcel in parcels(manifest, lambda file: blobs / file.sha256, size=MIB):
        assert len(parcel) < 3 * MIB
        _receive(parcel, target)
    for path, data in contents.items():
        assert (target / path).read_bytes() == data
    assert (target / "link").readlink() == Path("small")
    assert (target / "d/large").stat().st_mode & 0o111
    assert not (target / "small").stat().st_mode & 0o111


def test_missing_counts_staged_and_placed_files() -> None:
    wanted = Manifest(("d",), (_file("a"), _file("d/b"), _file("c", digest=_B)))
    there = Manifest(
        (STAGING, f"{STAGING}/d"),
        (_file("a"), _file(f"{STAGING}/d/b"), _file(f"{STAGING}/c", digest=_A)),
    )
    rest = missing(wanted, there, board="b1")
    # the damaged one in the staging directory is sent again
    assert rest == Manifest((), (_file("c", digest=_B),))


def test_file_written_by_somebody_meanwhile_is_never_overwritten() -> None:
    wanted = Manifest((), (_file("notes.txt"),))
    there = Manifest((), (_file("notes.txt", digest=_B),))
    with pytest.raises(StorageError, match=r"b1: notes\.txt .*somebody wrote it"):
        missing(wanted, there, board="b1")
