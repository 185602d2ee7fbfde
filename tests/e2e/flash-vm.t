#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Persistent flash in the lab's VM: a pool on the NVMe drive, and one in a file on ext4, that
# the embedded backend has filled is the module's, and the other way round.

root=$(cd "$(dirname "$0")/../.." && pwd)

if ! "$root/tools/lab/hawk-lab" status >/dev/null 2>&1; then
	echo "1..0 # SKIP the lab does not work here (tools/lab/hawk-lab status)"
	exit 0
fi
if [ ! -e "$root/build/kmod-6.1/hawk.ko" ]; then
	echo "1..0 # SKIP hawk.ko is not built (tools/lab/build-module)"
	exit 0
fi
exec "$root/tools/lab/hawk-lab" run --check-log --quiet --timeout 600 -- \
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
		reload() { rmmod hawk && insmod build/kmod-6.1/hawk.ko && ctl tier add-host 2M; }

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
		mkfs.ext4 -q -F /dev/nvme0n1 && mount /dev/nvme0n1 /mnt
		pool /mnt/pool "--bytes 64M" "file on ext4"
		umount /mnt
		echo "1..$n"' flash-vm "$root"
