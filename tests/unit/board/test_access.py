"""Log-in, name, clock and MAC address: what is changed, and what never shows."""

from __future__ import annotations

import base64
import dataclasses

import pytest

from k230_lib.board.access import AccessState, AccessWish, parse_access, plan_access, run_access
from k230_lib.board.shell import CommandResult
from k230_lib.errors import BoardCommandError, InputError, StorageError

_BLOB = base64.b64encode(b"\0\0\0\x0bssh-ed25519" + bytes(36)).decode()
_KEY = f"ssh-ed25519 {_BLOB} someone@desk"
_MAC = "02:00:00:aa:bb:01"
_CMDLINE = "root=/dev/mmcblk1p3 rw console=ttyS0,115200"
_CONFIG = "# device offset size\n/dev/mmcblk1 0x1e0000 0x10000\n"
_ENVIRONMENT = f"bootdelay=3\nbaudrate=115200\n{_CONFIG}"
_ANSWER = """
@@time
137
@@keys
# comment
{keys}
@@hostname
canaan
canaan
@@shadow

@@cmdline
{cmdline}
@@environment
{environment}
@@end
"""


def _state(keys: str = "", cmdline: str = _CMDLINE, environment: str = _ENVIRONMENT) -> AccessState:
    text = _ANSWER.format(keys=keys, cmdline=cmdline, environment=environment)
    return parse_access(text, board="b1", now=137.4)


def _names(state: AccessState, **wish: object) -> list[str]:
    return [step.name for step in plan_access(state, AccessWish(**wish), board="b1")]  # type: ignore[arg-type]


def test_nothing_wanted_nothing_done() -> None:
    assert _names(_state()) == []


def test_key_is_added_once_whatever_its_comment() -> None:
    assert _names(_state(), keys=(_KEY,)) == ["keys"]
    assert _names(_state(keys=f"ssh-ed25519 {_BLOB} other name"), keys=(_KEY,)) == []
    options = f'from="10.0.0.0/8" ssh-ed25519 {_BLOB}'
    assert _names(_state(keys=options), keys=(_KEY + "\n",)) == []


@pytest.mark.parametrize("key", ["", "-----BEGIN OPENSSH PRIVATE KEY-----", "ssh-ed25519 a;b", "x"])
def test_what_is_no_public_key(key: str) -> None:
    with pytest.raises(InputError, match=r"not a public key.*\.pub"):
        AccessWish(keys=(key,))


def test_password_is_hashed_and_never_in_the_script() -> None:
    (step,) = plan_access(_state(), AccessWish(password="correct horse"), board="b1")
    assert step.secret is not None and step.secret.startswith(b"$6$")
    for text in (step.script, str(step.to_json())):
        assert "correct horse" not in text and "$6$" not in text
    known = dataclasses.replace(_state(), password_hash=step.secret.decode().strip())
    assert _names(known, password="correct horse") == []
    assert _names(known, password="another") == ["password"]


def test_name_of_file_and_of_kernel_must_both_be_right() -> None:
    assert _names(_state(), hostname="canaan") == []
    assert _names(_state(), hostname="rack-1") == ["hostname"]
    half = dataclasses.replace(_state(), hostnames=("rack-1", "canaan"))
    assert _names(half, hostname="rack-1") == ["hostname"]


@pytest.mark.parametrize("name", ["", "Rack", "a b", "-a", "a.b", "a;reboot", "x" * 64])
def test_bad_names(name: str) -> None:
    with pytest.raises(InputError, match="not a host name"):
        AccessWish(hostname=name)


def test_clock_is_set_by_the_time_of_sending() -> None:
    state = dataclasses.replace(_state(), clock_skew_s=-1.6e9)
    (step,) = plan_access(state, AccessWish(), board="b1")
    sent: list[str] = []

    class Shell:
        board = "b1"

        def run(self, script: str, **options: object) -> CommandResult:
            sent.append(script)
            return CommandResult(0, b"", b"")

    run_access(Shell(), [step])  # type: ignore[arg-type]
    assert sent[0].startswith("date -u -s @1")
    assert _names(state, max_skew_s=None) == []
    assert _names(dataclasses.replace(state, clock_skew_s=1.5)) == []


def test_mac_shows_the_exact_value_and_keeps_all_other_arguments() -> None:
    (step,) = plan_access(_state(), AccessWish(mac=_MAC), board="b1")
    assert step.does.endswith(f"to: {_CMDLINE} ethaddr={_MAC}")
    assert f"fw_setenv bootargs '{_CMDLINE} ethaddr={_MAC}'" in step.script


def test_mac_that_is_set_already_or_was_another() -> None:
    have = f"bootargs={_CMDLINE} ethaddr={_MAC}\n{_ENVIRONMENT}"
    assert _names(_state(environment=have), mac=_MAC) == []
    other = f"bootargs=quiet ethaddr=02:00:00:00:00:09\n{_ENVIRONMENT}"
    (step,) = plan_access(_state(environment=other), AccessWish(mac=_MAC), board="b1")
    assert step.does.endswith(f"to: quiet ethaddr={_MAC}")


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ("", "no fw_printenv"),
        ("Warning: Bad CRC, using default environment\n" + _ENVIRONMENT, "never saved.*saveenv"),
        (_ENVIRONMENT.replace("mmcblk1", "mmcblk0"), "fw_env.config.*/dev/mmcblk1"),
        (_ENVIRONMENT.replace("0x1e0000", "0x200000"), r"fw_env\.config"),
        (_ENVIRONMENT.replace("0x10000\n", "0x100000\n"), r"fw_env\.config"),
    ],
)
def test_environment_that_must_not_be_written(environment: str, words: str) -> None:
    with pytest.raises(StorageError, match=f"b1: .*{words}"):
        _names(_state(environment=environment), mac=_MAC)


@pytest.mark.parametrize("mac", ["", "02:00", "03:00:00:00:00:01", "00:00:00:00:00:00", "02-0"])
def test_bad_macs(mac: str) -> None:
    with pytest.raises(InputError, match="not the MAC address"):
        AccessWish(mac=mac)


def test_cut_off_answer() -> None:
    with pytest.raises(BoardCommandError, match=r"b1: .*cut off"):
        parse_access("\n@@time\n137\n@@keys\n", board="b1", now=0.0)
