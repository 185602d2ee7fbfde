#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The lab's VM is killed without warning while the module writes to a pool on its drive. The
next one finds the pool: every block that is served by key has bytes that were put under it.
HAWK_POWERCUTS: how often (5; make check-long: 200)."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
LAB = TOP / "tools/lab/hawk-lab"
ROUNDS = int(os.environ.get("HAWK_POWERCUTS", 5))
SEED = int(os.environ.get("HAWK_SEED", 1))
BLOCKS = 200            # of 64 KiB; the pool has room for 400, host memory for 32
GUEST = f"""
cd "$1"
[ "$2" = first ] && build/bin/hawkctl flash format /dev/nvme0n1 --bytes 32M
build/bin/hawkctl flash check /dev/nvme0n1 >/dev/null; echo "check $?"
build/bin/hawkctl tier add-host 2M >/dev/null
build/bin/hawkctl --pool tier add-blk /dev/nvme0n1 >/dev/null || exit 1
build/tests/pool_fill dev: agents {BLOCKS} verify || exit 1
rmmod hawk && insmod build/kmod-6.1/hawk.ko
build/bin/hawkctl tier add-host 2M >/dev/null
build/bin/hawkctl --pool tier add-blk /dev/nvme0n1 >/dev/null || exit 1
exec build/tests/pool_fill dev: agents {BLOCKS} churn
"""

t = tap.Tap()


def boot(drive, which):
    return subprocess.Popen(
        [LAB, "run", "--quiet", "--timeout", "300", "--nvme-file", drive, "--nvme-size", "64M",
         "--", "sh", "-uc", GUEST, "powercut", TOP, which],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_cut(vm, puts):
    """What the guest said of the blocks it found; it is dead when it has put so many."""
    said = {}
    for line in vm.stdout:
        word, _, number = line.partition(" ")
        if number.strip().isdigit():
            said[word] = int(number)
        if said.get("puts", 0) >= puts:
            break
    vm.send_signal(signal.SIGKILL)      # QEMU dies with it
    return said, vm.communicate()[1]


if subprocess.run([LAB, "status"], capture_output=True).returncode:
    tap.skip_all("the lab does not work here (tools/lab/hawk-lab status)")
if not all((TOP / p).exists() for p in ("build/kmod-6.1/hawk.ko", "build/tests/pool_fill")):
    tap.skip_all("hawk.ko or pool_fill is not built")
random.seed(SEED)
found = 0
with tempfile.TemporaryDirectory() as tmp:
    for n in range(ROUNDS + 1):
        wanted = random.randrange(100, 3000)
        said, err = until_cut(boot(f"{tmp}/drive", "first" if not n else "again"), wanted)
        found += said.get("right", 0)
        t.ok("right" in said and "puts" in said,
             f"seed {SEED}, cut {n}: {said.get('right')} of {said.get('recovered')} blocks found "
             "are right", err)
t.ok(found > 10 * ROUNDS, f"{found} blocks were served after {ROUNDS} cuts")
t.done()
