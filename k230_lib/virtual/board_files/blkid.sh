#!/bin/sh
# busybox's blkid prints these three only
exec /usr/lib/board/blkid -c /dev/null -s LABEL -s UUID -s TYPE "$@"
