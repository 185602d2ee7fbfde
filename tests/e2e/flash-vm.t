#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Persistent flash in the lab's VM: a pool on the NVMe drive, and one in a file on ext4, that
# the embedded backend has filled is the module's, and the other way round.

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"
kernel=${HAWK_LAB_KERNEL:-6.1}

need_lab "$kernel"
exec "$root/tools/lab/hawk-lab" run --kernel "$kernel" --check-log --quiet --timeout 600 -- \
	sh -uc '
		cd "$1"
		n=0
		tell() {
			n=$((n + 1))
			[ "$1" = 0 ] && echo "ok $n - $2" || { cat /tmp/log | sed "s/^/# /"; echo "not ok $n - $2"; }
		}
		ctl() { build/bin/hawkctl "$@" >/tmp/log 2>&1; }
		fill() { build/tests/pool_fill "$@" >/tmp/log 2>&1; }
		# said WORD AT_LEAST AT_MOST
		said() { v=$(sed -n "s/^$1 //p" /tmp/log); [ "${v:-0}" -ge "$2" ] && [ "$v" -le "$3" ]; }
		reload() { rmmod hawk && insmod build/kmod-'"$kernel"'/hawk.ko && ctl tier add-host 2M; }

		pool() {
			where=$1 embed="embed:?dram=2M&flash=$1&persist=1"
			ctl flash format "$where" $2; tell $? "$3: format"
			fill "$embed" agents 96; tell $? "$3: the embedded backend fills it"
			reload
			ctl tier add-blk "$where"; [ $? = 1 ]; tell $? "$3: the module refuses it as plain flash"
			ctl --pool tier add-blk "$where"; tell $? "$3: and takes it as a pool"
			fill dev: agents 96 check && said recovered 64 96 && said right 64 96
			tell $? "$3: finds the blocks, with their bytes"
			fill dev: others 0 && said recovered 0 0
			tell $? "$3: another space finds nothing"
			# named spaces stay, and have all of the memory
			reload && ctl --pool tier add-blk "$where"
			fill dev: kernel 96; tell $? "$3: the module fills it"
			reload
			ctl flash check "$where" --data; tell $? "$3: whole after the module has gone"
			fill "$embed" kernel 96 check && said recovered 64 96 && said right 64 96
			tell $? "$3: the embedded backend finds the blocks, with their bytes"
			ctl --pool tier add-blk "$where"
			fill dev: kernel 96 check && said recovered 64 96 && said right 64 96
			tell $? "$3: and so does the module"
			ctl tier del 1 --force; tell $? "$3: it can be taken away while a space uses it"
			reload
		}
		pool /dev/nvme0n1 "" "drive"
		# the rated endurance is the write budget, until told otherwise; the drive counts too
		ctl flash format /dev/nvme0n1 --force --endurance 100T
		ctl --pool tier add-blk /dev/nvme0n1
		[ "$(cat /sys/class/misc/hawk/tier1/write_budget_bytes)" = $((75 << 40)) ]
		tell $? "three quarters of the rated endurance are the budget"
		ctl --json flash check /dev/nvme0n1; [ $? = 1 ] && grep -q "uses it" /tmp/log
		tell $? "a drive in use is not read but by force"
		ctl tier del 1
		ctl --json flash wear /dev/nvme0n1 && cp /tmp/log /tmp/before
		dd if=/dev/zero of=/dev/nvme0n1 bs=1M seek=40 count=16 oflag=direct 2>/dev/null
		ctl --json flash wear /dev/nvme0n1 && cp /tmp/log /tmp/after
		python3 -c "
import json
a, b = (json.load(open(f)) for f in (\"/tmp/before\", \"/tmp/after\"))
assert a[\"pool\"][\"budget_bytes_per_day\"] == 75 << 40, a
assert b[\"drive\"][\"written_bytes\"] - a[\"drive\"][\"written_bytes\"] > 15 << 20, (a, b)
assert a[\"drive\"][\"percentage_used\"] == 0, a" 2>>/tmp/log
		tell $? "the SMART log of the drive is beside it, and has what was written"
		mkfs.ext4 -q -F /dev/nvme0n1 && mount /dev/nvme0n1 /mnt
		pool /mnt/pool "--bytes 64M" "file on ext4"
		ctl flash wear /mnt/pool && grep -q "/dev/nvme0n1" /tmp/log
		tell $? "also of the drive that a file is on"
		umount /mnt
		echo "1..$n"' flash-vm "$root"
