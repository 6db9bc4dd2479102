"""`ansible-playbook provision.yml`, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from k230_lib.board.shell import SshShell, checked
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import virtual_board

pytestmark = [pytest.mark.board, pytest.mark.slow]
_ROOT = Path(__file__).parents[3]
_NUMBERS = (143, 144, 145, 146, 147)


@dataclass
class Run:
    """What a run printed: the recap by board, and everything."""

    text: str
    code: int

    def recap(self, board: str) -> dict[str, int]:
        (line,) = re.findall(rf"^{board}\s+: (.*)$", self.text, re.MULTILINE)
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}

    def changed_tasks(self) -> list[str]:
        """Names of the tasks that changed something, in order."""
        names, task = [], ""
        for line in self.text.splitlines():
            if found := re.match(r"TASK \[(.*?)\] ", line):
                task = found[1]
            elif line.startswith("changed: "):
                names.append(task)
        return names


@dataclass
class Rack:
    """Running boards with an inventory, and a count of SSH round trips for each."""

    boards: list[LightBoard]
    folder: Path

    def play(self, *arguments: str, **variables: object) -> Run:
        command = [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "provision.yml"),
            *("-i", str(self.folder / "hosts.json"), *arguments),
            *("-e", json.dumps({"storage_backup_dir": str(self.folder / "saved"), **variables})),
        ]
        for log in self.folder.glob("trips-*"):
            log.unlink()
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=_ROOT, env=environment, check=False
        )
        return Run(done.stdout + done.stderr, done.returncode)

    def round_trips(self, board: LightBoard) -> int:
        log = self.folder / f"trips-{board.settings.address}"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def ssh(self, board: LightBoard) -> SshShell:
        return SshShell(board.name, f"root@{board.settings.address}", board.ssh_options())

    def files(self, board: LightBoard) -> str:
        return checked(
            self.ssh(board), "cd /sharefs; find . -type f -print0 | xargs -0 -r sha256sum | sort"
        )


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Callable[[int], Rack]]:
    """Starts that many boards."""
    if os.geteuid() != 0:
        pytest.skip("virtual boards need root")
    with ExitStack() as stack:

        def start(count: int) -> Rack:
            boards = [
                stack.enter_context(virtual_board(number, name=f"vb{number}", card_size="1GiB"))
                for number in _NUMBERS[:count]
            ]
            # every ssh leaves a line with the address that it goes to
            wrapper = tmp_path / "ssh"
            real = shutil.which("ssh")
            wrapper.write_text(
                "#!/bin/sh\nfor a; do case $a in 10.230.*) break;; esac; done\n"
                f'echo x >>{shlex.quote(str(tmp_path))}/trips-"$a"\nexec {real} "$@"\n'
            )
            wrapper.chmod(0o755)
            hosts = {
                board.name: {
                    "ansible_host": board.settings.address,
                    "ansible_user": "root",
                    "ansible_ssh_executable": str(wrapper),
                    "ansible_ssh_common_args": " ".join(board.ssh_options()),
                    "k230_console": board.settings.console,
                }
                for board in boards
            }
            (tmp_path / "hosts.json").write_text(json.dumps({"k230": {"hosts": hosts}}))
            return Rack(boards, tmp_path)

        yield start


def test_check_predicts_the_run_and_the_second_run_changes_nothing(rack) -> None:
    bench = rack(1)
    (board,) = bench.boards
    files = bench.files(board)

    guess = bench.play("--check", "--diff")
    assert guess.code == 0, guess.text
    assert "-4 fat32appfs: sectors 524288-1048575, 256.0 MiB" in guess.text
    assert "+4 fat32appfs: sectors 524288-2097118, 768.0 MiB" in guess.text
    assert "parted -s -a minimal /dev/mmcblk1 unit s resizepart 4 2097118s" in guess.text
    assert bench.files(board) == files

    real = bench.play("--diff")
    assert real.code == 0, real.text
    assert real.changed_tasks() == guess.changed_tasks() and len(real.changed_tasks()) == 4
    assert _scripts(real.text) == _scripts(guess.text) and _scripts(real.text)
    assert bench.round_trips(board) <= 30
    assert bench.files(board) == files

    again = bench.play()
    assert again.recap(board.name)["changed"] == 0
    assert bench.round_trips(board) <= 12
    assert bench.files(board) == files


def _scripts(text: str) -> list[str]:
    """The scripts that a diff showed, line by line."""
    wanted, lines = False, []
    for line in text.splitlines():
        if line.startswith("# "):
            wanted = True
        elif line.startswith(("changed: ", "TASK ", "ok: ")):
            wanted = False
        elif wanted and not line.startswith("  vb"):
            lines.append(line)
    return lines


def test_boards_work_side_by_side_and_one_failure_stops_only_itself(rack) -> None:
    bench = rack(4)
    files = {board.name: bench.files(board) for board in bench.boards}
    bad = bench.boards[2]
    checked(bench.ssh(bad), "rm /usr/sbin/parted")
    run = bench.play()
    for board in bench.boards:
        assert bench.files(board) == files[board.name]
        recap = run.recap(board.name)
        assert recap["failed"] == (1 if board is bad else 0), run.text
        kind = checked(bench.ssh(board), "grep ' /sharefs ' /proc/mounts").split()[2]
        assert (kind == "ext4") == (board is not bad)
    assert f"{bad.name}: the image on the board has no parted" in run.text
    assert run.code != 0


def test_unreachable_board_is_told_and_the_others_go_on(rack) -> None:
    bench = rack(2)
    bench.boards[1].stop()
    run = bench.play(access_wait_timeout=3)
    good, gone = (board.name for board in bench.boards)
    assert run.recap(good)["failed"] == 0 and run.recap(good)["changed"] == 4, run.text
    assert run.recap(gone)["unreachable"] == 1
    assert f"{gone}: not ready within 3 s" in run.text


_BAD_INPUT = {
    "unit 'XB' of size '8.5XB' is not known": {"storage_size": "8.5XB"},
    "size '-5GB' is not a positive number": {"storage_size": "-5GB"},
    "cannot have 9GB": {"storage_size": "9GB"},
    "argument 'storage_partition' is of type str": {"storage_partition": "p4"},
    "has no partition 9": {"storage_partition": 9},
    "mount point 'share fs' is not a plain": {"storage_mountpoint": "share fs"},
    "label 'no blanks' is not": {"storage_label": "no blanks"},
    "'zz' is not the MAC address": {"access_mac": "zz"},
}


def test_bad_input_is_refused_before_anything_is_written(rack) -> None:
    bench = rack(1)
    (board,) = bench.boards
    for words, variables in _BAD_INPUT.items():
        run = bench.play(**variables)
        assert run.code != 0
        assert words in " ".join(run.text.split()), run.text
        assert "Traceback" not in run.text
        assert run.recap(board.name)["changed"] == 0


def test_two_boards_with_one_address_or_port_are_refused(rack) -> None:
    bench = rack(1)
    inventory = bench.folder / "hosts.json"
    hosts = json.loads(inventory.read_text())
    (name, values), *_ = hosts["k230"]["hosts"].items()
    for key, words in (("k230_console", "one address"), ("ansible_host", "one console")):
        hosts["k230"]["hosts"]["twin"] = {**values, key: "other"}
        inventory.write_text(json.dumps(hosts))
        run = bench.play()
        assert run.code != 0 and f"two boards of the inventory have {words}" in run.text
        assert run.recap(name)["failed"] == 1 and not bench.round_trips(bench.boards[0])


def test_access_by_key_name_and_password_without_a_trace(rack, tmp_path: Path) -> None:
    bench = rack(1)
    (board,) = bench.boards
    key = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    wanted = {
        "access_public_keys": [f"{key}.pub"],
        "access_root_password": "rather-secret-7",
        "ansible_ssh_private_key_file": str(key),
    }
    run = bench.play("-vvv", "--diff", **wanted)
    assert run.code == 0, run.text
    assert "rather-secret-7" not in run.text and "$6$" not in run.text
    assert bench.play(**wanted).recap(board.name)["changed"] == 0
    # the empty password does not let anybody in any more, the key does
    options = [*board.ssh_options(), "-o", "BatchMode=yes", "-o", "ControlPath=none"]
    host = f"root@{board.settings.address}"
    refused = subprocess.run(["ssh", *options, host, "true"], capture_output=True, check=False)
    assert refused.returncode == 255
    shell = SshShell(board.name, host, [*options, "-i", str(key)])
    assert checked(shell, "hostname; cat /etc/hostname").split() == [board.name] * 2


@pytest.mark.fault
def test_four_boards_take_at_most_twice_the_time_of_one(rack) -> None:
    """In one run on one machine, so that the ratio means something."""
    bench = rack(5)
    seconds = []
    for boards in (bench.boards[:1], bench.boards[1:]):
        begun = time.monotonic()
        run = bench.play("--limit", ",".join(board.name for board in boards))
        seconds.append(time.monotonic() - begun)
        assert run.code == 0, run.text
    print(f"one board {seconds[0]:.1f} s, four boards {seconds[1]:.1f} s")
    assert seconds[1] <= 2 * seconds[0]
