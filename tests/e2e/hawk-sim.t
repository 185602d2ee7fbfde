#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The engine survives a torture of some million events, and a seed is a run."""

import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
SEED = 1
EVENTS = 2_000_000
EVENTS_ASAN = 300_000
EVENTS_TWICE = 200_000

t = tap.Tap()


def sim(*options, build="build"):
    argv = [TOP / build / "bin/hawk-sim", "--torture", "--seed", SEED, *options]
    return subprocess.run([str(arg) for arg in argv], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)


def passes(run, name):
    return t.ok(run.returncode == 0, name, run.stdout + run.stderr)


def torture():
    run = sim("--events", EVENTS, "--per-seed", EVENTS // 4, "--expect-all", "--json")
    if not passes(run, f"{EVENTS} events from seed {SEED}, all checked, nothing left out"):
        return
    result = json.loads(run.stdout)
    t.equal((result["events"], result["missing"]), (EVENTS, 0), "as many as were asked for")
    t.ok(result["checks"] >= EVENTS, "each checked", result["checks"])
    t.note(f"{result['events'] / result['seconds']:.0f} events/s")


def digest(*options):
    run = sim("--events", EVENTS_TWICE, "--per-seed", EVENTS_TWICE // 2, "--json", *options)
    return json.loads(run.stdout)["digest"] if run.returncode == 0 else run.stderr


def repeatable():
    first = digest("--jobs", 1)
    t.ok(re.fullmatch("[0-9a-f]{16}", first), "a run has a digest", first)
    t.equal(digest("--jobs", 1), first, "the same seed is the same run")
    t.equal(digest("--jobs", 2), first, "whatever the number of processes")
    t.equal(digest("--check", 1000), first, "and however often it is checked")
    t.ok(digest("--seed", SEED + 1) != first, "another seed is another run")


def replay():
    run = sim("--stop-at", 1234, "--trace")
    passes(run, "a run stops where it is told to")
    numbers = [int(n) for n in re.findall(r"^ *(\d+) \w+ +-?\d+", run.stdout, re.M)]
    t.ok(numbers and numbers[-1] <= 1234, "and its trace ends there", run.stdout)
    t.equal(sim("--stop-at", 1234, "--trace").stdout.split("events/s")[0].split("1 seeds")[0],
            run.stdout.split("events/s")[0].split("1 seeds")[0], "the same trace again")


def sanitized():
    if not (TOP / "build/asan/bin/hawk-sim").exists():
        t.skip("under AddressSanitizer", "not built: make SAN=address,undefined tests")
        return
    run = sim("--events", EVENTS_ASAN, "--per-seed", EVENTS_ASAN // 2, build="build/asan")
    passes(run, f"{EVENTS_ASAN} events under AddressSanitizer")


if not (TOP / "build/bin/hawk-sim").exists():
    tap.skip_all("hawk-sim is not built; run make")
torture()
repeatable()
replay()
sanitized()
t.done()
