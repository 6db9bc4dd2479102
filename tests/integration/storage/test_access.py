"""Keys, name, password and MAC address on a board with real sshd and busybox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k230_lib.board.access import AccessWish, plan_access, read_access, run_access
from k230_lib.board.shell import SshShell, checked
from k230_lib.errors import BoardUnreachableError, StorageError

pytestmark = pytest.mark.board
_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJb5B0gVq0s7wz0C3nq0m2b1g8m6m0kYqk8v1o6w9fXx me"
_MAC = "02:00:00:aa:bb:01"
# a U-Boot environment in a file, with the programs' manners
_FAKE = r"""#!/bin/sh
f=/etc/fake_env
case ${0##*/} in
fw_printenv)
  if [ "$1" = -n ]; then sed -n "s/^$2=//p" $f; else cat $f; fi ;;
fw_setenv)
  name=$1; shift
  { sed "/^$name=/d" $f; echo "$name=$*"; } >$f.new && mv $f.new $f ;;
esac
"""


def _change(bench, **wish: object) -> list[str]:
    """Do what is wanted; names of the steps."""
    steps = plan_access(read_access(bench), AccessWish(**wish), board="vb")
    run_access(bench, steps)
    return [step.name for step in steps]


def test_key_name_and_password_are_set_once(bench_shell, tmp_path: Path) -> None:
    bench = bench_shell
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True
    )
    key = (tmp_path / "id.pub").read_text().strip()
    wish = {"keys": (key,), "hostname": "rack-1", "password": 'it\'s "a" $trange one'}
    assert _change(bench, **wish) == ["keys", "hostname", "password"]
    board = bench.bench.board
    options = [*board.ssh_options(), "-o", "BatchMode=yes"]
    host = f"root@{board.settings.address}"
    with pytest.raises(BoardUnreachableError, match="Permission denied"):
        checked(SshShell("vb", host, options), "true")
    shell = SshShell("vb", host, [*options, "-i", str(tmp_path / "id")])
    assert plan_access(read_access(shell), AccessWish(**wish), board="vb") == ()
    told = checked(
        shell,
        "cat /root/.ssh/authorized_keys; hostname; cat /etc/hostname; grep -c rack-1 /etc/hosts;"
        "ls -l /root/.ssh/authorized_keys /etc/shadow | cut -c1-10",
    )
    assert told.splitlines() == [key, "rack-1", "rack-1", "1", "-rw-------", "-rw-------"]


def test_key_is_added_after_a_file_without_a_last_newline(bench_shell) -> None:
    bench = bench_shell
    bench.bench.sh("mkdir -p /root/.ssh; printf 'ssh-rsa AAAA other' >/root/.ssh/authorized_keys")
    assert _change(bench, keys=(_KEY,)) == ["keys"]
    keys = bench.bench.sh("cat /root/.ssh/authorized_keys").splitlines()
    assert keys == ["ssh-rsa AAAA other", _KEY]


def test_mac_goes_into_the_environment_and_nothing_else_changes(bench_shell) -> None:
    bench = bench_shell
    with pytest.raises(StorageError, match="vb: the image has no fw_printenv"):
        _change(bench, mac=_MAC)
    bench.run("cat >/usr/sbin/fw_printenv", stdin=_FAKE.encode())
    bench.bench.sh(
        "chmod 755 /usr/sbin/fw_printenv; ln -s fw_printenv /usr/sbin/fw_setenv;"
        "echo bootdelay=3 >/etc/fake_env; echo '/dev/mmcblk1 0x1e0000 0x10000' >/etc/fw_env.config"
    )
    cmdline = bench.bench.sh("cat /proc/cmdline").strip()
    assert _change(bench, mac=_MAC) == ["mac"]
    assert bench.bench.sh("cat /etc/fake_env").splitlines() == [
        "bootdelay=3",
        f"bootargs={cmdline} ethaddr={_MAC}",
    ]
    assert _change(bench, mac=_MAC) == []
