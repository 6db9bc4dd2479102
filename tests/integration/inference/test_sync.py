"""Shards put ahead on a real board while its SSH sessions are killed at random points."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from k230_lib.board.files import probe_files
from k230_lib.board.shell import SshShell
from k230_lib.dataset.manifest import ShardInfo, load
from k230_lib.errors import BoardUnreachableError
from k230_lib.inference.preload import choose_shards, look, preload
from k230_lib.inference.runner import bin_path

from .conftest import MultiplexedShell, Rack, World

pytestmark = [pytest.mark.board]

Make = Callable[..., Any]
CUTS = 8


def _kept(shell: SshShell, shards: tuple[ShardInfo, ...]) -> int:
    """Bytes on the board that need not be sent again: whole shards and parts of them."""
    paths = [bin_path(shard.bin_sha256) for shard in shards]
    whole = probe_files(shell, paths)
    parts = probe_files(shell, [f"{path}.part" for path in paths])
    return sum(
        file.size if file.size >= 0 else max(part.size, 0)
        for file, part in zip(whole, parts, strict=True)
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_what_has_arrived_is_not_sent_again(make_rack: Make, make_world: Make, seed: int) -> None:
    rack: Rack = make_rack(1)
    world: World = make_world(6000, shard_size=1500)
    board = rack.boards[0]
    shards = choose_shards(load(world.dataset), ())
    total = sum(shard.bin_bytes for shard in shards)
    source = random.Random(seed)
    cuts = 0
    while True:
        shell = MultiplexedShell(board, rack.sockets)
        before = _kept(rack.shell(board), shards)
        if cuts < CUTS:
            # the counter also sees what SSH itself sends
            board.faults.ssh_cut(after_bytes=source.randrange(20_000, total - before + 40_000))
        try:
            sent = preload(shell, world.dataset, look(shell, shards, 0), lambda done, of: None)
            break
        except BoardUnreachableError:
            cuts += 1
            assert _kept(rack.shell(board), shards) >= before
        finally:
            shell.close()
            board.faults.clear()
    assert cuts > 0
    assert sent == total - before
    assert look(rack.shell(board), shards, 0).send == ()
    assert _kept(rack.shell(board), shards) == total


def test_a_part_that_has_arrived_whole_is_only_put_in_place(
    make_rack: Make, tmp_path: Path
) -> None:
    """Through Ansible's own connection: without data its standard input is a terminal."""
    rack: Rack = make_rack(1)
    board = rack.boards[0]
    content = random.Random(3).randbytes(1_500_000)
    (tmp_path / "source").write_bytes(content)
    shell = rack.shell(board)
    shell.run("mkdir -p /sharefs/k230/shards; cat >/sharefs/k230/shards/x.part", stdin=content)
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible"),
            *("all", "-i", f"{board.settings.address},", "-u", "root"),
            f"--ssh-common-args={' '.join(board.ssh_options())}",
            *("-m", "k230.executorch.put"),
            *("-a", f"src={tmp_path / 'source'} dest=/sharefs/k230/shards/x"),
        ],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "ANSIBLE_SSH_CONTROL_PATH_DIR": str(rack.sockets)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CHANGED" in done.stdout
    found = probe_files(shell, ["/sharefs/k230/shards/x", "/sharefs/k230/shards/x.part"])
    assert found[0].sha256 == hashlib.sha256(content).hexdigest()
    assert found[1].size == -1


def test_a_damaged_shard_is_not_taken_for_one(make_rack: Make, make_world: Make) -> None:
    rack: Rack = make_rack(1)
    world: World = make_world(3000, shard_size=1500)
    shell = rack.shell(rack.boards[0])
    shards = choose_shards(load(world.dataset), ())
    preload(shell, world.dataset, look(shell, shards, 0), lambda done, of: None)
    first, second = (bin_path(shard.bin_sha256) for shard in shards)
    shell.run(f"printf x | dd of={first} bs=1 seek=700000 conv=notrunc; truncate -s 9999 {second}")
    plan = look(shell, shards, 0)
    assert plan.send == shards
    assert preload(shell, world.dataset, plan, lambda done, of: None) == 2 * shards[0].bin_bytes
    assert look(shell, shards, 0).send == ()
