#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libhawk's transport over soft RoCE in the lab's VM: connections, the shared key, grants as
# memory windows, put and get, what the NIC refuses, sequences from one layout to another, from
# one port to the other, blocks of /dev/hawk among what moves.  What needs faults of the network
# is left out (natively it is not).
#
#	HAWK_PEER_PAIR	two VMs on one wire, too: put and get, every way, another key, keys and
#			addresses that are not granted, a host that dies in a transfer, and all
#			bytes again over a wire that loses and reorders packets
#	HAWK_VM_TIMEOUT	seconds that all may take (300; 1,500 for the two)

root=$(cd "$(dirname "$0")/../.." && pwd)
lab=$root/tools/lab/hawk-lab
kernel=${HAWK_PEER_KERNEL:-6.1}
. "$root/tests/e2e/lib/tap.sh"

need_lab

# The file $1 into TAP: each line is "ok NAME", "not ok NAME: WHY" or a note.
tap()
{
	while read -r line; do
		case $line in
		"ok "*) n=$((n + 1)) && echo "ok $n - ${line#ok }" ;;
		"not ok "*) n=$((n + 1)) && echo "not ok $n - ${line#not ok }" ;;
		*) echo "# $line" ;;
		esac
	done <"$1"
}

one_vm()
{
	"$lab" run --kernel "$kernel" --rdma --nvme-size 64M --check-log --quiet \
		--timeout "${HAWK_VM_TIMEOUT:-300}" \
		--env HAWK_TEST_FROM=10.77.0.1 --env HAWK_TEST_AT=10.77.0.2:7471 -- \
		sh -uc '
			cd "$1"
			[ ! -e /dev/hawk ] || export HAWK_URL=dev:/dev/hawk
			for test in lib_peer lib_peer_session; do
				timeout 120 "build/tests/$test" >/tmp/log 2>&1 && ok= || ok="not "
				sed "s/^/# /" /tmp/log
				echo "${ok}ok $test, from one port to the other"
			done' peer-vm "$root"
}

decode_host()
{
	"$lab" run --kernel "$kernel" --no-module --link "$tmp/wire:1" --nvme-size 64M \
		--check-log --quiet --timeout "${HAWK_VM_TIMEOUT:-1500}" -- sh -uc '
			until "$1/build/tests/peer_do" serve 10.78.0.1 7471; do
				echo "the decode host ended, $?"
			done' decode "$root"
}

prefill_host()
{
	"$lab" run --kernel "$kernel" --no-module --link "$tmp/wire:2" --nvme-size 64M \
		--check-log --quiet --timeout "${HAWK_VM_TIMEOUT:-1500}" -- sh -uc '
			for case in putget ways key malice crash lossy quit; do
				timeout 900 "$1/build/tests/peer_do" $case 10.78.0.2 10.78.0.1 7471 ||
					echo "not ok $case ended with $?"
			done' prefill "$root"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
one_vm >"$tmp/one" 2>&1 || echo "not ok the VM ended with $?" >>"$tmp/one"
tap "$tmp/one"
if [ -n "${HAWK_PEER_PAIR:-}" ]; then
	decode_host >"$tmp/decode" 2>&1 &
	decode=$!
	prefill_host >"$tmp/prefill" 2>&1 || echo "not ok prefill host: $?" >>"$tmp/prefill"
	wait $decode && echo "ok decode host: its log is clean" >>"$tmp/prefill" ||
		echo "not ok decode host: $?" >>"$tmp/prefill"
	sed 's/^/# decode: /' "$tmp/decode"
	tap "$tmp/prefill"
fi
echo "1..$n"
