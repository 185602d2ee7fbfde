#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hawkd over /dev/hawk and an NVMe drive, in the lab's VM: the tests of hawkd.t
# that show KV going through the device.

root=$(cd "$(dirname "$0")/../.." && pwd)

if ! "$root/tools/lab/hawk-lab" status >/dev/null 2>&1; then
	echo "1..0 # SKIP the lab does not work here (tools/lab/hawk-lab status)"
	exit 0
fi
if [ ! -e "$root/build/kmod-6.1/hawk.ko" ]; then
	echo "1..0 # SKIP hawk.ko is not built (tools/lab/build-module)"
	exit 0
fi
exec "$root/tools/lab/hawk-lab" run --check-log --quiet --timeout 900 \
	--env HAWK_URL=dev:/dev/hawk ${HAWK_TEST_MODEL:+--env HAWK_TEST_MODEL="$HAWK_TEST_MODEL"} -- \
	sh -euc '
		cd "$1"
		build/bin/hawkctl tier add-host 2M >/dev/null
		build/bin/hawkctl tier add-blk /dev/nvme0n1 >/dev/null
		exec tests/e2e/hawkd.t completion streaming drop cancel spill stories' \
		hawkd-vm "$root"
