#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hawkd over /dev/hawk and an NVMe drive, in the lab's VM: the tests of hawkd.t,
# hawkd-spec.t and hawkd-sparse.t that show KV going through the device.
#
#	HAWK_VM_TIMEOUT	seconds that all may take (1800)

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"

need_lab 6.1
exec "$root/tools/lab/hawk-lab" run --check-log --quiet --timeout "${HAWK_VM_TIMEOUT:-1800}" \
	--env HAWK_URL=dev:/dev/hawk --env HAWK_SMALL=1 \
	${HAWK_TEST_MODEL:+--env HAWK_TEST_MODEL="$HAWK_TEST_MODEL"} -- \
	sh -euc '
		cd "$1"
		# Run a script; its TAP is renumbered. That it fails or does not end is a failure.
		part() {
			{ "$@" || echo "status $?"; } | awk -v n="$n" -v name="${1##*/}" "
				/^(not )?ok [0-9]+/ { sub(/[0-9]+ -/, ++n \" - \" name \":\"); bad = bad || /^not/ }
				/^1\.\.0 # SKIP/ { sub(/^1\.\.0/, \"ok \" ++n \" - \" name); print; ended = 1; next }
				/^1\.\./ { ended = 1; next }
				/^status / { if (!bad) print \"not ok\", ++n, \"- \" name \" ends with \" \$0; next }
				{ print; fflush() }
				END {
					if (!ended) print \"not ok\", ++n, \"- \" name \" did not end\"
					print n >\"/tmp/n\"
				}"
			n=$(cat /tmp/n)
		}
		build/bin/hawkctl tier add-host 2M >/dev/null
		build/bin/hawkctl tier add-blk /dev/nvme0n1 >/dev/null
		n=0
		part tests/e2e/hawkd.t completion streaming drop cancel spill stories
		part tests/e2e/hawkd-spec.t greedy sampled beside_others after_drop cache_is_the_same ring
		part tests/e2e/hawkd-sparse.t reads invariance next_turn
		echo "1..$n"' \
		hawkd-vm "$root"
