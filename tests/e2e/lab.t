#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The lab itself: one boot for each kernel, in which everything a test relies on
# is looked at. TAP; run by prove. HAWK_LAB_KERNELS chooses the kernels.

repo=$(cd "$(dirname "$0")/../.." && pwd)
lab=$repo/tools/lab/hawk-lab
kernels=${HAWK_LAB_KERNELS:-"6.1 6.12 debug"}
per_kernel=10
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
n=0

# ok DESCRIPTION COMMAND...: one test, passed when the command succeeds.
ok()
{
	n=$((n + 1))
	what=$1
	shift
	if "$@"; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$tmp/err" "$tmp/out" 2>/dev/null | tail -30
	fi
}

skip()
{
	for i in $(seq "$1"); do
		n=$((n + 1))
		echo "ok $n # SKIP $2"
	done
}

out_has()
{
	grep -q "$1" "$tmp/out"
}

# What the guest runs; it ends with the status the host expects back.
cat >"$tmp/job" <<'END'
uname -r
echo "nodes: $(ls -d /sys/devices/system/node/node[0-9]* | wc -l)"
echo "drive: $(cat /sys/block/nvme0n1/size) $(cat /sys/class/nvme/nvme0/serial)"
dd if=/dev/nvme0n1 of=/dev/null bs=64k count=4 iflag=direct 2>/dev/null && echo "drive reads"
ibv_devinfo -d rxe0 | grep -q PORT_ACTIVE && echo "rxe0 active"
rping -s -a 10.77.0.1 -C 2 -S 4096 >/dev/null 2>&1 &
tries=0
until rping -c -a 10.77.0.1 -C 2 -S 4096 >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 20 ] || break
done
[ $tries -lt 20 ] && echo "rdma ping"
echo changed >"$1/witness" && echo "guest wrote $(cat "$1/witness")"
echo result >"$HAWK_LAB_OUT/result"
echo "to stderr" >&2
exit 7
END

for kernel in $kernels; do
	if [ "$kernel" = debug ] && [ -z "$HAWK_DEBUG_KERNEL" ] &&
	   "$lab" status --json | grep -A1 '"debug"' | grep -q '"release": null'; then
		skip $per_kernel "no debug kernel in the cache and HAWK_DEBUG_KERNEL is not set"
		continue
	fi
	echo original >"$tmp/witness"
	rm -rf "$tmp/results"
	"$lab" run --kernel "$kernel" --no-module --rdma --nvme-size 64M --out "$tmp/results" \
		--log "$tmp/log" --json "$tmp/json" --timeout 400 -- sh "$tmp/job" "$tmp" \
		>"$tmp/out" 2>"$tmp/err"
	status=$?
	release=$("$lab" kernel --kernel "$kernel" --json | sed -n 's/.*"release": "\(.*\)",/\1/p')
	ok "$kernel: the command's exit status comes back" [ $status -eq 7 ]
	ok "$kernel: the guest runs the kernel asked for" out_has "^$release\$"
	ok "$kernel: two NUMA nodes" out_has '^nodes: 2$'
	ok "$kernel: the NVMe drive has the size asked for" out_has '^drive: 131072 hawk-lab'
	ok "$kernel: the NVMe drive reads" out_has '^drive reads$'
	ok "$kernel: soft RoCE is up" out_has '^rxe0 active$'
	ok "$kernel: soft RoCE moves data" out_has '^rdma ping$'
	ok "$kernel: the guest can write its root and the host's stays as it was" \
		[ "$(tail -n 1 "$tmp/out") $(cat "$tmp/witness")" = "guest wrote changed original" ]
	ok "$kernel: the output folder is shared" [ "$(cat "$tmp/results/result")" = result ]
	ok "$kernel: standard error is kept apart, and the kernel log too" \
		[ "$(grep -c 'to stderr' "$tmp/err") $(grep -c 'to stderr' "$tmp/out")" = "1 0" ]
done

# The rest needs one more boot: a status of 0 turned into a failure by the log alone.
"$lab" run --kernel "${kernels%% *}" --no-module --check-log --timeout 400 --json "$tmp/json" -- \
	sh -c 'echo "<4>WARNING: provoked by a test" >/dev/kmsg' >"$tmp/out" 2>"$tmp/err"
status=$?
ok "--check-log fails on a warning" [ $status -eq 123 ]
ok "--check-log shows the line" grep -q '^\[.*WARNING: provoked by a test' "$tmp/err"
ok "the JSON result tells the command's status from the lab's" \
	grep -q '"command_exit": 0' "$tmp/json"

"$lab" run --kernel "${kernels%% *}" --no-module --timeout 0.5 -- true >"$tmp/out" 2>"$tmp/err"
status=$?
ok "a time-out ends the guest with its own status" [ $status -eq 124 ]
"$lab" run --no-module --nvme-size 1X -- true >"$tmp/out" 2>"$tmp/err"
status=$?
ok "a bad size is refused before anything starts" [ $status -eq 125 ]
echo "1..$n"
