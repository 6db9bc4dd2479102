"""The two cores of a virtual board share /sharefs, reboot together and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import serial

from k230_lib.board.shell import SshShell
from k230_lib.errors import VirtualBoardError
from k230_lib.virtual.board import BoardSettings
from k230_lib.virtual.light import LightBoard
from k230_lib.virtual.testing import DEFAULT_CACHE, traces_of, virtual_board

pytestmark = pytest.mark.board
NUMBER = 233


@pytest.fixture(autouse=True)
def _installed(bench, program: Path) -> None:
    bench.shell.run("cat >/sharefs/probe.elf", stdin=program.read_bytes())


def test_program_of_the_big_core_shares_files_with_linux(bench) -> None:
    text = bench.console("/sharefs/probe hello")
    assert "probe hello in /\r\n" in text
    assert bench.sh("cat /sharefs/probe.out") == "from the big core\n"
    bench.console('echo "from msh" /sharefs/note')
    assert bench.sh("cat /sharefs/note") == "from msh"
    bench.sh("echo from linux >/sharefs/note")
    assert "from linux\r\n" in bench.console("cat /sharefs/note")


def test_crash_of_a_program(bench) -> None:
    text = bench.console("/sharefs/probe.elf crash")
    assert "Exception 13:Load Page Fault" in text
    assert "User Fault, killing thread: /sharefs/probe.elf" in text


def test_open_files_of_the_big_core_keep_sharefs_busy(bench) -> None:
    with serial.serial_for_url(bench.board.settings.console, timeout=0.1) as port:
        port.write(b"/sharefs/probe hold\r")
        bench.until(port, "hold in /\r\n")
        assert b"busy" in bench.shell.run("umount /sharefs").stderr
        port.write(b"\x03")
        bench.until(port, "msh />")
    bench.sh("umount /sharefs")
    assert "probe.elf" not in bench.console("ls /sharefs")
    bench.sh("mount /dev/mmcblk1p4 /sharefs")
    assert "probe.elf" in bench.console("ls /sharefs")


def test_without_the_server_process_msh_hangs_until_reset(bench) -> None:
    bench.board.faults.stop_sharefs()
    assert "No such directory" in bench.console("cd /sharefs")
    with serial.serial_for_url(bench.board.settings.console, timeout=0.3) as port:
        port.write(b"ls /sharefs\r")
        time.sleep(0.5)
        port.read(100)
        port.write(b"\x03\r\r")
        time.sleep(0.5)
        assert port.read(100) == b""
    bench.board.reboot()
    bench.fresh_console()
    assert "probe.elf" in bench.console("ls /sharefs")


@pytest.mark.parametrize("side", ["linux", "msh", "power"])
def test_reboot_restarts_both_sides_and_keeps_the_card(bench, side: str) -> None:
    bench.sh(f"echo {side} >/root/kept; echo {side} >/sharefs/kept; sync; touch /tmp/gone")
    boots = bench.board.status().boots
    with serial.serial_for_url(bench.board.settings.console, timeout=0.1) as port:
        if side == "linux":
            bench.shell.run("reboot")
        elif side == "msh":
            port.write(b"reboot\r")
        else:
            bench.shell.run("poweroff")
            deadline = time.monotonic() + 15
            while bench.board.status().state != "off":
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert bench.board.start()
        bench.until(port, "!!\r\n")  # the demo starts anew
    bench.board.wait_until_running(boots=boots + 1)
    bench.fresh_console()
    assert bench.sh("cat /root/kept /sharefs/kept") == f"{side}\n{side}\n"
    assert bench.shell.run("ls /tmp/gone").rc != 0


def test_host_keys_stay_over_reboots(bench) -> None:
    key = bench.sh("cat /etc/ssh/ssh_host_ed25519_key.pub")
    bench.board.reboot()
    bench.fresh_console()
    assert bench.sh("cat /etc/ssh/ssh_host_ed25519_key.pub") == key


def test_starting_twice_is_no_work_and_another_checkout_is_told_the_holder(
    bench, tmp_path: Path
) -> None:
    assert bench.board.start() is False
    other = LightBoard("other", bench.board.settings, state_root=tmp_path)
    with pytest.raises(VirtualBoardError, match=f"held by the board in {bench.board.folder}"):
        other.start()
    assert other.stop() is False
    changed = LightBoard(
        bench.board.name,
        BoardSettings(number=NUMBER, speed=0.5),
        state_root=bench.board.folder.parent,
    )
    with pytest.raises(VirtualBoardError, match="other settings"):
        changed.start()


def test_card_is_kept_until_its_size_changes(tmp_path: Path, bench) -> None:
    del bench  # only the order: templates exist

    def files(size: str) -> str:
        settings = BoardSettings.from_vars({"number": NUMBER + 2, "card_size": size})
        board = LightBoard("kept", settings, state_root=tmp_path, cache=DEFAULT_CACHE.resolve())
        board.start()
        try:
            shell = SshShell("kept", f"root@{board.settings.address}", board.ssh_options())
            return shell.run("cat /sharefs/mark; echo mark >/sharefs/mark").text
        finally:
            board.stop()

    assert files("700MB") == ""
    assert files("700MB") == "mark\n"
    assert files("800MB") == ""


def test_a_board_of_a_test_ends_with_the_test(tmp_path: Path) -> None:
    settings = BoardSettings.from_vars({"number": NUMBER + 2, "card_size": "700MB"})
    with subprocess.Popen(["sleep", "100"]) as owner:
        board = LightBoard(
            "owned",
            settings,
            state_root=tmp_path,
            cache=DEFAULT_CACHE.resolve(),
            owner=owner.pid,
        )
        try:
            board.start()
        finally:
            owner.kill()
    deadline = time.monotonic() + 10
    while traces := traces_of(board):
        assert time.monotonic() < deadline, traces
        time.sleep(0.05)


@pytest.mark.parametrize("way", ["stop", "kill -9", "fault"])
def test_nothing_is_left(way: str, program: Path) -> None:
    with virtual_board(NUMBER + 1, card_size="700MB") as board:
        assert traces_of(board)
        address = f"root@{board.settings.address}"
        ssh = ["ssh", *board.ssh_options(), address]
        subprocess.run(
            [*ssh, "cat >/sharefs/probe"], input=program.read_bytes(), check=True, timeout=30
        )
        with serial.serial_for_url(board.settings.console, timeout=0.1) as port:
            port.write(b"q\r/sharefs/probe hold\r")
            time.sleep(1.0)
            pid = board.status().pid
            session = subprocess.Popen([*ssh, "sleep 100"], stderr=subprocess.DEVNULL)
            if way == "stop":
                board.stop()
            elif way == "kill -9":
                os.kill(pid, signal.SIGKILL)
            else:
                board.faults.kill()
        deadline = time.monotonic() + 10
        while traces := traces_of(board):
            assert time.monotonic() < deadline, traces
            time.sleep(0.05)
        session.wait(timeout=30)
        assert board.status().state == "absent"
        # and the number is free again, the card usable
        assert board.start()
