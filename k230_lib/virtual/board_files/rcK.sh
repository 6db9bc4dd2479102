#!/bin/sh
killall sharefs
umount /sharefs
sync
