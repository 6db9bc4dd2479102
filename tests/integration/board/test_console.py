"""The msh session against a simulated RT-Smart shell, over TCP, RFC 2217 and a pty."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from k230_lib.board.console import ConsoleTimings, MshConsole
from k230_lib.errors import (
    BoardRebootedError,
    ConsoleBusyError,
    ConsoleError,
    InputError,
    ProgramCrashedError,
    ProgramHungError,
    WrongConsoleError,
)

from .conftest import SimulatedBoard

FAST = ConsoleTimings(prompt=1.5, interrupt=2.0, boot=10.0, quiet=0.08, echo=0.4, crash_grace=1.0)


def open_console(
    board: SimulatedBoard, kind: str = "tcp", log: Path | None = None, **timings: float
) -> MshConsole:
    return MshConsole.open(board.url(kind), "vb1", log, timings=replace(FAST, **timings))


@pytest.mark.parametrize("kind", ["tcp", "rfc2217", "pty"])
@pytest.mark.parametrize("demo", [False, True])
def test_commands_over_every_kind_of_port(
    make_board: Callable[..., SimulatedBoard], kind: str, demo: bool
) -> None:
    board = make_board(demo=demo, baud=115200)
    with open_console(board, kind) as console:
        assert console.run("cd /sharefs") == ""
        assert console.cwd == "/sharefs"
        assert console.run("free").startswith("total memory:")
        assert console.run("lines 3") == "line 1\nline 2\nline 3"
        assert console.run("nosuch").endswith("nosuch: command not found.")
        long = "x" * 900
        assert console.run(f"echo {long}") == long
        assert board.uart.lost == 0, "typed faster than the ring is emptied"


def test_output_without_newline_and_with_false_prompts(board: SimulatedBoard) -> None:
    with open_console(board) as console:
        console.run("cd /sharefs")
        assert console.run("raw") == "no newline"
        assert console.run("fake") == "msh />\nmsh /sharefs>done"
        assert console.run("lines 2") == "line 1\nline 2"


def test_silent_program_is_waited_for(board: SimulatedBoard) -> None:
    with open_console(board) as console:
        assert console.run("/sharefs/slow 3.3", idle_timeout=8) == "woke"


def test_lost_keystrokes_never_run_a_damaged_line(board: SimulatedBoard) -> None:
    with open_console(board) as console:
        board.uart.faults.drop_in = 0.01
        for number in range(3):
            word = f"{number}-" + "abcdefghij" * 7
            assert console.run(f"echo {word}") == word


def test_garbled_and_doubled_bytes(board: SimulatedBoard) -> None:
    with open_console(board) as console:
        board.uart.faults.garble_in = 0.002
        board.uart.faults.duplicate_out = 0.002
        right = 0
        for number in range(4):
            # A key garbled to Enter runs a piece of the line: then no output is the right one.
            with suppress(ConsoleError):
                right += f"w{number}" in console.run(f"echo w{number}-{'k' * 60}")
        assert right >= 3


def test_kernel_lines_at_any_place(board: SimulatedBoard) -> None:
    stop = threading.Event()

    def disturb() -> None:
        while not stop.wait(0.07):
            board.uart.inject(b"\x1b[33m[E/mmc] CMD13 retry\r\n\x1b[0m")

    with open_console(board) as console:
        noise = threading.Thread(target=disturb)
        noise.start()
        try:
            for number in range(2):
                word = f"{number}-" + "abcdefghij" * 12
                assert word in console.run(f"echo {word}").replace("[E/mmc] CMD13 retry\n", "")
        finally:
            stop.set()
            noise.join()


def test_first_bytes_of_a_session_are_lost(board: SimulatedBoard) -> None:
    board.uart.faults.drop_in = 1.0
    threading.Timer(1.0, lambda: setattr(board.uart.faults, "drop_in", 0.0)).start()
    with open_console(board) as console:
        assert console.run("echo here") == "here"


def test_crash_has_the_fault_in_the_error(board: SimulatedBoard) -> None:
    with open_console(board) as console:
        with pytest.raises(ProgramCrashedError, match=r"^vb1: .*Exception 13:Load Page Fault"):
            console.run("/sharefs/crash")
        assert console.run("echo on") == "on"


@pytest.mark.parametrize("limit", [{"timeout": 1.0}, {"idle_timeout": 1.0}])
def test_hung_program_is_stopped(board: SimulatedBoard, limit: dict[str, float]) -> None:
    with open_console(board) as console:
        with pytest.raises(ProgramHungError, match=r"stopped by Ctrl-C"):
            console.run("/sharefs/slow 60", **limit)
        assert console.run("echo on") == "on"


def test_kernel_noise_is_no_progress(board: SimulatedBoard) -> None:
    with open_console(board) as console, pytest.raises(ProgramHungError, match="no progress"):
        console.run("/sharefs/chatty", idle_timeout=1.0, timeout=20)


def test_program_that_ignores_ctrl_c(board: SimulatedBoard) -> None:
    with open_console(board, interrupt=1.0) as console:
        with pytest.raises(ProgramHungError, match="Ctrl-C had no effect"):
            console.run("/sharefs/deaf", timeout=1.0)
        assert not console.is_alive()


def test_missing_sharefs_daemon_blocks_the_shell(board: SimulatedBoard) -> None:
    board.sharefs = False
    with open_console(board, interrupt=1.0) as console:
        assert "No such directory" in console.run("cd /sharefs")
        with pytest.raises(ProgramHungError, match="the shell is blocked"):
            console.run("/sharefs/lines 1", timeout=1.0)


@pytest.mark.parametrize("banner", ["", "\r\n\r\nU-Boot SPL 2022.10\r\n"])
def test_reboot_in_the_middle(make_board: Callable[..., SimulatedBoard], banner: str) -> None:
    board = make_board(demo=True)
    with open_console(board) as console:
        threading.Timer(0.5, board.reboot, (banner,)).start()
        with pytest.raises(BoardRebootedError, match=r"^vb1: the board restarted"):
            console.run("/sharefs/slow 30", timeout=20)
        console.wake()
        assert console.run("echo back") == "back"


def test_dead_kernel(board: SimulatedBoard) -> None:
    text = b"Unhandled Exception 5:Load Access Fault\r\nscause:5\r\n"
    with open_console(board) as console:
        threading.Timer(0.5, board.uart.inject, (text,)).start()
        with pytest.raises(ConsoleError, match="the RT-Smart kernel stopped: Unhandled Exc"):
            console.run("/sharefs/slow 30", timeout=20)


def test_left_over_program_is_stopped_at_opening(board: SimulatedBoard) -> None:
    with socket.create_connection(("127.0.0.1", board.tcp.port)) as dead:
        dead.sendall(b"/sharefs/slow 60\r")
        time.sleep(0.3)
    time.sleep(0.2)
    with open_console(board) as console:
        assert console.run("echo mine") == "mine"


def test_silence_is_named(board: SimulatedBoard) -> None:
    board.uart.faults.mute = True
    with pytest.raises(ConsoleError, match=r"^vb1: nothing answers on console socket://"):
        open_console(board, prompt=0.3, interrupt=0.6)


@pytest.mark.parametrize("url", ["/dev/serial/by-id/usb-none-if02", "socket://127.0.0.1"])
def test_ports_that_do_not_exist(url: str) -> None:
    with pytest.raises(ConsoleError, match=r"^vb1: console .* Next: check the"):
        MshConsole.open(url, "vb1", timings=FAST)


def test_refused_connection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConsoleBusyError, match="refuses the connection"):
        MshConsole.open(f"socket://127.0.0.1:{port}", "vb1", timings=FAST)


@pytest.mark.parametrize("kind", ["tcp", "pty"])
def test_second_process_is_told_who_holds_the_console(board: SimulatedBoard, kind: str) -> None:
    script = (
        "import sys; from k230_lib.board.console import MshConsole\n"
        "from k230_lib.errors import K230Error\n"
        "try: MshConsole.open(sys.argv[1], 'other')\n"
        "except K230Error as error: print(type(error).__name__, error)\n"
    )
    with open_console(board, kind):
        done = subprocess.run(
            [sys.executable, "-c", script, board.url(kind)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert done.stdout.startswith("ConsoleBusyError other: console ")
    assert f"in use by process {os.getpid()} (" in done.stdout
    assert "for board vb1" in done.stdout
    with open_console(board, kind) as console:
        assert console.run("echo free") == "free"


def test_server_that_serves_another_client(board: SimulatedBoard) -> None:
    with socket.create_connection(("127.0.0.1", board.tcp.port)):
        time.sleep(0.1)
        with pytest.raises(ConsoleBusyError, match="serves another client"):
            open_console(board)


@pytest.mark.parametrize(
    ("greeting", "name"),
    [
        (b"\r\ncanaan login: ", "Linux"),
        (b"\r\n[root@canaan ~ ]# ", "Linux"),
        (b"\r\nK230# ", "U-Boot"),
    ],
)
def test_other_software_on_the_port(greeting: bytes, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                while data := client.recv(100):
                    client.sendall(data + greeting)

        threading.Thread(target=answer, daemon=True).start()
        url = f"socket://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(WrongConsoleError, match=rf"^vb1: {name} answers .* other serial port"):
            MshConsole.open(url, "vb1", timings=FAST)


def test_lines_are_checked_before_they_are_typed(board: SimulatedBoard) -> None:
    with open_console(board) as console:
        with pytest.raises(InputError, match="1024"):
            console.run("x" * 2000)
        assert console.run("echo clean") == "clean"


def test_each_line_is_told_at_once(board: SimulatedBoard) -> None:
    seen: list[str] = []

    def on_line(line: str) -> bool:
        seen.append(line)
        return True

    with open_console(board) as console:
        console.run("/sharefs/lines 4", on_line=on_line)
    assert [line for line in seen if line] == [f"line {i}" for i in range(1, 5)]


@pytest.mark.parametrize("size", [2_500_000, pytest.param(50_000_000, marks=[pytest.mark.fault])])
def test_flood_does_not_fill_the_memory(board: SimulatedBoard, size: int) -> None:
    with open_console(board, "pty") as console:
        console.run("/sharefs/flood 900000")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        output = console.run(f"/sharefs/flood {size}", timeout=400)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert "characters not kept" in output
    assert len(output) < 1_000_000
    assert grown < 12_000


def test_raw_log_has_both_directions_and_times(board: SimulatedBoard, tmp_path: Path) -> None:
    log = tmp_path / "console" / "vb1.log"
    with open_console(board, log=log) as console:
        console.run("echo first")
    with open_console(board, log=log) as console:
        console.run("echo second")
    lines = log.read_text(encoding="ascii").splitlines()
    assert all(line[:2] == "20" and line[23] == "Z" and line[25] in "<>#" for line in lines)
    text = "\n".join(lines)
    assert "> echo first" in text
    assert "< first" in text
    assert "> echo second" in text
    assert "opened by process" in text


def test_lock_file_survives_damage(board: SimulatedBoard) -> None:
    """A lock file with nonsense in it does not keep anybody out."""
    with open_console(board) as console:
        holder_files = [
            path
            for path in Path("/tmp/k230-console-locks").glob("*.lock")
            if path.read_text() and json.loads(path.read_text()).get("pid") == os.getpid()
        ]
        assert holder_files
        assert console.run("echo held") == "held"
    for path in holder_files:
        path.write_text("{nonsense")
    with open_console(board) as console:
        assert console.run("echo again") == "again"
