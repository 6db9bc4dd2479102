"""The interface of virtual boards, and what identifies one on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError
from .card import parse_size
from .faults import Faults
from .programs import USER_MEMORY_BYTES

DEFAULT_STATE_ROOT = Path(".k230") / "boards"
_CONSOLE_BASE = 23000
_RFC2217_BASE = 24000
_LARGEST_NUMBER = 250
_DISKS = ("mmcblk0", "mmcblk1")


@dataclass(frozen=True)
class BoardSettings:
    """One virtual board.

    Attributes:
        number: 1 to 250; gives its addresses and ports on this machine.
        card_size: bytes of the SD card, 600 MiB to 64 GB.
        sdk: generation of the image, ``1.9`` (with e2fsprogs) or ``1.8`` (without).
        speed: of RT-Smart programs; 1.0 is this machine's, 0.5 half of it.
        disk: ``mmcblk1`` (card) or ``mmcblk0`` (eMMC).
        network: address and prefix of the board; the host has the address before it.
        mount_delay: seconds at boot between SSH and the mount of /sharefs.
        boot_demo: the face demo holds the console after boot until ``q`` is typed.
        baud: of the console; 0 means unpaced.
        memory_limit: bytes for RT-Smart programs.
    """

    number: int
    card_size: int = 4 << 30
    sdk: str = "1.9"
    speed: float = 1.0
    disk: str = "mmcblk1"
    network: str = ""
    mount_delay: float = 0.0
    boot_demo: bool = True
    baud: int = 115200
    memory_limit: int = USER_MEMORY_BYTES

    def __post_init__(self) -> None:
        if not 1 <= self.number <= _LARGEST_NUMBER:
            raise InputError(f"board number {self.number} is outside 1 to {_LARGEST_NUMBER}")
        if self.disk not in _DISKS:
            raise InputError(f"disk {self.disk!r} is none of {', '.join(_DISKS)}")
        if not 0 < self.speed <= 1:
            raise InputError(f"speed {self.speed} is outside 0 to 1")
        if not re.fullmatch(r"\d+\.\d+(\.\d+)?", self.sdk):
            raise InputError(f"SDK version {self.sdk!r} is not like 1.9")

    @classmethod
    def from_vars(cls, values: Mapping[str, Any]) -> BoardSettings:
        """Settings from the ``virtual_board`` variable of an inventory.

        Raises:
            InputError: an unknown key, or a value that cannot be used.
        """
        known = {field.name: field for field in fields(cls)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise InputError(
                f"virtual_board has no setting {', '.join(unknown)}",
                hint=f"use some of {', '.join(known)}.",
            )
        if "number" not in values:
            raise InputError("virtual_board lacks its number", hint="give each board one.")
        kinds: dict[str, type] = {
            **dict.fromkeys(("number", "baud", "memory_limit"), int),
            **dict.fromkeys(("speed", "mount_delay"), float),
            "sdk": str,
        }
        settings: dict[str, Any] = dict(values)
        try:
            for name, kind in kinds.items():
                if name in settings:
                    settings[name] = kind(settings[name])
        except (TypeError, ValueError):
            raise InputError(f"virtual_board.{name} = {values[name]!r} is not a number") from None
        if "card_size" in settings:
            settings["card_size"] = parse_size(settings["card_size"])
        return cls(**settings)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> BoardSettings:
        return cls(**json.loads(text))

    @property
    def interface(self) -> IPv4Interface:
        """Address and network of the board's eth0."""
        return IPv4Interface(self.network or f"10.230.{self.number}.2/30")

    @property
    def address(self) -> str:
        return str(self.interface.ip)

    @property
    def host_address(self) -> str:
        return str(IPv4Address(int(self.interface.ip) - 1))

    @property
    def host_link(self) -> str:
        """Name of this machine's end of the cable."""
        return f"vbh{self.number}"

    @property
    def console_port(self) -> int:
        return _CONSOLE_BASE + self.number

    @property
    def rfc2217_port(self) -> int:
        return _RFC2217_BASE + self.number

    @property
    def console(self) -> str:
        """pyserial URL of the RT-Smart console."""
        return f"socket://127.0.0.1:{self.console_port}"

    @property
    def rfc2217(self) -> str:
        return f"rfc2217://127.0.0.1:{self.rfc2217_port}"


@dataclass(frozen=True)
class BoardStatus:
    """What is known of a board.

    Attributes:
        name: its inventory name.
        state: ``booting``, ``running``, ``off`` (powered off from its Linux), ``absent``, or
            ``held`` (another checkout has a board of this number).
        pid: root process of its tree; 0 when it has none.
        boots: resets since it was started.
    """

    name: str
    state: str
    pid: int
    boots: int
    address: str
    console: str
    rfc2217: str
    pty: str
    folder: str


class VirtualBoard(Protocol):
    """One stand-in for a board; both kinds obey this."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> BoardSettings: ...

    def start(self) -> bool:
        """Bring the board up; False when it was up already."""
        ...

    def stop(self) -> bool:
        """Take power and everything else away, keeping the card; False when it was absent."""
        ...

    def reboot(self) -> None:
        """Reset both cores and wait until Linux answers again."""
        ...

    def status(self) -> BoardStatus: ...

    @property
    def faults(self) -> Faults: ...

    def ssh_options(self) -> list[str]:
        """Options for ``ssh`` that ask nothing and remember no host key."""
        ...
