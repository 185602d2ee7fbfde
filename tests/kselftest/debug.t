#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What only the debug kernel can show, after kselftest.t has run there: that a
# leak is found at all, and that no call of the fuzzer is answered with a warning.
# TAP; run by make check-debug.
#
#	HAWK_FUZZ_CALLS		calls of the fuzzer (30000)
#	HAWK_FUZZ_SEED		where its chance starts (1)
#	HAWK_FUZZ_TIMEOUT	seconds that they may take (1200)

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"
cd "$root" || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if ! headers=$(tools/lab/hawk-lab kernel --kernel debug --headers 2>"$tmp/err"); then
	skip_all "no debug kernel: $(head -n 1 "$tmp/err")"
fi

# ---- a leak is found ----

leak=$root/build/kmod-leak
mkdir -p "$leak"
cp tests/kselftest/control/* "$leak"
make -C "$headers" M="$leak" modules >"$tmp/log" 2>&1
report $? "the control that leaks builds" "$tmp/log"
tools/lab/hawk-lab run --kernel debug --check-log --no-module --quiet --timeout 600 \
	--log "$tmp/klog" -- sh -c "insmod $leak/hawk_leak.ko && rmmod hawk_leak" >"$tmp/log" 2>&1
status=$?
[ $status -eq 123 ] && grep -q 'unreferenced object.*(size 512)' "$tmp/klog"
report $? "kmemleak finds what the control has lost" "$tmp/log"

# ---- the fuzzer ----

make -s hawk-fuzz >"$tmp/log" 2>&1 && tools/lab/build-module --kernel debug >>"$tmp/log" 2>&1
report $? "the fuzzer and hawk.ko with coverage build" "$tmp/log"
places=$(objdump -dr build/kmod-debug/hawk.ko | grep -c __sanitizer_cov_trace_pc)
out=$root/build/fuzz/last
mkdir -p "$out"
args="--calls ${HAWK_FUZZ_CALLS:-30000} --seed ${HAWK_FUZZ_SEED:-1} --places $places --log $out"
HAWK_PANIC_ON_WARN=1 tools/lab/hawk-lab run --kernel debug --check-log --quiet --out "$out" \
	--timeout "${HAWK_FUZZ_TIMEOUT:-1200}" --log "$out/kernel.log" --env HAWK_FUZZ_ARGS="$args" \
	-- sh tests/kselftest/in-guest tests/fuzz/fuzz-in-guest >"$tmp/log" 2>&1
status=$?
grep '^# ' "$tmp/log"
# without coverage it only calls at random
[ "$places" -gt 0 ] && grep -q '^# .*, coverage by KCOV$' "$tmp/log" &&
	grep -q '^# places: [1-9]' "$tmp/log"
report $? "the fuzzer is guided by the places that it has been at ($places in the module)" "$tmp/log"
grep -q '^ok 1 ' "$tmp/log"
report $? "every call is answered, every space is sound, every tier can be removed" "$tmp/log"
grep -q '^### end rmmod 0' "$tmp/log"
report $? "the module can be removed after that"
report $status "kernel log clean, nothing leaked (status $status); logs in build/fuzz/last" "$tmp/log"
grep -q 'kmemleak scanned twice' "$out/kernel.log"
report $? "kmemleak has given a verdict"
echo "1..$n"
