#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The bpftrace scripts of tools/bpf in the lab's VM, on each kernel: what they print of a
known workload agrees with what the workload and the device's statistics say.

        HAWK_KERNELS    lab kernels to use ("6.1 6.12")"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
LAB = TOP / "tools/lab/hawk-lab"
KERNELS = os.environ.get("HAWK_KERNELS", "6.1 6.12").split()
SCRIPTS = sorted(path.stem for path in (TOP / "tools/bpf").glob("*.bt"))
# bpftrace starts slowly under emulation, five of them slower still
TIMEOUT_S = 1200

t = tap.Tap()


class Run:
    """What one boot left behind."""

    def __init__(self, out):
        self.text = {name: (out / name).read_text() for name in SCRIPTS}
        self.rooms = numbers((out / "rooms").read_text())
        self.locks = numbers((out / "locks").read_text())
        self.stats = json.loads((out / "stats.json").read_text())
        self.stats_text = (out / "stats").read_text()

    def maps(self, script, name):
        """{keys as text: number} of a printed map @name."""
        found = re.findall(rf"^@{name}\[(.*?)\]: (\d+)$", self.text[script], re.M)
        return {tuple(keys.split(", ")): int(value) for keys, value in found}

    def histogram(self, script, name, key):
        """Sum of the counts of a printed histogram."""
        lines = re.search(rf"^@{name}\[{key}\]: *\n((?:[\[(].*\n)+)", self.text[script], re.M)
        return sum(int(n) for n in re.findall(r"[)\]] +(\d+) \|", lines[1])) if lines else None


def numbers(text):
    return {name: int(value) for name, value in re.findall(r"^(\w+) (-?\d+)$", text, re.M)}


def evictions(run):
    want, evicted = run.rooms, run.maps("evictions", "evicted")
    spaces = {keys[0] for keys in evicted if keys[2] == str(want["pid"])}
    if not t.equal(len(spaces), 1, "evictions: of the one space that had to"):
        return
    space = spaces.pop()
    for how in ("clean", "write", "drop", "flash_drop"):
        tier = want["flash" if how == "flash_drop" else "host"]
        got = evicted.get((space, space, str(want["pid"]), str(tier), how), 0)
        counter = how if how == "flash_drop" else f"evict_{how}"
        t.equal(got, want[counter], f"evictions: {how} as often as STATS counts, by itself")
        ages = run.locks["evict_drop"] if how == "drop" else got
        t.equal(run.histogram("evictions", "age_ms", how) or 0, ages, f"evictions: ages, {how}")
    drops = {(keys[2:], n) for keys, n in evicted.items() if keys[0] != space}
    pid, host = str(run.locks["pid"]), str(run.locks["host"])
    t.equal(drops, {((pid, host, "drop"), run.locks["evict_drop"])}, "evictions: without flash")
    t.ok(all(want[kind] for kind in ("evict_write", "evict_clean", "flash_drop"))
         and run.locks["evict_drop"], "evictions: there were some of each kind", str(want))


def reloads(run):
    tier = str(run.rooms["flash"])
    t.equal(run.maps("reloads", "reloads"), {(tier,): run.rooms["reloads"]},
            "reloads: as many as STATS counts, from the flash tier")
    t.equal(run.histogram("reloads", "reload_us", tier), run.rooms["reloads"],
            "reloads: a time for each")
    t.equal(run.maps("reloads", "failed"), {}, "reloads: none failed")


def admissions(run):
    want, admitted = run.rooms, run.maps("admissions", "admitted")
    flash = str(want["flash"])
    t.equal(len({keys[0] for keys in admitted}), 2, "admissions: of two spaces")
    expected = {(flash, "write", "room"): want["evict_write"],
                (flash, "clean", "copy"): want["evict_clean"],
                ("-1", "drop", "no_flash"): run.locks["evict_drop"]}
    t.equal({keys[1:]: n for keys, n in admitted.items()}, expected,
            "admissions: decisions as STATS counts evictions")
    t.equal(run.maps("admissions", "written_bytes"),
            {(flash,): want["evict_write"] * want["block_bytes"]}, "admissions: bytes written")


def lockwait(run):
    waits = run.maps("lockwait", "waits")
    t.equal(run.locks["lost"], 0, "lock waits: ftrace lost none")
    for lock in ("bucket", "device"):
        got = waits.get((lock,), 0)
        t.ok(got >= run.locks[lock] > 0, f"lock waits: {lock}, all that ftrace saw",
             f"{got} of {run.locks[lock]}")
        t.equal(run.histogram("lockwait", "wait_ns", lock), got, f"lock waits: {lock}, times")
    callers = run.maps("lockwait", "caller")
    t.ok(callers and not any(keys[1].startswith("0x") for keys in callers),
         "lock waits: the functions have names", str(callers))
    t.ok((("bucket", str(run.locks["pid"])) in run.maps("lockwait", "total_ns")),
         "lock waits: by the process that waited")


def refusals(run):
    want, refused = run.rooms, run.maps("refusals", "refused")
    t.equal({keys[1]: n for keys, n in refused.items()},
            {"quota": want["quota"], "tier": want["tier"], "lent": 1},
            "refusals: as many as items failed, and a space whose minimum others have pinned")
    t.equal(want["lent"], 1, "refusals: that space was not made")
    lines = [line.split() for line in run.text["refusals"].splitlines() if " quota " in line
             or " tier " in line and line.split()[0].isdigit()]
    of_quota = [line[2:] for line in lines if line[4] == "quota"]
    row = [str(want[name]) for name in ("pid", "host")] + ["quota", str(want["block_bytes"])]
    t.equal(of_quota, [row + ["2097152", "2097152"]] * want["quota"],
            "refusals: process, tier, need, use and limit in bytes")


def hawkctl(run):
    """No script, but the other way to look: the same space through hawkctl stats."""
    calls = run.stats["calls"]
    t.equal(run.stats["evict_drop"], run.locks["evict_drop"], "hawkctl stats: counters")
    t.equal(calls["alloc"]["items"], run.stats["allocs"], "hawkctl stats: items of calls")
    t.ok(calls["lookup"]["count"] > 0 and calls["lookup"]["failed"] == 0,
         "hawkctl stats: calls under way", str(calls["lookup"]))
    t.ok(all(sum(h["log2_ns"]) == h["count"] for h in calls.values() if h is not calls["lookup"]),
         "hawkctl stats: a time for each call", str(calls))
    t.equal([calls["gather"][name] for name in ("count", "items", "failed")], [1, 8, 1],
            "hawkctl stats: gathers and their rows")
    t.ok(all(0 < h["p50_ns"] <= h["p99_ns"] for h in calls.values()),
         "hawkctl stats: percentiles", str(calls))
    t.ok(re.search(r"^lookup +\d+ +[\d.]+ items +0 +[\d.]+ +[\d.]+$", run.stats_text, re.M),
         "hawkctl stats: as text", run.stats_text)


def boot(kernel):
    out = TOP / f"build/bpf-{kernel}"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([LAB, "run", "--kernel", kernel, "--check-log", "--quiet", "--timeout",
                           str(TIMEOUT_S), "--out", out, "--", "tests/e2e/lib/bpf-guest", out],
                          cwd=TOP, capture_output=True, text=True)
    if not t.ok(done.returncode == 0, f"{kernel}: the scripts start and end, kernel log clean",
                f"status {done.returncode}\n{done.stdout}{done.stderr}"):
        return
    run = Run(out)
    for check in (evictions, reloads, admissions, lockwait, refusals, hawkctl):
        try:
            check(run)
        except (KeyError, IndexError) as err:
            t.ok(False, f"{check.__name__}: {err!r}", "\n".join(run.text.values()))


if subprocess.run([LAB, "status"], capture_output=True).returncode:
    tap.skip_all("the lab does not work here (tools/lab/hawk-lab status)")
if not shutil.which("bpftrace"):
    tap.skip_all("bpftrace is not installed (tools/setup/install-deps lab)")
if not all((TOP / f"build/{name}").exists() for name in ("tests/bpf_work", "bin/hawkctl")):
    tap.skip_all("build/tests/bpf_work or build/bin/hawkctl is not built (make all tests)")
for name in KERNELS:
    if (TOP / f"build/kmod-{name}/hawk.ko").exists():
        boot(name)
    else:
        t.skip(name, f"hawk.ko is not built (tools/lab/build-module --kernel {name})")
t.done()
