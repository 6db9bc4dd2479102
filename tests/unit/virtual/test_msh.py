from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# a program needs no compiler here: any small native one of this machine will do
_SLEEP = Path("/bin/sleep")
_ECHO = Path("/bin/echo")
_TAIL = Path("/usr/bin/tail")


def _install(console, source: Path, name: str) -> None:
    (console.sharefs / name).write_bytes(source.read_bytes())


def test_prompt_has_cwd_and_no_trailing_blank(console) -> None:
    console.type("cd /sharefs\r")
    assert console.read_until("msh /sharefs>") == "cd /sharefs\r\nmsh /sharefs>"
    assert console.silence(0.1) == ""


def test_cr_and_lf_each_end_a_line(console) -> None:
    console.type("\r\n")
    assert console.silence() == "\r\nmsh />\r\nmsh />"


def test_backspace_erases(console) -> None:
    console.type("pwdx\x7f\r")
    assert console.read_until("msh />") == "pwdx\b \b\r\n/\r\nmsh />"


def test_unknown_command(console) -> None:
    assert console.ask("nosuch -x") == "nosuch: command not found.\r\n"


def test_line_of_1024_characters_is_dropped_silently(console) -> None:
    console.type("x" * 1024 + "pwd\r")
    assert console.read_until("msh />").endswith("xpwd\r\n/\r\nmsh />")


def test_only_100_arguments(console) -> None:
    answer = console.ask("echo " + " ".join(["a"] * 110))
    assert answer.startswith("Too many args ! We only Use:\r\necho a a")
    assert answer.splitlines()[1].split() == ["echo"] + ["a"] * 99


def test_echo_appends_to_a_file(console) -> None:
    console.ask('echo "one two" /sharefs/note')
    console.ask('echo "three" /sharefs/note')
    assert (console.sharefs / "note").read_text() == "one twothree"
    assert console.ask("cat /sharefs/note") == "one twothree"


def test_ls_cd_rm_mkdir(console) -> None:
    (console.sharefs / "data.bin").write_bytes(b"12345")
    console.ask("mkdir /sharefs/sub")
    listing = console.ask("ls /sharefs")
    assert "data.bin            5" in listing
    assert "sub                 <DIR>" in listing
    assert console.ask("cd /sharefs/none") == "No such directory: sharefs/none\r\n"
    console.ask("rm /sharefs/data.bin")
    assert not (console.sharefs / "data.bin").exists()


def test_rm_r_leaves_the_folder_as_the_real_one_does(console) -> None:
    (console.sharefs / "sub").mkdir()
    (console.sharefs / "sub/file").write_text("x")
    console.ask("rm -r /sharefs/sub")
    assert (console.sharefs / "sub").is_dir()
    assert not (console.sharefs / "sub/file").exists()


def test_program_runs_without_execute_permission_and_by_its_short_name(console) -> None:
    _install(console, _ECHO, "hello.elf")
    (console.sharefs / "hello.elf").chmod(stat.S_IRUSR)
    console.ask("cd /sharefs", "msh /sharefs>")
    answer = console.ask("hello a  b", "msh /sharefs>")
    assert answer.endswith("a b\r\n")
    assert "open /sharefs//hello failed" in answer  # msh tries NAME before NAME.elf


def test_no_exit_status_can_be_seen(console) -> None:
    _install(console, Path("/bin/false"), "false")
    assert console.ask("/sharefs/false") == ""


def test_not_a_program(console) -> None:
    (console.sharefs / "text").write_text("hello, world, this is no program")
    assert console.ask("/sharefs/text").endswith(
        "elf_magic not same\r\n/sharefs/text: command not found.\r\n"
    )


def test_ctrl_c_ends_the_program(console) -> None:
    _install(console, _SLEEP, "sleep")
    console.type("/sharefs/sleep 60\r")
    console.read_until("sleep 60\r\n")
    time.sleep(0.2)
    console.type("\x03")
    assert console.read_until("msh />", 2.0).endswith("msh />")


def test_typing_ahead_keeps_64_bytes(console) -> None:
    _install(console, _SLEEP, "sleep")
    console.type("/sharefs/sleep 0.6\r")
    console.read_until("0.6\r\n")
    console.type("y" * 100 + "\r", at_once=True)
    console.read_until("msh />")
    assert console.silence(0.3) == "y" * 64


def test_background_program_returns_the_prompt(console) -> None:
    # msh passes the "&" on; tail complains about it and goes on.
    _install(console, _TAIL, "follow")
    console.ask("/sharefs/follow -f /dev/null &")
    deadline = time.monotonic() + 5
    while not _program("follow"):
        assert time.monotonic() < deadline, "the prompt came only when the program had ended"
        time.sleep(0.01)


def test_crash_is_told_by_the_kernel(console) -> None:
    _install(console, _SLEEP, "sleep")
    console.type("/sharefs/sleep 60\r")
    console.read_until("sleep 60\r\n")
    time.sleep(0.1)
    console.msh.kill_programs(11)
    report = console.read_until("msh />")
    assert "Exception 13:Load Page Fault" in report
    assert "User Fault, killing thread: /sharefs/sleep" in report


def test_script_runs_each_line(console) -> None:
    (console.sharefs / "go.sh").write_text("# comment\necho one\r\nnosuch\necho two\n")
    assert console.ask("/sharefs/go.sh") == "one\r\nnosuch: command not found.\r\ntwo\r\n"


def test_without_the_server_cd_answers_and_ls_hangs(console) -> None:
    console.server_runs = False
    assert console.ask("cd /sharefs") == "No such directory: sharefs\r\n"
    console.type("ls /sharefs\r")
    assert console.silence(0.5) == "ls /sharefs\r\n"
    console.server_runs = True
    console.type("\x03\r")
    assert console.silence(0.3) == ""


def test_boot_demo_holds_the_console_until_q(make_console: Callable) -> None:
    console = make_console(boot_demo=True)
    assert "press 'q' to exit" in console.read_until("!!\r\n")
    console.type("pwd\r")
    assert console.silence(0.2) == "pwd\r\n"
    console.type("q\r")
    assert console.read_until("msh />") == "q\r\nmsh />"


def test_ctrl_c_ends_the_boot_demo(make_console: Callable) -> None:
    console = make_console(boot_demo=True)
    console.read_until("!!\r\n")
    console.type("\x03")
    assert console.read_until("msh />") == "msh />"


def test_reboot_command(console) -> None:
    console.type("reboot\r")
    console.silence(0.2)
    assert console.reboots == 1


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a system python3")
def test_memory_limit(make_console: Callable) -> None:
    console = make_console(memory_limit=64 << 20)
    console.read_until("msh />")
    _install(console, Path(os.path.realpath("/usr/bin/python3")), "python")
    code = "b=bytearray(90*2**20); import time; b[::4096]=b'1'*(len(b)//4096); time.sleep(9)"
    assert "Memory exhaustion!" in console.ask(f'/sharefs/python -S -c "{code}"')


def test_speed_slows_a_program(make_console: Callable) -> None:
    def stopped_share(speed: float) -> float:
        """How much of its time the program stands still; not stretched by a busy machine."""
        console = make_console(speed=speed)
        console.read_until("msh />")
        _install(console, _SLEEP, "nap")
        console.type("/sharefs/nap 1\r")
        states, deadline = [], time.monotonic() + 10
        while not (program := _program("nap")):
            assert time.monotonic() < deadline, "the program does not start"
            time.sleep(0.01)
        while _program("nap") == program:
            states.append(_state(program))
            time.sleep(0.003)
        return states.count("T") / len(states)

    assert stopped_share(1.0) == 0
    # Four fifths on a quiet machine; a busy one also keeps this test from looking.
    assert stopped_share(0.2) > 0.1


def _program(name: str) -> int:
    """The child process called ``name``, or 0; other tests may have left children of theirs."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            parent = (comm.parent / "stat").read_text().rpartition(") ")[2].split()[1]
            if comm.read_text().strip() == name and int(parent) == os.getpid():
                return int(comm.parent.name)
        except OSError:
            continue  # it has ended meanwhile
    return 0


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "Z"
