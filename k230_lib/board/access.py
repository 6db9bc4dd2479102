"""Who may log in, what the board is called, its clock and its MAC address.

Pure plans from one round trip's answer. Secrets never come into a script, a result or a log: a
password is hashed here and the hash goes over standard input.
"""

from __future__ import annotations

import re
import shlex
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BoardCommandError, InputError, StorageError
from .shell import BoardShell, checked

with warnings.catch_warnings():
    # part of the Python that this package requires; it goes with 3.13
    warnings.simplefilter("ignore", DeprecationWarning)
    import crypt

_KEY = re.compile(r"((?:ssh|ecdsa|sk)-[a-z0-9@.-]+) ([A-Za-z0-9+/]+={0,3})(?: [^\n]*)?")
_HOSTNAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
#: where U-Boot has its environment on a card of the SDK, in bytes
_ENVIRONMENT = (0x1E0000, 0x200000)

_LOOK = r"""export PATH=/bin:/sbin:/usr/bin:/usr/sbin LC_ALL=C
s() { echo; echo "@@$1"; }
s time; date -u +%s
s keys; cat /root/.ssh/authorized_keys 2>/dev/null
s hostname; cat /proc/sys/kernel/hostname; cat /etc/hostname 2>/dev/null
s shadow; sed -n 's/^root:\([^:]*\):.*/\1/p' /etc/shadow
s cmdline; cat /proc/cmdline
s environment; command -v fw_printenv >/dev/null && { fw_printenv 2>&1; cat /etc/fw_env.config; }
s end
"""
_ADD_KEYS = """set -e; umask 077
mkdir -p /root/.ssh; f=/root/.ssh/authorized_keys
[ ! -s $f ] || [ -z "$(tail -c 1 $f)" ] || echo >>$f
printf '%s\\n' {keys} >>$f
chmod 700 /root/.ssh; chmod 600 $f; sync"""
# the hash comes on standard input and is handed to awk by environment: ps shows neither
_SET_PASSWORD = r"""set -e; umask 077
IFS= read -r H; [ -n "$H" ]; export H
awk -F: -v OFS=: '$1 == "root" { $2 = ENVIRON["H"] } { print }' /etc/shadow >/etc/shadow.k230
grep -q '^root:\$' /etc/shadow.k230
mv /etc/shadow.k230 /etc/shadow; sync"""
_SET_NAME = r"""set -e
echo {name} >/etc/hostname; hostname {name}
[ ! -e /etc/hosts ] || sed -i 's/^127\.0\.1\.1.*/127.0.1.1\t{name}/' /etc/hosts
sync"""


@dataclass(frozen=True)
class AccessWish:
    """What is asked for; none or empty leaves a thing as it is.

    Args:
        keys: public keys that may log in as root, one line each.
        password: of root.
        hostname: of the board; lower case letters, digits and ``-``.
        max_skew_s: the clock is set when it is off by more than this.
        mac: for U-Boot's environment, like ``02:00:00:aa:bb:01``.
    """

    keys: tuple[str, ...] = ()
    password: str | None = None
    hostname: str | None = None
    max_skew_s: float | None = 2.0
    mac: str | None = None

    def __post_init__(self) -> None:
        for key in self.keys:
            if not _KEY.fullmatch(key.strip()):
                raise InputError(
                    f"{key.strip()[:40]!r} is not a public key",
                    hint="give the content of a .pub file, like 'ssh-ed25519 AAAA... name'.",
                )
        if self.password == "":
            raise InputError("the password is empty", hint="leave it out to keep what there is.")
        if self.hostname is not None and not _HOSTNAME.fullmatch(self.hostname):
            raise InputError(f"{self.hostname!r} is not a host name of letters, digits and '-'")
        if self.mac is not None and (
            not _MAC.fullmatch(self.mac) or int(self.mac[:2], 16) & 1 or not self.mac.strip("0:")
        ):
            raise InputError(
                f"{self.mac!r} is not the MAC address of one interface",
                hint="write it like 02:00:00:aa:bb:01, the first number even.",
            )


@dataclass(frozen=True)
class AccessState:
    """What is there: key blobs by type, names, root's password hash, U-Boot's environment."""

    clock_skew_s: float
    keys: frozenset[tuple[str, str]]
    hostnames: tuple[str, ...]
    password_hash: str
    cmdline: str
    environment: str


@dataclass(frozen=True)
class AccessStep:
    """One change; ``secret`` goes over standard input and is never shown."""

    name: str
    does: str
    script: str
    secret: bytes | None = None

    def to_json(self) -> dict[str, str]:
        """For a task's result, without the secret."""
        return {"name": self.name, "does": self.does, "script": self.script}


def read_access(shell: BoardShell) -> AccessState:
    """Ask the board; one round trip."""
    before = time.time()
    return parse_access(checked(shell, _LOOK), board=shell.board, now=before)


def parse_access(text: str, *, board: str, now: float) -> AccessState:
    """Read the answer.

    Raises:
        BoardCommandError: it is cut off or not a board's.
    """
    sections = {
        name: body.strip()
        for name, _, body in (part.partition("\n") for part in re.split(r"(?:^|\n)@@", text)[1:])
    }
    if "end" not in sections or not sections["time"].isdigit():
        raise BoardCommandError(
            "the answer about access is cut off", board=board, hint="run again."
        )
    return AccessState(
        clock_skew_s=round(int(sections["time"]) - now, 1),
        keys=frozenset(
            found.group(1, 2)  # type: ignore[misc]
            for line in sections["keys"].splitlines()
            if (found := _KEY.search(line))
        ),
        hostnames=tuple(sections["hostname"].split()),
        password_hash=sections["shadow"],
        cmdline=sections["cmdline"],
        environment=sections["environment"],
    )


def plan_access(state: AccessState, wish: AccessWish, *, board: str) -> tuple[AccessStep, ...]:
    """The changes that are needed, none for a second run.

    Raises:
        StorageError: U-Boot's environment cannot be written safely.
    """
    steps = []
    new = [key.strip() for key in wish.keys if _blob(key) not in state.keys]
    if new:
        script = _ADD_KEYS.format(keys=" ".join(map(shlex.quote, dict.fromkeys(new))))
        steps.append(AccessStep("keys", f"let {len(new)} key(s) log in as root", script))
    if wish.hostname is not None and set(state.hostnames) != {wish.hostname}:
        script = _SET_NAME.format(name=wish.hostname)
        steps.append(AccessStep("hostname", f"call the board {wish.hostname}", script))
    if wish.max_skew_s is not None and abs(state.clock_skew_s) > wish.max_skew_s:
        # there is no clock with a battery: every boot begins in 1970
        steps.append(_clock_step(state.clock_skew_s))
    if wish.mac is not None:
        steps += _mac_steps(state, wish.mac, board=board)
    # last: new connections without a key are refused from then on
    if wish.password is not None and not _matches(wish.password, state.password_hash):
        secret = crypt.crypt(wish.password, crypt.mksalt(crypt.METHOD_SHA512)) + "\n"
        does = "set root's password"
        steps.append(AccessStep("password", does, _SET_PASSWORD, secret.encode()))
    return tuple(steps)


def run_access(shell: BoardShell, steps: Sequence[AccessStep]) -> None:
    """Run them, one round trip each.

    Raises:
        BoardCommandError: one failed; the message has nothing secret in it.
    """
    for step in steps:
        script = step.script
        if step.name == "clock":
            script = script.replace(_NOW, str(round(time.time())))
        checked(shell, script, stdin=step.secret)


#: replaced by the controller's time when the step is run
_NOW = "@NOW@"


def _clock_step(skew: float) -> AccessStep:
    return AccessStep("clock", f"set the clock, it is off by {skew:+.0f} s", f"date -u -s @{_NOW}")


def _blob(key: str) -> tuple[str, str]:
    found = _KEY.fullmatch(key.strip())
    return (found[1], found[2]) if found else ("", "")


def _matches(password: str, known: str) -> bool:
    return known.startswith("$") and crypt.crypt(password, known) == known


def _mac_steps(state: AccessState, mac: str, *, board: str) -> list[AccessStep]:
    wanted = f"ethaddr={mac}"
    found = re.search(r"^bootargs=(.*)$", state.environment, re.MULTILINE)
    now = found[1] if found else state.cmdline
    words = [word for word in now.split() if not word.startswith("ethaddr=")]
    value = " ".join([*words, wanted])
    if found and found[1].split() == value.split():
        return []
    _require_environment(state, board=board)
    quoted = shlex.quote(value)
    script = (
        f'set -e\nfw_setenv bootargs {quoted}\n[ "$(fw_printenv -n bootargs)" = {quoted} ]\nsync'
    )
    return [AccessStep("mac", f"set bootargs in U-Boot's environment to: {value}", script)]


def _require_environment(state: AccessState, *, board: str) -> None:
    """Refuse to write what would not be read, or would take U-Boot's own values away."""
    if not state.environment:
        raise StorageError(
            "the image has no fw_printenv", board=board, hint="set the MAC otherwise."
        )
    if "Bad CRC" in state.environment:
        raise StorageError(
            "U-Boot's environment was never saved; writing it from Linux would replace its values "
            "by others",
            board=board,
            hint="run saveenv once at the U-Boot prompt, then run again.",
        )
    places = re.findall(
        r"^(/dev/\S+)\s+(0x[0-9a-fA-F]+)\s+(0x[0-9a-fA-F]+)", state.environment, re.M
    )
    root = re.search(r"\broot=/dev/(mmcblk\d+)p", state.cmdline)
    disk = root[1] if root else "?"
    begin, end = _ENVIRONMENT
    for device, offset, size in places:
        start = int(offset, 16)
        if device != f"/dev/{disk}" or not begin <= start <= start + int(size, 16) <= end:
            places = []
    if not places:
        raise StorageError(
            f"/etc/fw_env.config does not name U-Boot's environment on /dev/{disk}",
            board=board,
            hint="correct it: the SDK has it at 0x1e0000, size 0x10000.",
        )
