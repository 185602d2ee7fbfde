#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The lab's VM is killed without warning while the module writes to a pool on its drive. The
next one finds the pool: every block that is served by key has bytes that were put under it.
HAWK_POWERCUTS: how often (5; make powercut-long: 200).
HAWK_POWERCUT_DIR: keep the drive there, and a line of each cut in its file "cuts"; what was
interrupted goes on behind the last of them."""

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
KEEP = os.environ.get("HAWK_POWERCUT_DIR")
BLOCKS = 200            # of 64 KiB; the pool has room for 400, host memory for 32
GUEST = f"""
cd "$1"
[ "$2" = first ] && build/bin/hawkctl flash format /dev/nvme0n1 --bytes 32M
build/bin/hawkctl flash check /dev/nvme0n1 >/dev/null; echo "damaged $?"
build/bin/hawkctl tier add-host 2M >/dev/null
build/bin/hawkctl --pool tier add-blk /dev/nvme0n1 >/dev/null || exit 1
build/tests/pool_fill dev: agents {BLOCKS} verify || exit 1
exec build/tests/pool_fill dev: agents {BLOCKS} churn
"""

t = tap.Tap()


def boot(drive, which):
    return subprocess.Popen(
        [LAB, "run", "--quiet", "--timeout", "300", "--mem", "768M", "--nvme-file", drive,
         "--nvme-size", "64M",
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


def cut(n, drive):
    """One more: starts where the last one has left the drive, and puts so many blocks."""
    wanted = random.Random(SEED * 1000003 + n).randrange(100, 3000)
    said, err = until_cut(boot(drive, "again" if n else "first"), wanted)
    t.ok("right" in said and "puts" in said,
         f"seed {SEED}, cut {n}: {said.get('right')} of {said.get('recovered')} blocks found "
         "are right", err)
    return said.get("right", 0), said.get("recovered", 0), said.get("damaged", 0)


def cuts(folder):
    """All that are left. What the first one finds was there before it: nothing."""
    done = folder / "cuts"
    lines = done.read_text().splitlines() if done.exists() else []
    for n in range(len(lines), ROUNDS + 1):
        said = cut(n, f"{folder}/drive")
        if t.failed:
            return
        lines.append(" ".join(map(str, (n, *said))))
        done.write_text("\n".join(lines) + "\n")
    right, recovered, damaged = (sum(int(line.split()[i]) for line in lines) for i in (1, 2, 3))
    t.ok(right > 10 * ROUNDS,
         f"after {ROUNDS} cuts {recovered} blocks were found and {right} served, all right; "
         f"{damaged} times a header was torn")


if KEEP:
    os.makedirs(KEEP, exist_ok=True)
    cuts(pathlib.Path(KEEP))
else:
    with tempfile.TemporaryDirectory() as tmp:
        cuts(pathlib.Path(tmp))
t.done()
