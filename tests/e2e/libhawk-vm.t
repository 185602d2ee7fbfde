#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libhawk's own tests over /dev/hawk in the lab's VM: what holds for the embedded
# backend holds for the kernel's.  Flash files lie on the NVMe drive; lib_prefetch has the
# model of an accelerator.  A test that is skipped has shown nothing, so its line fails,
# but for by_the_real_clock, which a slow machine cannot pass.
#
#	HAWK_VM_TIMEOUT	seconds that all may take (600)

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"

need_lab 6.1
exec "$root/tools/lab/hawk-lab" run --check-log --quiet --timeout "${HAWK_VM_TIMEOUT:-600}" \
	--env HAWK_URL=dev:/dev/hawk --env HAWK_TEST_DIR=/mnt \
	--env CMOCKA_MESSAGE_OUTPUT=TAP -- \
	sh -euc '
		cd "$1"
		mkfs.ext4 -q /dev/nvme0n1
		mount /dev/nvme0n1 /mnt
		insmod "$(dirname "$HAWK_LAB_KO")/hawk_accel.ko" engines=1 size_mib=32
		n=0
		for test in tests/lib_blocks tests/lib_spaces tests/lib_async tests/lib_threads tests/lib_stats \
			    tests/lib_gather tests/lib_prefetch tests/lib_slices tests/lib_seq tests/lib_elastic \
			    tests/lib_handoff \
			    tests/lib_draft tests/translate_loop tests/draft_loop; do
			n=$((n + 1))
			timeout 120 "build/$test" >/tmp/log 2>&1 && ok= || ok="not "
			grep "# SKIP" /tmp/log | grep -qv by_the_real_clock && ok="not "
			[ -z "$ok" ] && show="# SKIP" || show=
			grep -e "$show" /tmp/log | sed "s/^/# /"
			echo "${ok}ok $n - $test"
		done
		umount /mnt
		echo "1..$n"' libhawk-vm "$root"
