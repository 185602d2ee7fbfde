#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libhawk's transport over soft RoCE in the lab's VM: connections, the shared key, grants as
# memory windows, put and get, what the NIC refuses, sequences from one layout to another, from
# one port to the other.  What needs faults of the network is left out (lib_peer natively).
#
#	HAWK_VM_TIMEOUT	seconds that all may take (300)

root=$(cd "$(dirname "$0")/../.." && pwd)

if ! "$root/tools/lab/hawk-lab" status >/dev/null 2>&1; then
	echo "1..0 # SKIP the lab does not work here (tools/lab/hawk-lab status)"
	exit 0
fi
exec "$root/tools/lab/hawk-lab" run --no-module --rdma --nvme-size 64M --check-log --quiet \
	--timeout "${HAWK_VM_TIMEOUT:-300}" --env CMOCKA_MESSAGE_OUTPUT=TAP \
	--env HAWK_TEST_FROM=10.77.0.1 --env HAWK_TEST_AT=10.77.0.2:7471 -- \
	sh -euc '
		cd "$1"
		n=0
		for test in lib_peer lib_peer_session; do
			n=$((n + 1))
			timeout 120 tests/unit/tap-exec "build/tests/$test" >/tmp/log 2>&1 && ok= || ok="not "
			sed "s/^/# /" /tmp/log
			echo "${ok}ok $n - $test, 10.77.0.1 to 10.77.0.2"
		done
		echo "1..$n"' peer-vm "$root"
