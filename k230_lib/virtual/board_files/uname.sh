#!/bin/sh
# the board's answers, not this machine's
s=Linux n=$(hostname) r=5.10.4 v='#1 SMP' m=riscv64 o=GNU/Linux
out=
[ $# -gt 0 ] || set -- -s
for word; do
	case $word in
	-a | --all) set -- s n r v m o ;;
	esac
done
for key in s n r v m o; do
	for word; do
		case $word in *"$key"*)
			eval "out=\"\$out \$$key\""
			break
			;;
		esac
	done
done
echo "${out# }"
