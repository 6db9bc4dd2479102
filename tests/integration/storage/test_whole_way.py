"""From the stock image to a big file system with all files, and nothing else touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k230_lib.virtual import card

pytestmark = pytest.mark.board


def test_stock_board_ends_with_ext4_and_all_files(bench) -> None:
    before, boot = bench.files(), bench.boot_area()
    assert len(before) >= 5
    predicted = [
        bench.table(check=True),
        bench.resize(check=True),
        bench.filesystem(check=True),
        bench.mount(check=True),
    ]
    assert bench.foresee().steps == tuple(step for job in predicted for step in job.steps)

    done = bench.provision()

    for guess, real in zip(predicted, done, strict=True):
        assert guess.steps == real.steps
        assert (guess.before, guess.after) == (real.before, real.after)
    assert bench.files() == before
    assert bench.boot_area() == boot
    facts = done[-1].facts
    assert facts.filesystem.kind == "ext4"
    assert facts.partition.last == facts.disk.sectors - 34
    assert facts.sharefs.fstype == "ext4" and "rw" in facts.sharefs.options
    assert done[-1].extra["persistent"]
    assert done[-1].extra["mount"]["dev"] == facts.partition.dev
    # nothing is left, neither on the board nor on the controller
    assert not bench.folder.path.exists()
    assert bench.sh("ls -A /sharefs; ls /root/.k230* /tmp/.k230-gpt* 2>/dev/null || true").split(
        "\n"
    )[:-1] == ["app", "lost+found"]


def test_second_run_changes_nothing_in_few_round_trips(bench) -> None:
    bench.provision()
    assert bench.round_trips <= 20
    bench.round_trips = 0
    assert [job.changed for job in bench.provision()] == [False] * 4
    assert bench.round_trips == 5


def test_boot_makes_the_same_mount_again(bench) -> None:
    bench.provision()
    files = bench.files()
    bench.board.reboot()
    assert bench.files() == files
    assert [job.changed for job in bench.provision()] == [False] * 4


def test_image_without_e2fsprogs_gets_ext2(bench_with: Callable) -> None:
    bench = bench_with(sdk="1.8", card_size="700MiB")
    before, boot = bench.files(), bench.boot_area()
    assert bench.sh("command -v mkfs.ext4 || echo none") == "none\n"
    facts = bench.provision()[-1].facts
    assert facts.filesystem.kind == "ext2"
    assert bench.files() == before and bench.boot_area() == boot
    assert [job.changed for job in bench.provision()] == [False] * 4


def test_emmc(bench_with: Callable) -> None:
    bench = bench_with(disk="mmcblk0")
    before = bench.files()
    facts = bench.provision()[-1].facts
    assert facts.disk.device == "/dev/mmcblk0" and facts.sharefs.source == "/dev/mmcblk0p4"
    assert bench.files() == before


@pytest.mark.slow
def test_card_of_64_gb(bench_with: Callable) -> None:
    bench = bench_with(card_size=card.parse_size("64GB"))
    before = bench.files()
    assert [job.changed for job in bench.provision("8.5GB")] == [True, True, True, False]
    assert bench.resize("8.5GB").facts.partition.sectors == 16_601_560
    # a larger size later grows the file system in place
    assert [job.changed for job in bench.provision("59GB")] == [False, True, True, False]
    assert bench.files() == before
    assert [job.changed for job in bench.provision("59GB")] == [False] * 4


def test_names_links_modes_and_large_files_survive(bench) -> None:
    """ext2 to ext4: everything that FAT could not have had."""
    bench.sh(
        "umount /sharefs; mkfs.ext2 -q -F /dev/mmcblk1p4; mount /dev/mmcblk1p4 /sharefs;"
        "cd /sharefs; mkdir -p 'empty dir' 'a b/c'; echo 1 >'a b/c/ leading and trailing ';"
        "echo 2 >'$(reboot)'; echo 3 >'-n'; echo 4 >'ä 名'; : >nothing; ln -s 'a b/c' link;"
        "cp /bin/busybox tool; dd if=/dev/urandom of=large bs=1048576 count=70 2>/dev/null; "
        'n=$(printf "%0120d" 0); echo 5 >"a b/$n$n"; ln -s nowhere dangling; sync'
    )
    before = bench.files()
    bench.wish = type(bench.wish)(fstype="ext4", replace=True)
    job = bench.filesystem()
    assert job.facts.filesystem.kind == "ext4"
    assert bench.files() == before
    check = (
        "cd /sharefs; readlink link; readlink dangling; [ -x tool ] && echo program;"
        "[ -d 'empty dir' ] && echo dir; [ ! -x nothing ] && echo plain"
    )
    assert bench.sh(check).split("\n")[:-1] == ["a b/c", "nowhere", "program", "dir", "plain"]


def test_fat_when_asked(bench) -> None:
    before = bench.files()
    bench.wish = type(bench.wish)(fstype="vfat", replace=True, label="DATA")
    bench.provision()
    facts = bench.mount().facts
    assert (facts.filesystem.kind, facts.filesystem.label) == ("fat32", "DATA")
    names = {path.lower(): digest for path, digest in bench.files().items()}
    for path, digest in before.items():
        assert names[path.lower()] == digest


@pytest.mark.parametrize("kind", ["ext2", "ext4"])
def test_ext_with_data_grows_in_place(bench, kind: str) -> None:
    bench.sh(
        f"umount /sharefs; mkfs.{kind} -q -F -L MINE /dev/mmcblk1p4; mount /dev/mmcblk1p4 /sharefs;"
        "cd /sharefs; mkdir d; dd if=/dev/urandom of=d/data bs=1048576 count=20 2>/dev/null; sync"
    )
    before = bench.files()
    jobs = bench.provision()
    assert [step.name for step in jobs[2].steps] == ["grow"]
    facts = jobs[3].facts
    assert facts.filesystem.kind == kind and facts.filesystem.label == "MINE"
    assert facts.filesystem.bytes > 760 * 2**20
    assert bench.files() == before
    assert "is clean" in bench.sh(
        "umount /sharefs; fsck.ext4 -n /dev/mmcblk1p4 2>/dev/null || e2fsck -n /dev/mmcblk1p4"
    ).replace("clean,", "is clean")
