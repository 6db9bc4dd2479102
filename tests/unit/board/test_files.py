"""Transfer of files, against a real shell of this machine in a temporary folder."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from k230_lib.board import file_sending
from k230_lib.board.file_answers import parse_df
from k230_lib.board.files import (
    PutRequest,
    fetch_bytes,
    fetch_file,
    free_space,
    put_file,
    put_many,
    remove_files,
    would_change,
)
from k230_lib.board.shell import CommandResult
from k230_lib.errors import (
    BoardCommandError,
    BoardSpaceError,
    BoardUnreachableError,
    InputError,
    StorageError,
    TransferError,
)

SHELL = ["busybox", "sh"] if shutil.which("busybox") else ["sh"]


class LocalShell:
    """A board's shell stand-in: runs here, counts, and can break or damage what passes."""

    board = "board1"

    def __init__(self) -> None:
        self.round_trips = 0
        self.bytes_sent = 0
        self.cut_at: int | None = None
        self.garble = 0
        self.twice = False
        self.stderr: bytes | None = None
        self.before_asking = ""
        self.notes = "/tmp/k230-check"
        self.cut_after: int | None = None
        self.bytes_arrived = 0

    def run(
        self, script: str, *, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        self.round_trips += 1
        script = script.replace("/tmp/k230-check", self.notes)
        data = stdin or b""
        self.bytes_sent += len(data)
        if self.stderr is not None and "cat >" in script:
            return CommandResult(1, b"0\n", self.stderr)
        cut = self.cut_at is not None and "cat >" in script
        if cut:
            data = data[: self.cut_at]
        if self.before_asking and "kill -0" in script:
            subprocess.run([*SHELL, "-c", self.before_asking], check=False, capture_output=True)
        if self.cut_after is not None and "cat >" in script:
            self.cut_at = max(0, self.cut_after - self.bytes_arrived)
            cut = self.cut_at < len(data)
            data = data[: self.cut_at]
            self.bytes_arrived += len(data)
        if self.garble and len(data) > 1000:
            self.garble -= 1
            data = data[:900] + bytes([data[900] ^ 1]) + data[901:]
        for _ in range(2 if self.twice else 1):
            done = subprocess.run(
                [*SHELL, "-c", script], input=data, capture_output=True, timeout=60, check=False
            )
        if cut:
            self.cut_at = None
            raise BoardUnreachableError("the connection broke", board=self.board)
        return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    made = LocalShell()
    made.notes = f"{tmp_path}/.note"
    return made


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sending, "CHUNK", 64 << 10)
    monkeypatch.setattr(file_sending, "SMALL", 32 << 10)


def noise(count: int, seed: int = 0) -> bytes:
    block = b"".join(hashlib.sha256(bytes([seed, i])).digest() for i in range(256))
    return (block * (count // len(block) + 1))[:count]


@pytest.mark.parametrize("size", [0, 1, 1000, 64 << 10, (200 << 10) + 7])
def test_file_arrives_whole_and_is_not_sent_again(
    shell: LocalShell, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    target = tmp_path / "deep er" / "file"
    first = put_file(shell, noise(size), str(target))
    assert (first.changed, first.bytes_sent) == (True, size)
    assert target.read_bytes() == noise(size)
    before = shell.round_trips
    second = put_file(shell, noise(size), str(target))
    assert (second.changed, second.bytes_sent) == (False, 0)
    assert shell.round_trips == before + 1
    assert [p.name for p in target.parent.iterdir()] == ["file"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep er", "elsewhere"]
    assert not list(elsewhere.iterdir())


def test_other_content_of_the_same_size_is_replaced(shell: LocalShell, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(noise(5000, seed=1))
    assert put_file(shell, noise(5000), str(target)).changed
    assert target.read_bytes() == noise(5000)


def test_cut_transfer_goes_on_where_it_stopped(shell: LocalShell, tmp_path: Path) -> None:
    target, content = tmp_path / "file", noise(300 << 10)
    put = [PutRequest(content, str(target))]
    shell.cut_at = 10_000
    with pytest.raises(BoardUnreachableError):
        put_many(shell, put)
    assert not target.exists()
    assert put_many(shell, put)[0].bytes_sent == len(content) - 10_000
    assert target.read_bytes() == content


def test_part_of_another_file_is_not_continued(shell: LocalShell, tmp_path: Path) -> None:
    target, content = tmp_path / "file", noise(300 << 10)
    target.with_name("file.part").write_bytes(noise(100 << 10, seed=9))
    assert put_file(shell, content, str(target)).bytes_sent == len(content)
    assert target.read_bytes() == content


def test_command_that_runs_twice_does_no_harm(shell: LocalShell, tmp_path: Path) -> None:
    target, content = tmp_path / "file", noise(300 << 10)
    target.with_name("file.part").write_bytes(content[:4096])

    # A connection that retries repeats the command; its standard input is gone by then.
    def run(script: str, *, stdin: bytes | None = None, timeout: float | None = None):
        LocalShell.run(shell, script, stdin=stdin)
        return LocalShell.run(shell, script, stdin=stdin)

    twice = LocalShell()
    twice.run = run  # type: ignore[method-assign]
    put_file(twice, content, str(target))
    assert target.read_bytes() == content


@pytest.mark.parametrize("size", [2000, 200 << 10])
def test_damage_on_the_way_is_sent_again(shell: LocalShell, tmp_path: Path, size: int) -> None:
    shell.garble = 1
    put_file(shell, noise(size), str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == noise(size)


@pytest.mark.parametrize("size", [2000, 200 << 10])
def test_steady_damage_ends_in_an_error_and_leaves_the_old_file(
    shell: LocalShell, tmp_path: Path, size: int
) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    shell.garble = 1000
    with pytest.raises(TransferError, match=r"^board1: .*arrived differently 3 times"):
        put_file(shell, noise(size), str(target))
    assert target.read_bytes() == b"old"


def test_many_small_files_take_two_round_trips(shell: LocalShell, tmp_path: Path) -> None:
    requests = [
        PutRequest(noise(300, seed=i), str(tmp_path / f"d{i % 3}" / f"f{i}")) for i in range(60)
    ]
    outcomes = put_many(shell, requests)
    assert all(outcome.changed for outcome in outcomes)
    assert shell.round_trips == 2
    for i, request in enumerate(requests):
        assert Path(request.target).read_bytes() == noise(300, seed=i)
    changed = PutRequest(b"new", requests[7].target)
    again = put_many(shell, [*requests[:7], changed, *requests[8:]])
    assert [i for i, outcome in enumerate(again) if outcome.changed] == [7]


def large_requests(folder: Path) -> list[PutRequest]:
    return [
        PutRequest(noise(150 << 10, seed=i), str(folder / f"la'rge {i}"), mode=0o640)
        for i in range(4)
    ]


def assert_all_there(requests: list[PutRequest]) -> None:
    for request in requests:
        target = Path(request.target)
        assert target.read_bytes() == request.source
        assert target.stat().st_mode & 0o777 == 0o640
        assert not target.with_name(target.name + ".part").exists()


def test_large_files_are_checked_while_the_next_is_sent(shell: LocalShell, tmp_path: Path) -> None:
    requests = large_requests(tmp_path)
    outcomes = put_many(shell, requests)
    assert [outcome.bytes_sent for outcome in outcomes] == [150 << 10] * 4
    # one looks, three pieces for each file, one asks what became of the checks
    assert shell.round_trips == 1 + 4 * 3 + 1
    assert_all_there(requests)
    assert not any(outcome.changed for outcome in put_many(shell, requests))


@pytest.mark.parametrize("twice", [False, True])
def test_damage_of_any_large_file_is_sent_again(
    shell: LocalShell, tmp_path: Path, twice: bool
) -> None:
    requests = large_requests(tmp_path)
    shell.garble, shell.twice = 2, twice
    outcomes = put_many(shell, requests)
    assert outcomes[0].bytes_sent == 300 << 10
    assert sum(outcome.bytes_sent for outcome in outcomes) == 750 << 10
    assert_all_there(requests)


def test_a_check_that_died_is_made_again(shell: LocalShell, tmp_path: Path) -> None:
    requests = large_requests(tmp_path)
    for dead in (f"rm -f {shell.notes}-*", f"kill -9 $(cat {shell.notes}-*.job)"):
        shell.before_asking = dead
        put_many(shell, requests)
        assert_all_there(requests)
        for request in requests:
            Path(request.target).unlink()


def test_without_room_for_notes_the_board_checks_at_once(shell: LocalShell, tmp_path: Path) -> None:
    requests = large_requests(tmp_path)
    shell.notes = "/proc/k230-check"
    put_many(shell, requests)
    assert_all_there(requests)


def test_of_two_files_for_one_target_the_last_counts(shell: LocalShell, tmp_path: Path) -> None:
    target = str(tmp_path / "file")
    old, new = PutRequest(noise(100 << 10, seed=1), target), PutRequest(noise(9, seed=2), target)
    first, second = put_many(shell, [old, new])
    assert (first.bytes_sent, second.bytes_sent) == (0, 9)
    assert Path(target).read_bytes() == new.source


def test_a_folder_is_no_target(shell: LocalShell, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"^board1: .*/folder is a folder"):
        put_file(shell, b"x", str(tmp_path / "folder"))


def test_a_cut_between_large_files_sends_nothing_twice(shell: LocalShell, tmp_path: Path) -> None:
    requests = large_requests(tmp_path)
    total = sum(len(request.source) for request in requests if isinstance(request.source, bytes))
    source = random.Random(4)
    sent = 0
    for _ in range(40):
        shell.bytes_arrived = 0
        shell.cut_after = source.randrange(200 << 10)
        try:
            put_many(shell, requests)
            sent += shell.bytes_arrived
            break
        except BoardUnreachableError:
            sent += shell.bytes_arrived
    assert_all_there(requests)
    assert sent == total


def test_mode_is_set(shell: LocalShell, tmp_path: Path) -> None:
    put_file(shell, noise(100), str(tmp_path / "small"), mode=0o755)
    put_file(shell, noise(100 << 10), str(tmp_path / "large"), mode=0o700)
    assert (tmp_path / "small").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "large").stat().st_mode & 0o777 == 0o700


def test_check_mode_changes_nothing(shell: LocalShell, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"x")
    requests = [
        PutRequest(b"x", str(tmp_path / "there")),
        PutRequest(b"y", str(tmp_path / "new" / "y")),
    ]
    assert would_change(shell, requests) == [False, True]
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_too_large_for_the_card_is_refused_before_sending(
    shell: LocalShell, tmp_path: Path
) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 50 if shutil.disk_usage(tmp_path).total > 1 << 44 else 1 << 43)
    with pytest.raises(BoardSpaceError, match=r"^board1: .*MiB are free\. Next: delete files"):
        put_file(shell, huge, str(tmp_path / "target"), sha256="0" * 64)
    assert shell.bytes_sent < 1000


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (b"sh: write error: No space left on device\n", BoardSpaceError),
        (b"sh: can't create x: Read-only file system\n", StorageError),
    ],
)
def test_what_the_board_says_becomes_the_kind_of_error(
    shell: LocalShell, tmp_path: Path, stderr: bytes, kind: type[Exception]
) -> None:
    shell.stderr = stderr
    with pytest.raises(kind):
        put_file(shell, noise(100 << 10), str(tmp_path / "file"))


def test_fetch_file_and_bytes(shell: LocalShell, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "in" / "target"
    source.write_bytes(noise(150 << 10))
    assert fetch_file(shell, str(source), target).changed
    assert target.read_bytes() == source.read_bytes()
    assert not fetch_file(shell, str(source), target).changed
    assert fetch_bytes(shell, str(source)) == source.read_bytes()
    assert fetch_bytes(shell, str(tmp_path / "none")) is None
    with pytest.raises(TransferError, match="no file"):
        fetch_file(shell, str(tmp_path / "none"), target)
    with pytest.raises(TransferError, match="not what was expected"):
        fetch_file(shell, str(source), target, sha256="0" * 64)


def test_remove_files(shell: LocalShell, tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(b"x")
    remove_files(shell, [str(tmp_path / "a b"), str(tmp_path / "missing")])
    assert list(tmp_path.iterdir()) == []


def test_paths_must_be_absolute(shell: LocalShell) -> None:
    with pytest.raises(InputError, match="absolute"):
        put_file(shell, b"x", "relative")


def test_progress_ends_at_the_total(shell: LocalShell, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    put_file(
        shell, noise(150 << 10), str(tmp_path / "f"), progress=lambda d, t: seen.append((d, t))
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (150 << 10, 150 << 10)


def test_free_space(shell: LocalShell, tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    assert abs(free_space(shell, str(tmp_path)) - free) < 1 << 30
    with pytest.raises(BoardCommandError):
        parse_df("df: /nowhere: No such file or directory")
