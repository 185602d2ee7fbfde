#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A million translations, and a hundred thousand rounds of drafting, make no system call:
strace shows none between two marks."""

import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

t = tap.Tap()
TESTS = HERE.parents[1] / "build/tests"


def strace_works():
    try:
        run = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True)
    except FileNotFoundError:
        return False, "strace is not installed"
    lines = run.stderr.strip().splitlines() or ["strace may not trace here"]
    return run.returncode == 0, lines[-1]


works, why = strace_works()
if not works:
    tap.skip_all(why)


def no_system_call(program, what):
    with tempfile.NamedTemporaryFile("r") as log:
        run = subprocess.run(["strace", "-o", log.name, TESTS / program], capture_output=True,
                             text=True)
        lines = log.read().splitlines()
    t.ok(run.returncode == 0, f"every {what} was right", run.stdout + run.stderr)
    t.note(run.stdout)
    marks = [i for i, line in enumerate(lines) if line.startswith("write(-1, ")]
    t.equal(len(marks), 2, "both marks are in the trace")
    between = lines[marks[0] + 1:marks[-1]] if marks else ["no marks"]
    t.equal(between, [], "no system call between the marks")
    t.ok(any("mmap(" in line for line in lines), "system calls elsewhere are seen")


no_system_call("translate_loop", "translation")
no_system_call("draft_loop", "drafted token")
t.done()
