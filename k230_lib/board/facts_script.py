"""The one script that asks a board everything, in one round trip.

Its answer is a sequence of sections, ``@@name``, text, in any order; ``@@end`` tells that nothing
was cut off. Only tools of the stock image are used; a tool that is absent leaves a section empty.
"""

from __future__ import annotations

from .gpt import BACKUP_SECTORS, PRIMARY_SECTORS
from .signatures import BTRFS_OFFSET, ISO_OFFSET

#: held on the board by every script that writes to the disk
LOCK = "/tmp/.k230-storage.lock"
#: how long the board waits for such a script's end before it says that it is busy
LOCK_WAIT_S = 30
#: on the board's root file system while files of its data partition are on a controller only
MARKER = "/root/.k230-storage"
#: tools whose presence decides what can be done, with the option that shows a version
TOOLS = {
    "busybox": "busybox | head -n 1",
    "parted": "parted --version | head -n 1",
    "mkfs.ext4": "mkfs.ext4 -V 2>&1 | head -n 1",
    "mkfs.ext2": "",
    "mke2fs": "",
    "e2fsck": "e2fsck -V 2>&1 | head -n 1",
    "resize2fs": "",
    "mkfs.vfat": "mkfs.vfat --help 2>&1 | head -n 1",
    "fsck.fat": "",
    "flock": "",
    "sha256sum": "",
    "base64": "",
    "gzip": "",
    "gunzip": "",
    "xargs": "",
    "fw_setenv": "",
    "fw_printenv": "",
    "scp": "",
    "python3": "python3 --version 2>&1",
}

_SCRIPT = r"""export PATH=/bin:/sbin:/usr/bin:/usr/sbin LC_ALL=C
s() { echo; echo "@@$1"; }
s time; date -u +%s
# a command that writes may outlive the connection it came by: its end is waited for
exec 9>>@LOCK@; w=0
while ! flock -n 9 && [ $w -lt @WAIT@ ]; do sleep 1; w=$((w+1)); done
flock -n 9 || s busy
exec 9>&-
s release; cat /etc/version/release_version 2>/dev/null
s kernel; uname -r
s machine; uname -m
s hostname; cat /proc/sys/kernel/hostname
s model; cat /sys/firmware/devicetree/base/model 2>/dev/null | tr -d '\000'
s memory; grep '^Mem' /proc/meminfo
s cmdline; cat /proc/cmdline
s boot_id; cat /proc/sys/kernel/random/boot_id
s uptime; cat /proc/uptime
s mounts; cat /proc/self/mountinfo
s swaps; cat /proc/swaps 2>/dev/null
s filesystems; cat /proc/filesystems
s space; df -P -k / @MOUNT@ 2>/dev/null
s links; for n in /sys/class/net/*; do
  [ -e "$n/address" ] && echo "${n##*/} $(cat "$n/address") $(cat "$n/operstate")"; done
s addresses; ip -4 -o addr 2>/dev/null
s daemon; pidof sharefs
s daemon_program; [ -x /mnt/sharefs ] && echo /mnt/sharefs
s ipcm; cat /proc/ipcm 2>/dev/null
s boot_mount; grep -hs 'mount.*@MOUNT@' /etc/init.d/rcS /etc/init.d/S* /etc/fstab
s marker; cat @MARKER@ 2>/dev/null
s tools
@TOOLS@
s holders; if grep -q ' @MOUNT@ ' /proc/mounts; then
  ls -l /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/[0-9]*/fd/* 2>/dev/null |
    sed -n 's,.* /proc/\([0-9]*\)/[^ ]* -> \(@MOUNT@\)\(/.*\)*$,\1 \2\3,p' |
    while read -r p f; do
      echo "$p $f"; echo "= $(tr '\000' ' ' <"/proc/$p/cmdline" 2>/dev/null)"; done; fi
d=$(sed -n 's,.*root=/dev/\(mmcblk[0-9]*\)p[0-9].*,\1,p' /proc/cmdline)
s disk; echo "$d"
if [ -n "$d" ] && [ -b "/dev/$d" ] && [ -e "/sys/block/$d/size" ]; then
  n=$(cat "/sys/block/$d/size")
  s disk_sectors; echo "$n"
  s card_id; cat "/sys/block/$d/device/cid" 2>/dev/null
  s partitions; for b in "/sys/block/$d/${d}p"*; do
    [ -e "$b/start" ] && echo "${b##*/} $(cat "$b/dev") $(cat "$b/start") $(cat "$b/size")"; done
  s gpt_primary; dd if="/dev/$d" bs=512 count=@PRIMARY@ 2>/dev/null | gzip -c | base64
  s gpt_backup; dd if="/dev/$d" bs=512 skip=$((n-@BACKUP@)) count=@BACKUP@ 2>/dev/null |
    gzip -c | base64
  # a backup elsewhere: where the primary says (bytes 32-39, little-endian), and where an image
  # that ends with its last partition has it
  a=$(dd if="/dev/$d" bs=8 skip=68 count=1 2>/dev/null | hexdump -v -e '1/1 "%02x "' |
    { read -r a b c e f g h i; echo "0x$i$h$g$f$e$c$b$a"; })
  q=/sys/block/$d/${d}p@PART@
  z=0; [ -e "$q/start" ] && z=$(($(cat "$q/start")+$(cat "$q/size")+@BACKUP@-1))
  for l in $((a)) $z; do
    if [ "$l" -gt @BACKUP@ ] && [ "$l" -lt $((n-1)) ]; then
      s "gpt_at $l"; dd if="/dev/$d" bs=512 skip=$((l-@BACKUP@+1)) count=@BACKUP@ 2>/dev/null |
        gzip -c | base64
    fi; done
  p=/dev/${d}p@PART@
  if [ -b "$p" ]; then
    s sample; { dd if="$p" bs=4096 count=1; dd if="$p" bs=16 skip=@ISO@ count=1
      dd if="$p" bs=16 skip=@BTRFS@ count=1; } 2>/dev/null | gzip -c | base64
    s nonzero; dd if="$p" bs=65536 count=16 2>/dev/null | tr -d '\000' | wc -c
  fi
fi
s end
"""


def facts_script(partition: int = 4, mountpoint: str = "/sharefs") -> str:
    """The script, for one data partition and its mount point.

    Both are checked by the caller: they go into shell text as they are.
    """
    lines = [
        f"command -v {tool} >/dev/null && echo {tool} $({version})"
        for tool, version in TOOLS.items()
    ]
    script = _SCRIPT
    for name, value in {
        "MOUNT": mountpoint,
        "PART": partition,
        "PRIMARY": PRIMARY_SECTORS,
        "BACKUP": BACKUP_SECTORS,
        "ISO": ISO_OFFSET // 16,
        "BTRFS": BTRFS_OFFSET // 16,
        "TOOLS": "\n".join(lines),
        "MARKER": MARKER,
        "LOCK": LOCK,
        "WAIT": LOCK_WAIT_S,
    }.items():
        script = script.replace(f"@{name}@", str(value))
    return script
