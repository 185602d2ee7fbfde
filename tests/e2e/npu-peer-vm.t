#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A prefill host and a host with an NPU, two VMs on one wire with soft RoCE: KV of some layers
# of a 70B model goes from rows in a host tier here to tiles of 16 x 16 in the NPU's memory
# there, by every way of the transport, and what the NPU computes from it is compared with
# attention to the rows (fp16 exact inputs, fp32 sums, relative error 1e-3).
#
#	HAWK_PEER_PAIR	also: an NPU's host that dies in a transfer, all ways over a wire that
#			loses and reorders packets
#	HAWK_VM_TIMEOUT	seconds that all may take (300)

root=$(cd "$(dirname "$0")/../.." && pwd)
lab=$root/tools/lab/hawk-lab
kernel=${HAWK_PEER_KERNEL:-6.1}
cases="ways harm${HAWK_PEER_PAIR:+ crash lossy} quit"
. "$root/tests/e2e/lib/tap.sh"

need_lab

# hawk-lab for a host: its number on the wire, options, the script to run.
host()
{
	number=$1 script=$2
	shift 2
	"$lab" run --kernel "$kernel" --link "$tmp/wire:$number" --nvme-size 64M --check-log \
		--quiet --timeout "${HAWK_VM_TIMEOUT:-300}" "$@" -- \
		sh -uc "$script" "host$number" "$root/build/tests/npu_do" "$cases"
}

npu_host()
{
	host 1 '
		insmod "$(dirname "$HAWK_LAB_KO")/hawk_npu.ko" || exit
		until "$1" serve 10.78.0.1 7471; do
			echo "the NPU host ended, $?"
		done' --npu 16
}

prefill_host()
{
	host 2 '
		for case in $2; do
			timeout 200 "$1" $case 10.78.0.2 10.78.0.1 7471 ||
				echo "not ok $case ended with $?"
		done'
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
npu_host >"$tmp/npu" 2>&1 &
npu=$!
prefill_host >"$tmp/prefill" 2>&1 || echo "not ok prefill host: $?" >>"$tmp/prefill"
wait $npu && echo "ok NPU host: its log is clean" >>"$tmp/prefill" ||
	echo "not ok NPU host: $?" >>"$tmp/prefill"
sed 's/^/# NPU host: /' "$tmp/npu"
while read -r line; do
	case $line in
	"ok "*) n=$((n + 1)) && echo "ok $n - ${line#ok }" ;;
	"not ok "*) n=$((n + 1)) && echo "not ok $n - ${line#not ok }" ;;
	*) echo "# $line" ;;
	esac
done <"$tmp/prefill"
echo "1..$n"
