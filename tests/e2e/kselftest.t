#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hawk.ko on both lab kernels: builds without a warning (W=1, sparse), passes its
# kselftests, unloads with a clean kernel log.  Every test of every program is a
# TAP line here.
#
#	HAWK_KILL_N	deaths of the killed writer (1000)
#	HAWK_KERNELS	lab kernels to use ("6.1 6.12")
#	HAWK_KSELFTESTS	the programs (hawk_*)
#	HAWK_VM_TIMEOUT	seconds that the programs of one kernel may take (2400)

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"
cd "$root" || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

need_lab

# The programs' own TAP, renumbered and named after kernel and program.
renumber()
{
	awk -v n="$n" -v kernel="$1" -v count="$tmp/count" '
		function line(ok, name) {
			printf "%s %d - %s %s\n", ok, ++n, kernel, name; fflush()
			if (ok != "ok")		# prove keeps the number only
				printf "# not ok %d - %s %s\n", n, kernel, name >"/dev/stderr"
		}
		/^### begin / { prog = $3; failed = 0; ended = 0; next }
		/^### end / {
			ended = 1
			if (prog == "rmmod" || ($4 != 0 && !failed))
				line($4 == 0 ? "ok" : "not ok", prog " exits with status " $4)
			next
		}
		/^(not )?ok [0-9]+/ {
			ok = $1 == "ok" ? "ok" : "not ok"
			failed += ok != "ok"
			sub(/^(not )?ok [0-9]+ (- )?/, "")
			line(ok, prog ": " $0)
			next
		}
		/^# +(RUN|OK) / || /^(TAP|1\.\.)/ { next }
		{ print /^#/ ? $0 : "# " $0; fflush() }
		END {
			if (!ended)
				line("not ok", prog " did not end")
			print n >count
		}'
}

make -s kselftests build/bin/hawk-npu >"$tmp/log" 2>&1
report $? "the kselftests build" "$tmp/log"
set -- $(ls build/tests/kselftest/${HAWK_KSELFTESTS:-hawk_*} 2>/dev/null)
if [ ! -e build/tests/kselftest/hawk_abi32 ]; then
	n=$((n + 1))
	echo "ok $n - 32-bit programs # SKIP this compiler builds none (gcc-multilib)"
fi

for kernel in ${HAWK_KERNELS:-6.1 6.12}; do
	append=
	[ "$kernel" != debug ] || append="--append slub_debug=A,radix_tree_node"	# hawk_fail_batch
	if [ "$kernel" != debug ]; then		# its checks are made while it runs
		tools/lab/build-module --kernel "$kernel" --out "build/kmod-$kernel-lint" --clean \
			--sparse W=1 >"$tmp/log" 2>&1
		report $? "hawk.ko builds for $kernel without a warning of W=1 and sparse" "$tmp/log"
	fi
	tools/lab/build-module --kernel "$kernel" >"$tmp/log" 2>&1
	report $? "hawk.ko builds for $kernel" "$tmp/log"

	{
		tools/lab/hawk-lab run --kernel "$kernel" --rdma --npu 16 --check-log --quiet $append \
			--log "build/kselftest-$kernel.log" --timeout "${HAWK_VM_TIMEOUT:-2400}" --env HAWK_KILL_N="${HAWK_KILL_N:-1000}" -- \
			sh tests/kselftest/in-guest "$@" 2>&1
		echo $? >"$tmp/rc"
	} | renumber "$kernel"
	n=$(cat "$tmp/count")
	report "$(cat "$tmp/rc")" "$kernel: kernel log clean, also after rmmod (status $(cat "$tmp/rc"))"
done
echo "1..$n"
