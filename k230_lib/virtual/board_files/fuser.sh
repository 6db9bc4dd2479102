#!/bin/sh
# fuser [-m] FILE...: process ids that use a file, or with -m anything on its file system
same_fs=
[ "$1" != -m ] || { same_fs=1; shift; }
found=
for target; do
	target=$(readlink -f "$target") || continue
	for process in /proc/[0-9]*; do
		for link in "$process/cwd" "$process/root" "$process/exe" "$process"/fd/*; do
			file=$(readlink "$link" 2>/dev/null) || continue
			case $file in
			"$target") ;;
			"$target"/*) [ -n "$same_fs" ] || continue ;;
			*) continue ;;
			esac
			found="$found ${process#/proc/}"
			break
		done
	done
done
[ -n "$found" ] && echo "${found# }"
