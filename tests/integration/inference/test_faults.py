"""Whatever happens to boards, lines and processes, every sample is counted once or named."""

from __future__ import annotations

import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from k230_lib.board.files import put_file
from k230_lib.board.power import PowerCommand
from k230_lib.board.shell import SshShell
from k230_lib.errors import ConsoleError, K230Error, VirtualBoardError
from k230_lib.inference.job import Limits
from k230_lib.inference.progress import BoardProgress
from k230_lib.report.figures import compute
from k230_lib.report.summary import missing_text

pytestmark = [pytest.mark.board, pytest.mark.fault, pytest.mark.timeout(1200)]

Make = Callable[..., Any]
QUICK = Limits(sample=12, sample_least=4, reboot=60)


def query(run: Any, sql: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(run.database)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def once(action: Callable[[], None], when: Callable[[BoardProgress], bool]) -> Callable[..., None]:
    """A listener that does something at the first report that fits."""
    done = threading.Event()

    def report(progress: BoardProgress) -> None:
        if not done.is_set() and when(progress):
            done.set()
            action()

    return report


def at(count: int) -> Callable[[BoardProgress], bool]:
    return lambda progress: progress.phase == "compute" and progress.mine >= count


@pytest.mark.parametrize("seed", range(20))
def test_killed_worker(make_rack: Make, make_world: Make, check_complete: Make, seed: int) -> None:
    """kill -9 at a random moment; the next start computes what is missing, sends nothing twice."""
    rack, world = make_rack(1), make_world(120)
    run = rack.open(world, pace_ms=15)
    worker = rack.start(rack.boards[0], run)
    time.sleep(random.Random(seed).uniform(0.1, 4.0))
    worker.kill()
    before = run.queue().counts().done
    _, outcome, traffic = rack.start(rack.boards[0], run).answer()
    assert outcome.computed == world.count - before
    check_complete(run, world)
    computed = query(run, "SELECT SUM(computed) FROM chunks")[0][0]
    assert computed == world.count
    assert traffic["bytes_sent"] <= world.count * 768 * 1.02 + 400_000


def test_killed_worker_leaves_its_files_for_the_next(make_rack: Make, make_world: Make) -> None:
    rack, world = make_rack(1), make_world(16)
    run = rack.open(world, pace_ms=200, chunk=64)
    worker = rack.start(rack.boards[0], run, golden=False)
    time.sleep(3.0)
    worker.kill()
    assert run.queue().counts().done == 0
    console = run.console_log(rack.boards[0].name)
    size = console.stat().st_size
    _, outcome, traffic = rack.start(rack.boards[0], run, golden=False).answer()
    assert outcome.computed == 16
    resumed = re.search(r"@K230 begin run=\S+ total=16 resumed=(\d+)", console.read_text()[size:])
    assert resumed is not None
    assert int(resumed.group(1)) > 0
    # The probe of what is there, but no sample again.
    assert traffic["bytes_sent"] < 3000


def test_other_board_takes_over_from_a_killed_one(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(2), make_world(100)
    run = rack.open(world, pace_ms=40)
    doomed, other = (rack.start(board, run) for board in rack.boards)
    time.sleep(2.5)
    doomed.kill()
    other.outcome()
    check_complete(run, world)


@pytest.mark.parametrize("after", [0, 60_000, 150_000])
def test_ssh_is_cut_in_a_transfer(
    make_rack: Make, make_world: Make, check_complete: Make, after: int
) -> None:
    rack, world = make_rack(1), make_world(300)
    board, run = rack.boards[0], rack.open(world, pace_ms=5)
    board.faults.ssh_cut(after_bytes=after)
    outcome = rack.start(board, run).outcome()
    check_complete(run, world)
    assert outcome.bytes_sent <= 1.5 * world.count * 768 + 50_000


def test_ssh_stalls(make_rack: Make, make_world: Make, check_complete: Make) -> None:
    rack, world = make_rack(1), make_world(200)
    board, run = rack.boards[0], rack.open(world, pace_ms=10)
    stall = once(lambda: board.faults.ssh_stall(8.0), at(20))
    rack.start(board, run, report=stall).outcome()
    check_complete(run, world)


def test_card_fills_up_on_the_way(make_rack: Make, make_world: Make, check_complete: Make) -> None:
    rack, world = make_rack(2), make_world(400)
    run = rack.open(world, pace_ms=10)
    filling, good = rack.boards
    fill = once(lambda: filling.faults.fill_card(leave_bytes=0), at(20))
    first = rack.start(filling, run, report=fill)
    second = rack.start(good, run)
    kind, error, _ = first.answer()
    second.outcome()
    assert kind == "error"
    assert filling.name in str(error)
    check_complete(run, world)


def test_sharefs_turns_read_only_on_the_way(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(2), make_world(400)
    run = rack.open(world, pace_ms=10)
    broken, good = rack.boards

    def remount() -> None:
        # Refused while the runner has its results open; a real card does not ask.
        for _ in range(200):
            with suppress(VirtualBoardError):
                broken.faults.read_only()
                return
            time.sleep(0.02)

    turn = once(lambda: threading.Thread(target=remount).start(), at(20))
    try:
        first = rack.start(broken, run, report=turn, limits=QUICK)
        second = rack.start(good, run)
        kind, error, _ = first.answer()
        second.outcome()
    finally:
        broken.faults.read_only(False)
    assert kind == "error"
    assert str(error).startswith(f"{broken.name}: ")
    check_complete(run, world)


@pytest.mark.parametrize("demo", [0, 1])
def test_board_reboots_in_a_shard(
    make_rack: Make, make_world: Make, check_complete: Make, demo: int
) -> None:
    rack, world = make_rack(2), make_world(100)
    board, run = rack.boards[demo], rack.open(world, pace_ms=40)
    reboot = once(board.faults.reboot, at(25))
    outcome = rack.start(board, run, report=reboot, limits=QUICK).outcome()
    check_complete(run, world)
    assert outcome.failed == 0


CONSOLE_FAULTS = {
    "garbles 1 in 10000": {"garble_in": 1e-4, "garble_out": 1e-4},
    "doubles 1 in 2000": {"duplicate_out": 5e-4},
    "drops 1 in 1000": {"drop_in": 1e-3, "drop_out": 1e-3},
    "is late": {"delay": 0.01},
}


@pytest.mark.parametrize("fault", CONSOLE_FAULTS)
def test_console_that(make_rack: Make, make_world: Make, check_complete: Make, fault: str) -> None:
    rack, world = make_rack(1), make_world(100)
    board, run = rack.boards[0], rack.open(world, pace_ms=5)
    board.faults.console(**CONSOLE_FAULTS[fault])
    rack.start(board, run, limits=QUICK).outcome()
    check_complete(run, world)


def test_console_that_drops_its_first_bytes(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(1), make_world(40)
    board, run = rack.boards[0], rack.open(world)
    board.faults.console(drop_in=1.0, drop_out=1.0)
    threading.Timer(2.0, board.faults.clear).start()
    rack.start(board, run).outcome()
    check_complete(run, world)


def test_kernel_lines_inside_ours(make_rack: Make, make_world: Make, check_complete: Make) -> None:
    rack, world = make_rack(1), make_world(100)
    board, run = rack.boards[0], rack.open(world, pace_ms=20)
    stop = threading.Event()

    def disturb() -> None:
        source = random.Random(3)
        while not stop.wait(source.uniform(0.02, 0.3)):
            board.faults.inject("\x1b[33m[E/LWP] lwp_user_mm: page retry\r\n\x1b[0m")

    noise = threading.Thread(target=disturb)
    noise.start()
    try:
        outcome = rack.start(board, run, limits=QUICK).outcome()
    finally:
        stop.set()
        noise.join()
    check_complete(run, world)
    assert outcome.failed == 0


@pytest.mark.parametrize(("signal", "reason"), [(11, "Load Page Fault"), (19, "made no progress")])
def test_program_that_dies_once_costs_no_sample(
    make_rack: Make, make_world: Make, check_complete: Make, signal: int, reason: str
) -> None:
    rack, world = make_rack(1), make_world(40)
    board, run = rack.boards[0], rack.open(world, pace_ms=120)
    hit = once(lambda: board.faults.kill_program(signal), at(18))
    outcome = rack.start(board, run, report=hit, limits=QUICK).outcome()
    check_complete(run, world)
    assert outcome.failed == 1
    assert reason in query(run, "SELECT reason FROM failures")[0][0]


@pytest.fixture(scope="session")
def bad_runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runner that goes wrong at one sample, see bad_runner.c."""
    program = tmp_path_factory.mktemp("bad") / "runner"
    source = Path(__file__).with_name("bad_runner.c")
    subprocess.run(["gcc", "-O1", "-static", "-w", source, "-o", program], check=True)
    return program


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("crash", "Page Fault"), ("hang", "made no progress"), ("cut", "ended without")],
)
def test_sample_that_always_goes_wrong_is_given_up_and_named(
    make_rack: Make, make_world: Make, bad_runner: Path, fault: str, reason: str
) -> None:
    """On both boards the program dies at sample 5; all others get their results."""
    rack, world = make_rack(2), make_world(40)
    run = rack.open(world, chunk=16)
    bad = 5
    path = f"/sharefs/k230/bin/k230_runner-{fault}-{bad}"
    for board in rack.boards:
        put_file(rack.shell(board), bad_runner, path, mode=0o755)
    workers = [
        rack.start(board, run, limits=QUICK, golden=False, runner=path) for board in rack.boards
    ]
    for worker in workers:
        worker.outcome()
    figures = compute(run)
    assert (figures.done, figures.missing, figures.quarantined) == (39, 0, (bad,))
    failures = query(run, "SELECT sample, board, reason, excerpt FROM failures")
    assert {row[0] for row in failures} == {bad}
    assert {row[1] for row in failures} == {board.name for board in rack.boards}
    assert all(reason in row[2] for row in failures)
    if fault == "crash":
        assert all("killing thread" in row[3] for row in failures)
    assert f"/{bad}.png" in missing_text(run, figures)


def test_truncated_results_file(make_rack: Make, make_world: Make, check_complete: Make) -> None:
    rack, world = make_rack(1), make_world(60)
    board, run = rack.boards[0], rack.open(world)
    cut = {"left": 2}

    def truncate(script: str, plain: SshShell) -> None:
        if "sha256sum" in script and ".res" in script and cut["left"]:
            cut["left"] -= 1
            plain.run(
                "cd /sharefs/k230/results && for f in *.res; do n=$(wc -c <$f); "
                "head -c $((n * 2 / 3)) $f >/tmp/cut && cp /tmp/cut $f; done; rm -f /tmp/cut"
            )

    outcome = rack.start(board, run, tamper=truncate, golden=False).outcome()
    check_complete(run, world)
    assert outcome.failed == 0
    events = [row[0] for row in query(run, "SELECT text FROM events")]
    assert any("damaged record" in text for text in events)


def test_dead_console_is_helped_by_power(
    make_rack: Make, make_world: Make, check_complete: Make, tmp_path: Path
) -> None:
    """The console is mute and a reboot does not help; cutting the power does."""
    rack, world = make_rack(1), make_world(40)
    board, run = rack.boards[0], rack.open(world, pace_ms=60)
    script = tmp_path / "power.py"
    script.write_text(
        "import sys; from k230_lib.virtual.faults import Faults\n"
        f"faults = Faults({board.settings.number})\n"
        "faults.clear(); faults.reboot(); open(sys.argv[2], 'w').write(sys.argv[1])\n"
    )
    command = f"{sys.executable} {script} {{board}} {tmp_path}/cycled"
    mute = once(lambda: board.faults.console(mute=True), at(15))
    outcome = rack.start(
        board, run, report=mute, limits=QUICK, power=PowerCommand(command)
    ).outcome()
    check_complete(run, world)
    assert (tmp_path / "cycled").read_text() == board.name
    assert outcome.recoveries >= 1
    steps = " | ".join(row[0] for row in query(run, "SELECT text FROM events ORDER BY id"))
    assert steps.index("whether msh answers") < steps.index("reboot from Linux")
    assert steps.index("reboot from Linux") < steps.index("power command")


def test_board_that_cannot_be_helped_is_given_up(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    rack, world = make_rack(2), make_world(120)
    run = rack.open(world, pace_ms=40)
    dead, good = rack.boards
    mute = once(lambda: dead.faults.console(mute=True), at(15))
    first = rack.start(dead, run, report=mute, limits=QUICK)
    second = rack.start(good, run)
    kind, error, _ = first.answer()
    second.outcome()
    assert kind == "error"
    assert isinstance(error, ConsoleError)
    assert "could not be brought back by Ctrl-C" in str(error)
    check_complete(run, world)


def test_board_without_linux_is_given_up_and_its_work_is_named(
    make_rack: Make, make_world: Make, check_complete: Make
) -> None:
    """SSH refuses for longer than the limit: the run ends with a list, the rerun fills it."""
    rack, world = make_rack(1), make_world(100)
    board, run = rack.boards[0], rack.open(world, pace_ms=20)
    refuse = once(lambda: (board.faults.ssh_refuse(14.0), board.faults.ssh_cut())[0], at(30))
    limits = Limits(sample=12, sample_least=4, reboot=4)
    kind, error, _ = rack.start(board, run, report=refuse, limits=limits).answer()
    assert kind == "error"
    assert isinstance(error, K230Error)
    figures = compute(run)
    assert figures.missing == world.count - figures.done > 0
    assert "have no result" in missing_text(run, figures)
    time.sleep(14)
    rack.start(board, run).outcome()
    check_complete(run, world)


EARLY = "find /sharefs/k230 -exec touch -d '1970-01-01 00:00:07' {} +"
UNSET_CLOCK = """\
mkdir -p /root/real; ln -sf "$(readlink -f /bin/date)" /root/real/date; rm /bin/date
printf '#!/bin/sh\\nexec /root/real/date -u -d @7 "$@"\\n' >/bin/date; chmod 755 /bin/date
mkdir -p /sharefs/k230/shards; echo stale >/sharefs/k230/shards/0000000000000000.bin
find /sharefs -exec touch -d '2030-01-01 00:00:00' {} +
date | grep -q 1970"""


def test_clock_at_1970(make_rack: Make, make_world: Make, check_complete: Make) -> None:
    """No clock, as after each start of a board: earlier files are from the future, ours are old.

    The kernel's own clock is this machine's, so the board's ``date`` and its files' times are set.
    """
    rack, world = make_rack(1), make_world(80)
    board = rack.boards[0]
    shell = rack.shell(board)
    assert shell.run(UNSET_CLOCK).rc == 0
    try:
        run = rack.open(world, pace_ms=10)
        age = once(lambda: shell.run(EARLY), at(20))
        outcome = rack.start(board, run, report=age).outcome()
        check_complete(run, world)
        assert outcome.failed == 0
        assert shell.run(EARLY).rc == 0
        again = rack.start(board, run).outcome()
        assert (again.computed, again.bytes_sent) == (0, 0)
    finally:
        shell.run("rm /bin/date; mv /root/real/date /bin/date")
