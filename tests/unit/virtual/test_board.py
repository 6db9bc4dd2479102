from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k230_lib.errors import EnvironmentProblemError, InputError, VirtualBoardError
from k230_lib.virtual import busybox, card, control, tools
from k230_lib.virtual.board import BoardSettings
from k230_lib.virtual.commands import boards_of
from k230_lib.virtual.linux_side import partitions_text


def test_addresses_follow_from_the_number() -> None:
    settings = BoardSettings.from_vars({"number": 7, "card_size": "1GiB", "speed": "0.5"})
    assert settings.address == "10.230.7.2"
    assert settings.host_address == "10.230.7.1"
    assert settings.console == "socket://127.0.0.1:23007"
    assert settings.rfc2217 == "rfc2217://127.0.0.1:24007"
    assert settings.card_size == 1 << 30
    assert settings.speed == 0.5
    assert BoardSettings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"number": 0}, "outside 1 to 250"),
        ({}, "lacks its number"),
        ({"number": "one"}, "not a number"),
        ({"number": 1, "colour": "red"}, "no setting colour"),
        ({"number": 1, "card_size": "100MB"}, "outside 600 MiB to 64 GB"),
        ({"number": 1, "card_size": "big"}, "not a size"),
        ({"number": 1, "disk": "sda"}, "none of mmcblk0"),
        ({"number": 1, "speed": 3}, "outside 0 to 1"),
        ({"number": 1, "sdk": "new"}, "not like 1.9"),
    ],
)
def test_wrong_settings_are_named(values: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        BoardSettings.from_vars(values)


@pytest.mark.parametrize(
    ("text", "size"), [("4GiB", 4 << 30), ("64GB", 64 * 10**9), ("700M", 700 * 10**6 // 512 * 512)]
)
def test_card_sizes(text: str, size: int) -> None:
    assert card.parse_size(text) == size


def test_older_sdk_has_a_smaller_root_and_an_earlier_fourth_partition() -> None:
    assert card.layout_of("1.9").app_start == 256 << 20
    assert card.layout_of("1.8").app_start == 208 << 20


_INVENTORY = """
k230:
  vars:
    virtual_board: {card_size: 1GiB}
  children:
    rack:
      hosts:
        a: {virtual_board: {number: 11}}
        real: {}
  hosts:
    b: {virtual_board: {number: 12, sdk: "1.8"}}
"""


def test_boards_of_an_inventory(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text(_INVENTORY.replace("        real: {}\n", ""))
    boards = {board.name: board.settings for board in boards_of(file, state_root=tmp_path)}
    assert boards["a"] == BoardSettings(number=11, card_size=1 << 30)
    assert boards["b"] == BoardSettings(number=12, card_size=1 << 30, sdk="1.8")
    with pytest.raises(InputError, match="no virtual board c"):
        boards_of(file, ["c"], state_root=tmp_path)


def test_two_boards_with_one_number_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text(
        "k230: {hosts: {a: {virtual_board: {number: 3}}, b: {virtual_board: {number: 3}}}}"
    )
    with pytest.raises(InputError, match="a and b both have number 3"):
        boards_of(file, state_root=tmp_path)


def test_hidden_applets_cannot_be_called_and_the_others_can(tmp_path: Path) -> None:
    source = tools.find("busybox")
    if source is None:
        pytest.skip("busybox is not installed")
    table = busybox.applets_of(Path(source))
    hidden = {"stat", "timeout", "nc", "tac", "od"} & set(table)
    copy = tmp_path / "busybox"
    copy.write_bytes(busybox.hide(Path(source).read_bytes(), table, hidden))
    copy.chmod(0o755)
    for name in table:
        run = subprocess.run([copy, name, "--help"], capture_output=True, text=True, check=False)
        assert ("applet not found" in run.stderr) == (name in hidden), name
    shell = [copy, "sh", "-c", "PATH=/nowhere; stat / || ls -d /"]
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == "/\n"


def test_missing_programs_are_told_all_at_once_with_one_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = {"parted", "mcopy", "sshd"}
    found = tools.find
    monkeypatch.setattr(tools, "find", lambda name: None if name in gone else found(name) or name)
    monkeypatch.setattr(tools.os, "geteuid", lambda: 0)
    with pytest.raises(EnvironmentProblemError) as caught:
        tools.require()
    assert "mcopy, parted, sshd" in str(caught.value)
    assert "apt-get install -y mtools openssh-server parted" in str(caught.value)


def test_without_root_the_remedies_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.os, "geteuid", lambda: 1000)
    with pytest.raises(EnvironmentProblemError, match=r"need root.*sudo"):
        tools.require()


def test_a_board_that_does_not_run_is_told() -> None:
    with pytest.raises(VirtualBoardError, match=r"virtual board 249 does not run.*k230 boards up"):
        control.ask(249, "status")


def test_control_server_answers_errors_as_errors() -> None:
    def fail() -> None:
        raise VirtualBoardError("it is off")

    server = control.ControlServer(248, {"add": lambda a, b: a + b, "fail": fail})
    server.start()
    assert control.ask(248, "add", {"a": 1, "b": 2}) == 3
    with pytest.raises(VirtualBoardError, match="it is off"):
        control.ask(248, "fail")
    with pytest.raises(VirtualBoardError, match="bad request"):
        control.ask(248, "nosuch")
    with pytest.raises(OSError, match="in use"):
        control.ControlServer(248, {})


def test_partitions_file_names_the_disk_as_the_board_does() -> None:
    text = partitions_text("no-such-loop", "mmcblk1")
    assert text == "major minor  #blocks  name\n\n"
