"""What a board is and what state its storage is in: one round trip, one record.

:func:`read_facts` runs :func:`~.facts_script.facts_script` and :func:`parse_facts`, a pure
function, reads its answer. Everything in units of 512-byte sectors says ``sectors``.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import time
import zlib

from ..errors import BoardCommandError, InputError
from .facts_script import facts_script
from .gpt import judge
from .records import BoardFacts, Disk, Holder, Mount, Partition
from .shell import BoardShell
from .signatures import HEAD_BYTES, Filesystem, identify

_MOUNTPOINT = re.compile(r"/[A-Za-z0-9_][A-Za-z0-9_/-]*")
_READ_TIMEOUT = 60.0


def read_facts(shell: BoardShell, partition: int = 4, mountpoint: str = "/sharefs") -> BoardFacts:
    """Ask the board; one round trip.

    Raises:
        InputError: partition or mount point are not usable words.
        BoardUnreachableError: no connection.
        BoardCommandError: the answer is not a board's, or was cut off.
    """
    if not 1 <= partition <= 128:
        raise InputError(f"partition number {partition} is not between 1 and 128")
    if not _MOUNTPOINT.fullmatch(mountpoint) or mountpoint.endswith("/"):
        raise InputError(f"mount point {mountpoint!r} is not a plain absolute path")
    before = time.time()
    result = shell.run(facts_script(partition, mountpoint), timeout=_READ_TIMEOUT)
    # the board reads its clock first of all: half of the trip's time is the best guess
    return parse_facts(
        result.text,
        board=shell.board,
        now=before,
        partition=partition,
        mountpoint=mountpoint,
    )


def parse_facts(
    text: str, *, board: str, now: float, partition: int = 4, mountpoint: str = "/sharefs"
) -> BoardFacts:
    """Read the script's answer.

    Args:
        now: the controller's clock, in seconds since 1970, when the board was asked.

    Raises:
        BoardCommandError: a section is missing or cannot be read.
    """
    sections = _sections(text)
    if "end" not in sections:
        raise BoardCommandError(
            f"the answer to the facts script is cut off after {len(text)} characters",
            board=board,
            hint="run again; if it stays, look at the board's memory and card.",
        )
    try:
        return _build(sections, board, now, partition, mountpoint)
    except (KeyError, ValueError, IndexError) as error:
        raise BoardCommandError(
            f"the answer to the facts script cannot be read: {error}",
            board=board,
            hint="check that the inventory names a K230 board with the SDK's Linux.",
        ) from error


def _build(
    sections: dict[str, str], board: str, now: float, partition: int, mountpoint: str
) -> BoardFacts:
    memory = _memory(sections["memory"])
    space = _space(sections["space"])
    clock = int(sections["time"])
    daemon = sections["daemon"].split()
    return BoardFacts(
        board=board,
        release=sections["release"].splitlines()[0].strip() if sections["release"] else "",
        kernel=sections["kernel"],
        machine=sections["machine"],
        hostname=sections["hostname"],
        model=sections["model"],
        memory_kib=memory["MemTotal"],
        memory_free_kib=memory.get("MemAvailable", memory["MemFree"]),
        cmdline=sections["cmdline"],
        boot_id=sections["boot_id"],
        uptime_s=float(sections["uptime"].split()[0]),
        clock_s=clock,
        clock_skew_s=round(clock - now, 1),
        partition_number=partition,
        mountpoint=mountpoint,
        mounts=tuple(_mount(line) for line in sections["mounts"].splitlines()),
        swaps=tuple(line.split()[0] for line in sections["swaps"].splitlines()[1:]),
        kernel_filesystems=tuple(line.split()[-1] for line in sections["filesystems"].splitlines()),
        free_kib={where: free for where, (_, free) in space.items()},
        size_kib={where: size for where, (size, _) in space.items()},
        macs={
            name: mac
            for name, mac, *_ in (line.split() for line in sections["links"].splitlines())
            if name != "lo"
        },
        addresses=_addresses(sections["addresses"]),
        daemon_pid=int(daemon[0]) if daemon else None,
        daemon_program=sections["daemon_program"],
        ipcm=sections["ipcm"],
        boot_mount=tuple(line.strip() for line in sections["boot_mount"].splitlines()),
        tools={
            name: version
            for name, _, version in (
                line.partition(" ") for line in sections["tools"].splitlines() if line
            )
        },
        holders=_holders(sections["holders"]),
        disk=_disk(sections),
        filesystem=_filesystem(sections),
        busy="busy" in sections,
        marker=sections["marker"],
    )


def _sections(text: str) -> dict[str, str]:
    sections: dict[str, str] = {}
    for block in re.split(r"^@@", text.replace("\r\n", "\n"), flags=re.MULTILINE)[1:]:
        name, _, body = block.partition("\n")
        sections[name.strip()] = body.strip("\n").strip()
    return sections


def _memory(text: str) -> dict[str, int]:
    return {
        name: int(value.split()[0])
        for name, _, value in (line.partition(":") for line in text.splitlines())
        if value
    }


def _space(text: str) -> dict[str, tuple[int, int]]:
    """Size and free KiB by mount point, from ``df -P -k``."""
    found = {}
    for line in text.splitlines()[1:]:
        fields = line.split(None, 5)
        found[fields[5]] = (int(fields[1]), int(fields[3]))
    return found


def _mount(line: str) -> Mount:
    # fields 1-6, optional ones, then "-", type, source, options of the super block
    left, _, right = line.partition(" - ")
    fields = left.split()
    fstype, source, super_options = right.split(" ", 2)
    options = dict.fromkeys([*fields[5].split(","), *super_options.split(",")])
    if "ro" in options:
        # read-only by mount or by file system: either way nothing can be written
        options.pop("rw", None)
    return Mount(_octal(source), _octal(fields[4]), fstype, tuple(options), fields[2])


def _octal(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _addresses(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[2] == "inet" and fields[1] != "lo":
            found.setdefault(fields[1], fields[3].split("/")[0])
    return found


def _holders(text: str) -> tuple[Holder, ...]:
    """Pairs of lines, ``pid path`` and ``= command``, one for each open path."""
    holders: dict[int, Holder] = {}
    lines = iter(line for line in text.splitlines() if line.strip())
    for line in lines:
        number, _, path = line.partition(" ")
        command = next(lines, "=").removeprefix("=").strip()
        known = holders.get(int(number), Holder(int(number), command, ()))
        holders[known.pid] = Holder(known.pid, command, (*known.paths, path))
    return tuple(holders.values())


def _disk(sections: dict[str, str]) -> Disk | None:
    if "disk_sectors" not in sections:
        return None
    name = sections["disk"]
    sectors = int(sections["disk_sectors"])
    partitions = []
    for line in sections["partitions"].splitlines():
        node, dev, start, size = line.split()
        number = int(node.removeprefix(f"{name}p"))
        partitions.append(Partition(number, f"/dev/{node}", dev, int(start), int(size)))
    elsewhere = {
        int(key.split()[1]): _bytes(value)
        for key, value in sections.items()
        if key.startswith("gpt_at ")
    }
    return Disk(
        name=name,
        sectors=sectors,
        card_id=sections["card_id"],
        partitions=tuple(sorted(partitions, key=lambda part: part.number)),
        gpt=judge(
            _bytes(sections["gpt_primary"]),
            _bytes(sections["gpt_backup"]),
            sectors,
            elsewhere=elsewhere,
        ),
    )


def _filesystem(sections: dict[str, str]) -> Filesystem | None:
    if "sample" not in sections:
        return None
    sample = _bytes(sections["sample"])
    return identify(
        sample[:HEAD_BYTES],
        sample[HEAD_BYTES : HEAD_BYTES + 16],
        sample[HEAD_BYTES + 16 :],
        nonzero=int(sections["nonzero"]) > 0,
    )


def _bytes(text: str) -> bytes:
    try:
        return gzip.decompress(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"sectors of the disk are damaged in the answer: {error}") from error
