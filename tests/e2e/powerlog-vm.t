#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All that the module and the embedded backend write to a pool in the lab's VM is logged, in
the order in which the drive completed it, and what the drive may hold when its power fails is
made from that: up to any entry, with what was flushed and any part of what was not. Every
block that is served by key has bytes that were put under it, and what was durable is there.
HAWK_POINTS: how many such moments (300; make powerlog-long: 20000).
HAWK_WRITE_LOG: keep the log there; if it is there it is used. HAWK_LAB_KERNEL: the VM's."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
LAB = TOP / "tools/lab/hawk-lab"
REPLAY = TOP / "build/tests/log_replay"
POINTS = os.environ.get("HAWK_POINTS", "300")
SEED = os.environ.get("HAWK_SEED", "1")
KERNEL = os.environ.get("HAWK_LAB_KERNEL", "6.1")
DRIVE = 64 << 20
BLOCKS = 200            # of 64 KiB; the pool has room for 400, host memory for 32
GUEST = f"""
cd "$1"
drive=/dev/nvme0n1
mark() {{ printf "hawk-mark %s " $1 >/tmp/mark && truncate -s 512 /tmp/mark &&
	dd if=/tmp/mark of=$drive seek=48M bs=512 oflag=direct,seek_bytes status=none; }}
fill() {{ build/tests/pool_fill "$@" >/tmp/said || exit 1; }}
tiers() {{ build/bin/hawkctl tier add-host 2M >/dev/null &&
	build/bin/hawkctl --pool tier add-blk $drive >/dev/null || exit 1; }}
# all URL VERSION END: what has been evicted is durable when END has been done
all() {{
	fill "$1" agents {BLOCKS} once $2; $3
	mark agents
	fill "$1" agents {BLOCKS} verify
	[ $(sed -n "s/^right //p" /tmp/said) -ge 100 ] || exit 2
	$3
	mark none
	fill "$1" agents {BLOCKS} churn $(($2 + 1000)) 400
	fill "$1" others 100 churn $(($2 + 1000)) 150 destroy
	fill "$1" agents {BLOCKS} churn $(($2 + 2000)) 200
	fill "$1" others 100 churn $(($2 + 2000)) 150
	$3
}}
again() {{ rmmod hawk && insmod build/kmod-{KERNEL}/hawk.ko && tiers; }}
build/bin/hawkctl flash format $drive --bytes 32M >/dev/null || exit 1
mark none
tiers
all dev: 0 again
rmmod hawk
all "embed:?dram=2M&flash=$drive&persist=1" 10000 true
sync
"""

t = tap.Tap()
if subprocess.run([LAB, "status"], capture_output=True).returncode:
    tap.skip_all("the lab does not work here (tools/lab/hawk-lab status)")
if not all((TOP / p).exists() for p in (f"build/kmod-{KERNEL}/hawk.ko", REPLAY)):
    tap.skip_all("hawk.ko or log_replay is not built")
with tempfile.TemporaryDirectory() as tmp:
    log = os.environ.get("HAWK_WRITE_LOG", f"{tmp}/log")
    if not os.path.exists(log):
        run = subprocess.run(
            [LAB, "run", "--kernel", KERNEL, "--quiet", "--check-log", "--timeout", "500",
             "--nvme-size", str(DRIVE), "--nvme-log", log,
             "--", "sh", "-uc", GUEST, "powerlog", TOP],
            capture_output=True, text=True)
        t.ok(not run.returncode, "two hosts write to a pool", run.stdout + run.stderr)
    # a space is its owner's, and the guest's is root
    root = [] if not os.geteuid() else ["unshare", "-r"]
    run = subprocess.run([*root, REPLAY, log, str(DRIVE), POINTS, SEED, "agents", "others"],
                         capture_output=True, text=True)
    t.note(run.stdout)
    t.ok(not run.returncode, f"seed {SEED}, {POINTS} power cuts between flushes",
         run.stderr[-4000:])
t.done()
