"""Every fault does what it says, and goes away when told."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import serial

from k230_lib.errors import BoardUnreachableError, InputError

pytestmark = pytest.mark.board
NUMBER = 236


@pytest.fixture(autouse=True)
def _healthy(bench):
    yield
    bench.board.faults.clear()


def _ask(bench, line: str, wait: float = 0.5) -> str:
    with serial.serial_for_url(bench.board.settings.console, timeout=wait) as port:
        port.write(line.encode() + b"\r")
        return port.read(4096).decode("utf-8", "replace")


def test_console_mute_drop_garble_duplicate(bench) -> None:
    faults = bench.board.faults
    faults.console(mute=True)
    assert _ask(bench, "pwd") == ""
    faults.console(mute=False, drop_out=1.0)
    assert _ask(bench, "pwd") == ""
    faults.console(drop_out=0.0, garble_out=0.5)
    garbled = _ask(bench, "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaa")
    assert garbled
    assert "aaaaaaaaaaaaaaaaaaaaaaaaaaaa" not in garbled
    faults.console(garble_out=0.0, duplicate_out=1.0)
    assert _ask(bench, "pwd").startswith("ppwwdd")
    faults.clear()
    assert _ask(bench, "pwd") == "pwd\r\n/\r\nmsh />"


def test_console_input_losses(bench) -> None:
    bench.board.faults.console(drop_in=1.0)
    assert _ask(bench, "pwd") == ""
    bench.board.faults.clear()
    assert _ask(bench, "pwd") == "pwd\r\n/\r\nmsh />"


def test_console_delay(bench) -> None:
    bench.board.faults.console(delay=0.3)
    started = time.monotonic()
    bench.console("pwd")
    assert time.monotonic() - started > 0.9


def test_inject(bench) -> None:
    with serial.serial_for_url(bench.board.settings.console, timeout=0.5) as port:
        time.sleep(0.1)
        bench.board.faults.inject("[E/mmc] noise\r\n")
        assert port.read(100) == b"[E/mmc] noise\r\n"


def test_unknown_console_fault_is_named(bench) -> None:
    with pytest.raises(InputError, match="no console fault loud"):
        bench.board.faults.console(loud=1.0)


def test_wrong_console_is_linux(bench) -> None:
    bench.board.faults.wrong_console()
    assert "canaan login: " in _ask(bench, "")
    assert "[root@canaan ~ ]#" in _ask(bench, "root")
    assert "canaan\r\n" in _ask(bench, "hostname", 1.0)
    bench.board.faults.wrong_console(False)
    bench.fresh_console()
    assert _ask(bench, "pwd").endswith("/\r\nmsh />")


def _upload(bench, size: int, timeout: float = 30.0) -> float:
    """Seconds of an upload."""
    started = time.monotonic()
    result = bench.shell.run("cat >/sharefs/upload", stdin=bytes(size), timeout=timeout)
    assert result.rc == 0
    return time.monotonic() - started


def test_ssh_cut_in_the_middle(bench) -> None:
    bench.board.faults.ssh_slow(2_000_000)
    bench.board.faults.ssh_cut(after_bytes=1_000_000)
    with pytest.raises(BoardUnreachableError):
        _upload(bench, 4_000_000)
    bench.board.faults.ssh_slow(0)
    assert 0 < int(bench.sh("wc -c </sharefs/upload")) < 4_000_000
    _upload(bench, 4_000_000)
    assert int(bench.sh("wc -c </sharefs/upload")) == 4_000_000


def test_a_cut_that_waits_for_its_bytes_can_be_called_off(bench) -> None:
    bench.board.faults.ssh_cut(after_bytes=500_000)
    bench.board.faults.clear()
    _upload(bench, 2_000_000)
    assert int(bench.sh("wc -c </sharefs/upload")) == 2_000_000


def test_ssh_stall_and_recovery(bench) -> None:
    bench.board.faults.ssh_stall(1.5)
    started = time.monotonic()
    with pytest.raises(BoardUnreachableError, match="no answer within"):
        bench.shell.run("true", timeout=0.7)
    time.sleep(max(0.0, 1.8 - (time.monotonic() - started)))
    assert bench.sh("echo back") == "back\n"


def test_ssh_slow(bench) -> None:
    fast = _upload(bench, 1_000_000)
    bench.board.faults.ssh_slow(500_000)
    slow = _upload(bench, 1_000_000)
    assert slow > 1.5
    assert slow > fast


def test_ssh_refused_for_a_while(bench) -> None:
    bench.board.faults.ssh_refuse(1.0)
    with pytest.raises(BoardUnreachableError, match="refused"):
        bench.sh("true")
    time.sleep(1.3)
    bench.sh("true")


def test_full_card(bench) -> None:
    bench.board.faults.fill_card(leave_bytes=100_000)
    result = bench.shell.run("cat >/sharefs/more", stdin=bytes(1_000_000))
    assert result.rc != 0
    assert b"No space left" in result.stderr
    bench.sh("rm /sharefs/filler.bin /sharefs/more")
    _upload(bench, 1_000_000)


def test_read_only_card(bench) -> None:
    bench.board.faults.read_only()
    assert b"Read-only" in bench.shell.run("touch /sharefs/x").stderr
    bench.board.faults.read_only(False)
    bench.sh("touch /sharefs/x && rm /sharefs/x")


def test_crash_of_the_running_program(bench, program: Path) -> None:
    bench.shell.run("cat >/sharefs/probe", stdin=program.read_bytes())
    with serial.serial_for_url(bench.board.settings.console, timeout=0.1) as port:
        port.write(b"/sharefs/probe hold\r")
        bench.until(port, "hold in /\r\n")
        bench.board.faults.kill_program()
        assert "User Fault, killing thread" in bench.until(port, "msh />")


def test_reboot_in_the_middle_of_a_session(bench) -> None:
    boots = bench.board.status().boots
    timer = threading.Timer(0.5, bench.board.faults.reboot)
    timer.start()
    with pytest.raises(BoardUnreachableError):
        bench.shell.run("sleep 20", timeout=10)
    bench.board.wait_until_running(boots=boots + 1)
    bench.fresh_console()
    assert bench.sh("echo up") == "up\n"


def test_kill_takes_everything(bench) -> None:
    link = Path("/sys/class/net", bench.board.settings.host_link)
    assert link.exists()
    bench.board.faults.kill()
    deadline = time.monotonic() + 5
    while link.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert bench.board.status().state == "absent"
    assert bench.board.start()
    bench.fresh_console()
