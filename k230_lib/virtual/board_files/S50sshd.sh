#!/bin/sh
case $1 in
start)
	/usr/bin/ssh-keygen -A >/dev/null 2>&1
	/usr/sbin/sshd
	;;
stop) [ -s /run/sshd.pid ] && kill "$(cat /run/sshd.pid)" ;;
restart | reload)
	"$0" stop
	"$0" start
	;;
*)
	echo "Usage: $0 {start|stop|restart}"
	exit 1
	;;
esac
