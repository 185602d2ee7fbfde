#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The engine survives a torture of some million events; a seed is a run; a broken engine
is found out."""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

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


# A file of the engine, what it says, and what a bug would make of it
BUGS = {
    "a leased block is forgotten": (
        "evict.c", "!s->block[nr].leases && ", ""),
    "blocks of a sequence are freed with their neighbours": (
        "seqrun.c", "while (*row < *end && (n = hawk_run_rows_node(q, r, *row, *end)))",
        "if (false)"),
    "a drain takes a frame on flash while a gather reads it": (
        "drain.c", "\tif (blk->reads)\n", "\tif (false)\n"),
    "a block is freed while a gather reads it": (
        "alloc.c", "blk->leases || blk->reads) {", "blk->leases) {"),
    "a drive that fails gets blocks": (
        "stripe.c", "hawk_load(&tier->health.state) != HAWK_HEALTH_OK", "false"),
    "a failed write is taken for a good copy": (
        "plan.c", "if (m->result) {", "if (m->result == -ECANCELED) {"),
    "the copy for a writer never lets its pin on the original go": (
        "plan.c", "\t\thawk_block_put_pin(s, blk);\n",
        "\t\tif (!i)\n\t\t\thawk_block_put_pin(s, blk);\n"),
}


def build_broken(folder, name, wrong, right):
    """hawk-sim with one file of the engine changed; None: the text to change is not there."""
    source = (TOP / "kmod/core" / name).read_text()
    if source.count(right) != 1:
        return None
    broken = pathlib.Path(folder) / name
    broken.write_text(source.replace(right, wrong))
    cc = ["cc", "-std=gnu11", "-O2", "-fno-strict-aliasing", "-pthread", "-iquote",
          TOP / "kmod/core", "-I", TOP / "build/include", "-DHAWK_COUNT_EVENTS", "-DHAWK_DEBUG"]
    objects = [obj for where in ("counted/kmod/core", "tools/hawk-sim")
               for obj in sorted((TOP / "build/obj" / where).glob("*.o"))
               if obj.name != f"{broken.stem}.o"]
    objects.append(TOP / "build/obj/libhawk/crc32c.o")
    program = broken.with_suffix("")
    subprocess.run([*cc, "-o", program, broken, *objects, "-ljansson", "-lm"], check=True)
    return program


def found_out(program, name):
    """It stops at the first broken rule, and the command that it prints stops there again."""
    first = subprocess.run([program, "--torture", "--seed", str(SEED), "--jobs", "1"],
                           capture_output=True, text=True)
    where = re.search(r"^hawk-sim: (seed \d+, event \d+: .*)$", first.stderr, re.M)
    again = re.search(r"^hawk-sim: again: hawk-sim (.*)$", first.stderr, re.M)
    if not t.ok(first.returncode == 1 and where and again, f"found out: {name}",
                first.stdout + first.stderr):
        return
    t.note(where[1])
    second = subprocess.run([program, *shlex.split(again[1])], capture_output=True, text=True)
    t.ok(second.returncode == 1 and where[0] in second.stderr, "and shown again", second.stderr)


def broken():
    for name, (source, right, wrong) in BUGS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = build_broken(folder, source, wrong, right)
            if t.ok(program, f"{source} can be broken: {name}", "its text has changed"):
                found_out(program, name)


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
broken()
sanitized()
t.done()
