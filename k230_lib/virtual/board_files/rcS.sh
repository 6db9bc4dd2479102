#!/bin/sh
# Start-up of the stock image, reduced to what a virtual board has.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mdev -df >/dev/null 2>&1 &
for script in /etc/init.d/S??*; do
	[ -x "$script" ] && "$script" start
done
cat /etc/version/release_version
sleep "$(cat /run/.board/mount-delay)"
cd /mnt || exit 1
mkdir -p /sharefs
if grep -q mmcblk0p3 /proc/cmdline; then
	mount /dev/mmcblk0p4 /sharefs
elif grep -q mmcblk1p3 /proc/cmdline; then
	mount /dev/mmcblk1p4 /sharefs
fi
./sharefs >/dev/null 2>&1 </dev/null &
cd - >/dev/null
: >/run/.board/up
