#!/bin/sh
# First process of a virtual board: makes its view of devices and files, then becomes its init.
# Runs in the board's network and in fresh mount, pid, uts and ipc namespaces, with the host's tools.
# Environment: VB_LOOP (loop7) VB_DISK (mmcblk1) VB_WORK (empty folder) VB_ADDRESS VB_PREFIX VB_MAC
# VB_MOUNT_DELAY
set -eu
mount -t tmpfs -o mode=755,size=8m work "$VB_WORK"
root=$VB_WORK/root dev=$VB_WORK/dev big=$VB_WORK/big
mkdir "$root" "$dev" "$big"
outside=$(cut -d' ' -f2 /proc/self/mounts)

# A /dev of our own, so that the mount table names the board's devices
mount -t tmpfs -o mode=755,size=1m devtmpfs "$dev"
mkdir "$dev/pts" "$dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,gid=0,mode=620 devpts "$dev/pts"
mount -t tmpfs -o mode=1777,size=52m tmpfs "$dev/shm"
ln -s pts/ptmx "$dev/ptmx"
while read -r name major minor; do
	mknod -m 666 "$dev/$name" c "$major" "$minor"
done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
END
# no console of the host: init writes to a plain file instead
: >"$dev/console"
ln -s /proc/self/fd "$dev/fd"
ln -s fd/0 "$dev/stdin"
ln -s fd/1 "$dev/stdout"
ln -s fd/2 "$dev/stderr"
node() { mknod -m 660 "$dev/$1" b $(tr : ' ' <"$2/dev"); }
node "$VB_DISK" "/sys/block/$VB_LOOP"
for part in 1 2 3 4 5 6 7 8; do
	[ ! -e "/sys/block/$VB_LOOP/${VB_LOOP}p$part" ] ||
		node "${VB_DISK}p$part" "/sys/block/$VB_LOOP/${VB_LOOP}p$part"
done
mount --rbind "$dev" /dev

mount -t ext4 "/dev/${VB_DISK}p3" "$root"
# what gets mounted on the board's /sharefs must appear to its RT-Smart programs too
mount --make-shared "$root"
mkdir -p "$root/sharefs"

# Those outside now look who we are
echo ready
read -r _

# The namespace may have been that of the board's previous life
tc qdisc del dev eth0 root 2>/dev/null || true
ip link set lo up
ip link set eth0 address "$VB_MAC"
ip addr replace "$VB_ADDRESS/$VB_PREFIX" dev eth0
ip link set eth0 up

# What RT-Smart programs see: this machine, with the board's /sharefs
mount -t tmpfs -o mode=755,size=1m big "$big"
for entry in /*; do
	name=${entry#/}
	case $name in sharefs) continue ;; esac
	if [ -L "$entry" ]; then
		cp -P "$entry" "$big/$name"
	elif [ -d "$entry" ]; then
		mkdir "$big/$name"
		case $name in
		proc) mount -t proc proc "$big/proc" ;;
		dev) mount --rbind "$dev" "$big/dev" ;;
		*) mount --bind "$entry" "$big/$name" ;;
		esac
	fi
done
for point in $outside; do
	case $point in
	/ | /proc | /proc/* | /dev | /dev/* | /sys/* | *'\'*) continue ;;
	/*/*) [ ! -d "$big$point" ] || mount --bind "$point" "$big$point" 2>/dev/null || true ;;
	esac
done
mkdir -p "$big/sharefs"
mount --bind "$root/sharefs" "$big/sharefs"

mount --rbind "$dev" "$root/dev"
mount -t tmpfs -o mode=1777,size=52m tmpfs "$root/tmp"
mount -t tmpfs -o mode=755,size=52m tmpfs "$root/run"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
hostname canaan

# sysfs and /proc as the board's kernel would show them
real=/sys/devices/virtual/block/$VB_LOOP
mount -t tmpfs -o mode=755,size=1m sysfs "$root/sys/block"
mount -t tmpfs -o mode=755,size=1m sysfs "$root/sys/class/block"
mkdir "$root/sys/block/$VB_DISK"
for file in size ro removable stat queue dev uevent; do
	ln -s "$real/$file" "$root/sys/block/$VB_DISK/$file"
done
ln -s "$real" "$root/sys/class/block/$VB_DISK"
for part in 1 2 3 4; do
	ln -s "$real/${VB_LOOP}p$part" "$root/sys/block/$VB_DISK/${VB_DISK}p$part"
	ln -s "$real/${VB_LOOP}p$part" "$root/sys/class/block/${VB_DISK}p$part"
done
mkdir "$root/run/.board"
echo "$VB_MOUNT_DELAY" >"$root/run/.board/mount-delay"
mkfifo "$root/run/.board/vfat-request" "$root/run/.board/vfat-answer"
cover() { # cover FILE: standard input hides the content of /proc/FILE
	cat >"$root/run/.board/$1"
	mount --bind "$root/run/.board/$1" "$root/proc/$1"
}
echo "root=/dev/${VB_DISK}p3 loglevel=8 rw rootdelay=4 rootfstype=ext4 console=ttyS0,115200 earlycon=sbi" |
	cover cmdline
cat <<END | cover cpuinfo
processor	: 0
hart		: 0
isa		: rv64imafdc
mmu		: sv39

END
echo "Linux version 5.10.4 (virtual K230) #1 SMP" | cover version
cat <<END | cover meminfo
MemTotal:         108936 kB
MemFree:           58412 kB
MemAvailable:      61184 kB
Buffers:            1036 kB
Cached:            12004 kB
SwapTotal:             0 kB
SwapFree:              0 kB
END
head -2 /proc/partitions | cover partitions
if [ -d "$root/sys/firmware" ]; then
	mount -t tmpfs -o mode=755,size=1m sysfs "$root/sys/firmware"
	tree=$root/sys/firmware/devicetree/base
	mkdir -p "$tree"
	printf 'kendryte k230 canmv\0' >"$tree/model"
	printf 'kendryte,k230_canmv\0kendryte,k230\0' >"$tree/compatible"
fi
# mdev keeps /dev in step when a partition is made anew
printf '%s\n' "$VB_LOOP 0:0 660 =$VB_DISK" "${VB_LOOP}p([1-9]) 0:0 660 =${VB_DISK}p%1" \
	'.* 0:0 660 !' >"$root/run/mdev.conf"
mkdir -p "$root/run/sshd"
chmod 755 "$root/run/sshd"
cd /
exec chroot "$root" /usr/bin/env -i PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root /sbin/init \
	</dev/null >/dev/null 2>&1
