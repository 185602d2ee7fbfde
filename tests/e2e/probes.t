#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The compile probes (kmod/probe) give the answers that each kernel is known for, and a probe
that fails for another reason than the kernel's API stops the build with the cause.

	HAWK_PROBE_KERNELS	lab kernels to ask ("6.1 6.12"; newest, if it is in the cache)"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
# Each probe: does 6.1, 6.12, 7.3 have it?
ANSWERS = {
    "dma_buf_invalidate_mappings": "no no yes",
    "dma_buf_vmap_unlocked": "no yes yes",
    "eventfd_signal_1arg": "no yes yes",
    "file_lock_core": "no yes yes",         # 6.9
    "filelock_h": "no yes yes",             # 6.3
    "import_ns_token": "yes yes no",
    "kiocb_start_write": "yes yes yes",     # 6.6, and Debian's 6.1 by backport
    "shrinker_alloc": "no yes yes",         # 6.7
    "uring_cmd": "yes yes no",
    "uring_cmd_cancel": "no yes yes",
    "uring_cmd_done_res2": "yes yes no",
    "uring_cmd_h": "no yes yes",
    "uring_cmd_sqe": "no yes yes",
    "uring_cmd_tw": "no no yes",
    "vm_flags_set": "no yes yes",
    "vmf_insert_mixed_pfn": "no no yes",    # 6.17
}
COLUMNS = {"6.1": 0, "6.12": 1, "newest": 2}
# The newest kernel was configured for a later compiler than Debian 12 has
NEWEST = ["CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT="]

t = tap.Tap()


def lab(*args):
    return subprocess.run([TOP / "tools/lab/hawk-lab", *args], capture_output=True, text=True)


def probe_names():
    names = {p.stem for p in (TOP / "kmod/probe").glob("*.c")}
    return names - {"control_good", "control_bad"}


class Tree:
    """A copy of what kbuild needs, in which one object is built: the probes come first."""

    def __init__(self, headers):
        self.tmp = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.tmp.name)
        self.headers = headers
        shutil.copy(TOP / "Kbuild", self.path)
        for part in ("kmod", "uapi"):
            shutil.copytree(TOP / part, self.path / part, ignore=shutil.ignore_patterns("*.o"))

    def build(self, *args):
        """(exit status, what make said, the answers or None)."""
        run = subprocess.run(["make", "-C", self.headers, f"M={self.path}", *args, "kmod/pin.o"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        header = self.path / "hawk-probes.h"
        return run.returncode, run.stdout, header.read_text() if header.exists() else None


def said_yes(header):
    return {name.lower() for name in re.findall(r"^#define HAVE_(\w+) 1$", header or "", re.M)}


def table_is_complete():
    """Every probe has a row here, a user in the code, and its version in its comment."""
    names = probe_names()
    t.equal(sorted(names ^ set(ANSWERS)), [], "every probe has a row in this test")
    sources = [p for p in (TOP / "kmod").rglob("*.[ch]") if p.parent.name != "probe"]
    sources += list((TOP / "firmware-models").rglob("*.[ch]"))
    used = {n.lower() for p in sources for n in re.findall(r"\bHAVE_(\w+)", p.read_text())}
    t.equal(sorted(names - used), [], "the code makes use of every probe's answer")
    t.equal(sorted(used - names), [], "and asks for no answer that no probe gives")
    undated = [n for n in names if not re.search(
        r"/\*[^/]*\b[67]\.\d+", (TOP / f"kmod/probe/{n}.c").read_text())]
    t.equal(undated, [], "every probe says which kernel changed what")


def answers(kernel, headers, release):
    column, extra = COLUMNS[kernel], NEWEST if kernel == "newest" else []
    rc, said, header = Tree(headers).build("CC=gcc", *extra)
    want = {name for name, row in ANSWERS.items() if row.split()[column] == "yes"}
    t.ok(rc == 0 and said_yes(header) == want, f"{kernel} ({release}) answers as expected",
         f"status {rc}, missing {sorted(want - said_yes(header))}, "
         f"too many {sorted(said_yes(header) - want)}\n{said if rc else ''}")
    line = re.search(r"^hawk probes: (\d+) of (\d+):(.*)$", said, re.M)
    t.ok(line and (int(line[1]), int(line[2]), set(line[3].split()))
         == (len(want), len(ANSWERS), want), f"{kernel}: the build says so in one line", said)
    return header


def compiler(folder, name, script):
    """A compiler of our own making, for kbuild's CC."""
    path = pathlib.Path(folder) / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"CC={path}"


def stops(headers, cc, cause, name):
    tree = Tree(headers)
    rc, said, header = tree.build(cc)
    t.ok(rc != 0 and header is None and re.search(cause, said)
         and "the compile probes do not work with this kernel and compiler" in said
         and "kmod/pin.o" not in said, name, f"status {rc}\n{said}")


def failures(headers):
    """None of these is an old kernel, though every probe fails, or every one succeeds."""
    with tempfile.TemporaryDirectory() as tmp:
        on_module = 'case "$*" in *-DMODULE*-fsyntax-only*) {};; esac; exec gcc "$@"'
        stops(headers, compiler(tmp, "broken", on_module.format("echo out of order >&2; exit 1")),
              "out of order(?s:.*)control_good.c does not compile",
              "a compiler that compiles nothing stops the build")
        stops(headers, compiler(tmp, "blind", on_module.format("exit 0")),
              "control_bad.c compiles", "one that accepts anything does")
        shadow = pathlib.Path(tmp) / "include/linux"
        shadow.mkdir(parents=True)
        (shadow / "eventfd.h").write_text("#error this header is broken\n")
        stops(headers, compiler(tmp, "shadowed", f'exec gcc -I{shadow.parent} "$@"'),
              r"eventfd_signal_1arg.c: not even its #include lines compile",
              "a header that is broken or missing does: the probe's own control sees it")


def with_clang(headers, gcc):
    """LLVM=1 is honoured: the compiler that builds the module answers."""
    if not shutil.which("clang") or not shutil.which("ld.lld"):
        t.skip("clang gives the same answers", "clang or lld is not installed")
        return
    rc, said, clang = Tree(headers).build("LLVM=1")
    t.ok(rc == 0 and clang == gcc and "CC=" not in said, "clang (LLVM=1) gives the same answers",
         f"status {rc}\n{said}")


table_is_complete()
status = lab("status", "--json")
if status.returncode:
    tap.skip_all(f"the lab does not work here: {status.stderr}")
cached = {name: fact["release"] for name, fact in json.loads(status.stdout)["kernels"].items()}
asked = os.environ.get("HAWK_PROBE_KERNELS", "6.1 6.12 newest").split()
for kernel in asked:
    if kernel == "newest" and not cached.get(kernel):
        t.skip("newest answers as expected",
               "it is not in the cache (tools/lab/hawk-lab kernel --kernel newest fetches it)")
        continue
    headers = lab("kernel", "--kernel", kernel, "--headers").stdout.strip()
    header = answers(kernel, headers, cached[kernel])
    if kernel == asked[0]:
        failures(headers)
        with_clang(headers, header)
t.done()
