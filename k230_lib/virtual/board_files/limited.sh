#!/bin/sh
# Tools whose busybox on the board was built with fewer features than this machine's.
name=${0##*/}
refuse() {
	echo "$name: $1" >&2
	exit 1
}
case $name in
tar)
	first=y
	for word; do
		case $word in
		--gzip | --gunzip | --bzip2 | --xz | --lzma | --auto-compress) refuse "unrecognized option '$word'" ;;
		--*) ;;
		-*[zjJa]*) refuse "invalid option -- 'z'" ;;
		*[zjJa]*) [ -z "$first" ] || case $word in *[!A-Za-z]*) ;; *) refuse "invalid option -- 'z'" ;; esac ;;
		esac
		first=
	done
	;;
find)
	for word; do [ "$word" != -delete ] || refuse "unrecognized: -delete"; done
	;;
gzip)
	for word; do
		case $word in -[1-9]*) refuse "invalid option -- '${word#-}'" ;; esac
	done
	;;
date)
	# without the feature, strftime prints %N as it stands
	for word; do
		shift
		case $word in +*%N*) word=$(echo "$word" | sed 's/%N/%%N/g') ;; esac
		set -- "$@" "$word"
	done
	;;
esac
exec /usr/lib/board/busybox "$name" "$@"
