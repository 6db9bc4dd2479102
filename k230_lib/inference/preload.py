"""Put shards on a board ahead of a run: for boards behind a slow link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..board.files import PutRequest, free_space, probe_files, put_many
from ..board.shell import BoardShell
from ..dataset.manifest import Dataset, ShardInfo, shard_paths
from ..errors import BoardSpaceError, InputError
from .runner import SHAREFS, bin_path


@dataclass(frozen=True)
class PreloadPlan:
    """Shards that are there, those to send, and those for which there is no space."""

    present: tuple[ShardInfo, ...]
    send: tuple[ShardInfo, ...]
    left_out: tuple[ShardInfo, ...]


def choose_shards(dataset: Dataset, names: Sequence[str]) -> tuple[ShardInfo, ...]:
    """The named shards of a dataset, or all.

    Raises:
        InputError: a name that the dataset does not have.
    """
    known = {shard.name: shard for shard in dataset.shards}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            f"dataset {dataset.name} has no shard {unknown[0]}",
            hint=f"its {len(known)} shards are named in dataset.json.",
        )
    return tuple(known[name] for name in names) if names else tuple(known.values())


def plan_preload(
    shards: Sequence[ShardInfo], present: Sequence[bool], free: int, reserve: int
) -> PreloadPlan:
    """Which shards to send, in order, without going below ``reserve`` bytes free. Pure."""
    room = free - reserve
    there: list[ShardInfo] = []
    send: list[ShardInfo] = []
    left_out: list[ShardInfo] = []
    for shard, is_there in zip(shards, present, strict=True):
        if is_there:
            there.append(shard)
        elif shard.bin_bytes <= room:
            room -= shard.bin_bytes
            send.append(shard)
        else:
            left_out.append(shard)
    return PreloadPlan(tuple(there), tuple(send), tuple(left_out))


def look(shell: BoardShell, shards: Sequence[ShardInfo], reserve: int) -> PreloadPlan:
    """Ask the board what is there and how much fits, in two round trips; nothing is written.

    Raises:
        BoardSpaceError: shards are missing and not even one fits.
    """
    remote = probe_files(shell, [bin_path(shard.bin_sha256) for shard in shards])
    present = [file.sha256 == shard.bin_sha256 for file, shard in zip(remote, shards, strict=True)]
    free = free_space(shell, SHAREFS)
    plan = plan_preload(shards, present, free, reserve)
    if plan.left_out and not plan.send and not plan.present:
        need = min(shard.bin_bytes for shard in plan.left_out) + reserve
        raise BoardSpaceError(
            f"not even one shard fits: {need} bytes needed on /sharefs, {free} free",
            board=shell.board,
            hint="delete /sharefs/app, or grow the partition by provision.yml.",
        )
    return plan


def preload(
    shell: BoardShell,
    dataset_folder: Path,
    plan: PreloadPlan,
    progress: Callable[[int, int], None],
) -> int:
    """Send the plan's shards; returns the bytes sent. ``progress`` gets (bytes done, in all)."""
    requests = [
        PutRequest(
            shard_paths(dataset_folder, shard)[0], bin_path(shard.bin_sha256), shard.bin_sha256
        )
        for shard in plan.send
    ]
    return sum(outcome.bytes_sent for outcome in put_many(shell, requests, progress=progress))
