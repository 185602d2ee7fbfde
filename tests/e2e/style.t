#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The kernel's own checkers have nothing to say against the module: scripts/kernel-doc (every
parameter and member is described) and scripts/checkpatch.pl. They come with the headers of
the lab's kernels; checkpatch.pl only with the debug kernel's."""

import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path[:0] = [str(HERE / "lib"), str(TOP / "tools/lab")]

import tap  # noqa: E402
from hawklab import kernels  # noqa: E402

SOURCES = ("kmod/*.[ch]", "kmod/core/*.[ch]", "kmod/npu/*.[ch]", "firmware-models/*.[ch]",
           "uapi/*.h")
# What checkpatch.pl is told not to look for, and why
IGNORED = {
    "MEMORY_BARRIER": "acquire and release are explained where the member is declared",
    "MACRO_WITH_FLOW_CONTROL": "the engine's check returns at the first broken invariant",
    "PREFER_DEFINED_ATTRIBUTE_MACRO": "the engine is user-space C too, which has no __aligned()",
    "EXPORT_SYMBOL": "compat.h hides how a namespace is written behind a macro",
    "USE_LOCKDEP": "port.h makes lockdep_assert_held() for user space",
}

t = tap.Tap()


def script(name):
    """A script of one of the kernels that are in the cache."""
    cached = [k for k in map(kernels.cached, ("6.1", "6.12", "debug")) if k]
    return next((k.headers / "scripts" / name for k in cached
                 if (k.headers / "scripts" / name).exists()), None)


def silent(name, path, *args):
    if not path or not shutil.which("perl"):
        t.skip(name, "no kernel in the cache brings the script" if not path else "perl is missing")
        return
    files = sorted(p for pattern in SOURCES for p in TOP.glob(pattern))
    run = subprocess.run(["perl", path, *args, *files], cwd=TOP, capture_output=True, text=True)
    said = (run.stdout + run.stderr).replace(f"{TOP}/", "").strip()
    t.equal(said.splitlines(), [], f"{name}, {len(files)} files")


silent("kernel-doc is silent", script("kernel-doc"), "-none")
silent("checkpatch.pl is silent", script("checkpatch.pl"), "--no-tree", "--file", "--terse",
       "--no-summary", "--max-line-length=100", "--ignore", ",".join(IGNORED))
t.done()
