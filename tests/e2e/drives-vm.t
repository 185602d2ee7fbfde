#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two drives of which one has trouble, in the lab's VM: read errors, a stall, a full file
# system, removal while busy. The blocks of the other one are served, with their bytes, and
# nobody waits longer than he said.

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"
kernel=${HAWK_LAB_KERNEL:-6.1}

need_lab "$kernel"
exec "$root/tools/lab/hawk-lab" run --kernel "$kernel" --check-log --quiet --timeout 900 -- \
	sh -uc '
		cd "$1"
		n=0
		tell() {
			n=$((n + 1))
			[ "$1" = 0 ] && echo "ok $n - $2" || { sed "s/^/# /" /tmp/log; dmesg | grep hawk: | tail -5 | sed "s/^/# /"; echo "not ok $n - $2"; }
		}
		skip() { n=$((n + 1)); echo "ok $n # SKIP $1"; }
		ctl() { build/bin/hawkctl "$@" >/tmp/log 2>&1; }
		drives() { build/tests/drives_do dev: "$@" >/tmp/log 2>&1; }
		# said NR WORD AT_LEAST AT_MOST: the NR-th that was said of it
		said() { v=$(sed -n "s/^$2 //p" /tmp/log | sed -n "$1p"); [ -n "$v" ] && [ "$v" -ge "$3" ] && [ "$v" -le "$4" ]; }
		dm() { dmsetup --noudevrules --noudevsync "$@" >/tmp/dm 2>&1; }
		SECTORS=131072
		linear() { echo "0 $SECTORS linear /dev/nvme0n1 $(($1 * SECTORS))"; }
		# a drive of 64 MiB
		slice() { dm create d$1 --table "$(linear $1)" && dm mknodes && [ -b /dev/mapper/d$1 ]; }
		reload() { rmmod hawk && insmod build/kmod-'"$kernel"'/hawk.ko && ctl tier add-host 2M; }
		two() { reload && ctl tier add-blk /dev/mapper/d0 && ctl tier add-blk /dev/mapper/d1; }

		: >/tmp/log; modprobe dm-mod 2>/dev/null
		slice 0 && slice 1; tell $? "two drives"

		# errors: half of what is on flash is on the other one
		two
		drives "put 0 128" "sh dmsetup --noudevsync suspend d1 && dmsetup --noudevsync load d1 --table \"0 $SECTORS error\" && dmsetup --noudevsync resume d1" \
			"get 0 128" "health 2 failing" "put 200 64" "get 200 64" \
			"sh dmsetup --noudevsync suspend d1 && dmsetup --noudevsync load d1 --table \"$(linear 1)\" && dmsetup --noudevsync resume d1" \
			"mend 2" "put 300 128" "get 300 128"
		tell $? "read errors on one of two: it fails, and works again when it is mended"
		said 2 right 70 100; tell $? "blocks of the other one are right"
		said 2 missing 28 58; tell $? "its own are misses"
		said 4 right 60 64; tell $? "new blocks go to the other one"
		said 6 right 128 128; tell $? "and to both when it is mended"
		dmesg | grep -q "tier 2 (.*) fails: -5, .*hawkctl tier del 2 --force"; tell $? "the log says what to do"

		# stall
		two
		drives "put 0 128" "sh dmsetup --noudevsync suspend --noflush --nolockfs d1" "get 0 16 500" \
			"health 2 failing" "put 200 8 9000" "get 200 8 9000" \
			"sh dmsetup --noudevsync resume d1" "idle 2" "get 0 128" "health 2 ok"
		tell $? "one of two stalls: nobody waits for ever"
		said 2 late 1 16; tell $? "what is there is late"
		said 3 late 0 0 && said 4 right 8 8; tell $? "new blocks go to the other one"
		said 5 right 128 128; tell $? "and when it goes on, all are right"

		# a client that is killed while its reads are out
		two
		build/tests/drives_do dev: "put 0 128" "sh dmsetup --noudevsync suspend --noflush --nolockfs d1" "get 0 128" >/tmp/log 2>&1 &
		for i in $(seq 600); do [ "$(dmsetup info -c --noheadings -o suspended d1)" = Suspended ] && break; sleep 0.1; done
		kill -9 $!; wait $! 2>/dev/null
		dmsetup --noudevsync resume d1 >/dev/null
		two; tell $? "a client killed meanwhile leaves nothing"

		# a page of the records of a pool, 4096 bytes at 69632, cannot be read
		fill() { build/tests/pool_fill dev: "$@" >/tmp/log 2>&1; }
		reload && ctl flash format /dev/mapper/d0 --force && ctl --pool tier add-blk /dev/mapper/d0 && fill agents 96
		tell $? "a pool with blocks"
		reload; P=136
		dmsetup --noudevsync suspend d0 && printf "0 $P linear /dev/nvme0n1 0\n$P 8 error\n$((P + 8)) $((SECTORS - P - 8)) linear /dev/nvme0n1 $((P + 8))\n" >/tmp/table &&
			dmsetup --noudevsync load d0 /tmp/table && dmsetup --noudevsync resume d0
		tell $? "a page of its records is bad"
		ctl --pool tier add-blk /dev/mapper/d0; tell $? "it costs its chunks, not the pool"
		dmesg | grep -q "whose 16 chunks are cannot be read"; tell $? "the log says so"
		fill agents 96 check && said 1 right 0 95; tell $? "what is found is right"
		fill others 96; tell $? "new blocks are kept"
		reload; dmsetup --noudevsync suspend d0; dmsetup --noudevsync load d0 --table "$(linear 0)"; dmsetup --noudevsync resume d0
		dd if=/dev/zero of=/dev/mapper/d0 bs=1M count=1 oflag=direct 2>/dev/null

		# a full file system
		slice 2 && mkfs.ext4 -q -F /dev/mapper/d2 32M && mount /dev/mapper/d2 /mnt && truncate -s 512M /mnt/kv
		tell $? "a file system, and a sparse file larger than that"
		reload && ctl tier add-blk /dev/mapper/d0 && ctl tier add-blk /mnt/kv
		drives "put 0 900" "health 2 failing" "get 600 300" "put 1000 64" "get 1000 64"
		tell $? "the file system is full: the drive fails"
		said 4 right 60 64; tell $? "new blocks go to the other one"
		dmesg | grep -q "fails: -28, its file system is full, make room there"; tell $? "the log says why"
		reload; umount /mnt
		if [ -x /usr/sbin/mkfs.xfs ] && modprobe xfs 2>/dev/null; then
			dm create d4 --table "0 $((6 * SECTORS)) linear /dev/nvme0n1 $((8 * SECTORS))"; dm mknodes
			mkfs.xfs -q -f /dev/mapper/d4 && mount /dev/mapper/d4 /mnt && truncate -s 64M /mnt/kv &&
				ctl tier add-blk /mnt/kv && drives "put 0 128" "get 0 128" && said 2 right 128 128
			tell $? "a file on xfs"
			reload; umount /mnt
		else
			skip "a file on xfs: no xfsprogs"
		fi
		dm remove d0; dm remove d1; dm remove d2; dm remove d4
		addpart /dev/nvme0n1 1 2048 131072 && ctl tier add-blk /dev/nvme0n1p1 && drives "put 0 128" "get 0 128" && said 2 right 128 128
		tell $? "a partition"

		# taken out while busy
		if modprobe sd_mod && modprobe scsi_debug dev_size_mb=64 sector_size=4096 2>/dev/null; then
			for i in $(seq 100); do [ -b /dev/sda ] && break; sleep 0.1; done
			reload && ctl tier add-blk /dev/nvme0n1p1 && ctl tier add-blk /dev/sda
			drives "put 0 128" "sh echo 1 >/sys/block/sda/device/delete" "get 0 128" "health 2 lost" \
				"put 200 64" "get 200 64" "get 0 128"
			tell $? "a drive is taken out: its tier goes"
			said 2 right 70 100 && said 5 right 6 100; tell $? "blocks of the other one are right"
			said 4 right 60 64; tell $? "new blocks go to the other one"
		else
			skip "a drive is taken out: no scsi_debug"
		fi
		# all of them, and in the middle of writes
		reload && ctl tier add-blk /dev/nvme0n1p1
		(sleep 1; echo 1 >"$(readlink -f /sys/block/nvme0n1/device/device)/remove") &
		drives "put 0 64" "sh true" "put 100 3000 1000" "health 1 lost" "put 10000 16" "get 10000 16"
		tell $? "the NVMe drive is pulled while blocks are written: its tier goes"
		said 4 right 16 16; tell $? "memory goes on without it"
		wait
		rmmod hawk; tell $? "and the module can be unloaded"
		echo "1..$n"' drives-vm "$root"
