"""How the end of a program is recognised: pure, with a clock of the test's own."""

from __future__ import annotations

import pytest

from k230_lib.board.console_watch import Ending, ProgramWatch

QUIET = 0.1


class Line:
    """Feeds a watch and answers its probes as msh would."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.watch = ProgramWatch(self._on_line, quiet=QUIET)
        self.now = 100.0
        self.probes = 0
        self.progress = True

    def _on_line(self, line: str) -> bool:
        self.seen.append(line)
        return self.progress

    def prints(self, text: str, after: float = 0.0) -> None:
        self.now += after
        self.watch.feed(text, self.now)

    def waits(self, seconds: float, answer: str = "") -> Ending | None:
        """Let time pass in small steps; ``answer`` comes to each probe."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.02
            if self.watch.wants_probe(self.now):
                self.probes += 1
                self.watch.probed(self.now)
                if answer:
                    self.watch.feed(answer, self.now)
            ending = self.watch.ending(self.now, crash_grace=2.0)
            if ending is not None:
                return ending
        return None


def test_prompt_and_a_second_one_end_the_program() -> None:
    line = Line()
    line.prints("\nout 1\nout 2\nmsh /sharefs>")
    assert line.waits(0.05) is None
    assert line.waits(1.0, "\nmsh /sharefs>") is Ending.FINISHED
    assert line.watch.output == "out 1\nout 2"
    assert line.watch.cwd == "/sharefs"
    assert line.seen == ["out 1", "out 2"]


def test_the_prompt_of_a_program_is_no_end() -> None:
    line = Line()
    line.prints("\nmsh />\nmsh /x>")
    assert line.waits(1.0) is None
    line.prints("really done\nmsh />", after=0.1)
    assert line.waits(1.0, "\nmsh />") is Ending.FINISHED
    assert line.watch.output == "msh />\nmsh /x>really done"


def test_program_that_never_answers_the_proof_goes_on() -> None:
    line = Line()
    line.prints("\nmsh />")
    assert line.waits(10.0) is None
    assert line.probes >= 2


def test_kernel_line_behind_the_prompt() -> None:
    line = Line()
    line.prints("\nout\nmsh />[E/mmc] late\n")
    assert line.waits(2.0, "\nmsh />") is Ending.FINISHED
    assert line.watch.output == "out"


def test_steady_noise_does_not_delay_the_end_for_ever() -> None:
    line = Line()
    line.prints("\nout\nmsh />")
    for _ in range(40):
        line.prints("[W/mpp] frame drop\n", after=0.04)
        if line.watch.wants_probe(line.now):
            break
    else:
        pytest.fail("no proof was asked for")
    line.watch.probed(line.now)
    line.prints("\nmsh />")
    assert line.watch.ending(line.now, crash_grace=2.0) is Ending.FINISHED


def test_a_lost_prompt_is_asked_for_ever_more_rarely() -> None:
    line = Line()
    line.prints("\nout\nm?h />")
    assert line.waits(2.5) is None
    assert line.probes == 0
    assert line.waits(60.0) is None
    assert 2 <= line.probes <= 4


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("U-Boot SPL 2022.10\n", Ending.REBOOTED),
        ("msh />case /bin/fastboot_app.elf build\n", Ending.REBOOTED),
        ("press 'q' to exit application!!\n", Ending.REBOOTED),
        ("Unhandled Exception 5:Load Access Fault\n", Ending.KERNEL_DEAD),
        ("(0) assertion failed at function:rt_free, line number:1\n", Ending.KERNEL_DEAD),
    ],
)
def test_ends_that_need_no_prompt(text: str, ending: Ending) -> None:
    line = Line()
    line.prints("\nout\n" + text)
    assert line.waits(0.1) is ending


def test_crash_with_and_without_a_prompt() -> None:
    fault = "\n[E/DBG] [FATAL ERROR] Exception 13:Load Page Fault\nscause:0xd\n"
    quick = Line()
    quick.prints(fault + "msh />")
    assert quick.waits(1.0, "\nmsh />") is Ending.CRASHED
    assert "scause" in quick.watch.crash
    stuck = Line()
    stuck.prints(fault)
    assert stuck.waits(1.5) is None
    assert stuck.waits(1.0) is Ending.CRASHED
    assert not stuck.watch.prompt_seen


def test_only_what_the_listener_calls_progress_counts() -> None:
    line = Line()
    line.prints("\nfirst\n")
    began = line.watch.last_progress
    line.prints("[W/mpp] noise\n", after=1.0)
    line.progress = False
    line.prints("ordinary output\n", after=1.0)
    assert line.watch.last_progress == began
    line.progress = True
    line.prints("ordinary output\n", after=1.0)
    assert line.watch.last_progress == began + 3.0
