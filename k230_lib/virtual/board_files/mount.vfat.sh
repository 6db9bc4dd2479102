#!/bin/sh
# mount.vfat DEVICE FOLDER: the host's kernel has no vfat
exec /usr/lib/board/fusefat -o "rw+,allow_other,nonempty,fsname=$1,subtype=vfat" "$1" "$2" >/dev/null 2>&1
