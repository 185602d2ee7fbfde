#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `make install` gives to a developer: libraries, headers, pkg-config, man pages,
and examples in them that compile without a warning and run."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
STRICT = ["-Wall", "-Wextra", "-Werror"]
t = tap.Tap()
env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "HAWK_URL")}


def sh(*argv, **kw):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, cwd=TOP,
                          env=kw.pop("env", env), **kw)


def good(run, name):
    return t.ok(run.returncode == 0, name, run.stdout + run.stderr)


def api():
    """Functions that the headers declare."""
    headers = "".join(h.read_text() for h in (TOP / "libhawk/include/hawk").glob("*.h"))
    text = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    return sorted(set(re.findall(r"\b(hawk_\w+)\(", text)))


def exported(lib):
    lines = sh("nm", "-D", "--defined-only", lib).stdout.splitlines()
    return sorted(line.split()[-1].split("@")[0] for line in lines if " T " in line)


def example(page):
    """The program in a page's EXAMPLES."""
    text = page.read_text().split(".Sh EXAMPLES", 1)[1]
    block = re.search(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.S | re.M).group(1)
    return block.replace(r"\e", "\\").replace(r"\&", "")


def check_files(root):
    prefix = root / "usr"
    for name in ("lib/libhawk.a", "lib/libhawk.so.0", "lib/libhawk.so", "lib/pkgconfig/libhawk.pc",
                 "include/hawk/hawk.h", "include/hawk/layout.h", "include/hawk/peer.h",
                 "include/linux/hawk.h"):
        t.ok((prefix / name).is_file(), f"{name} is installed")
    t.equal(exported(prefix / "lib/libhawk.so.0"), api(), "the library exports what its headers declare")
    soname = sh("objdump", "-p", prefix / "lib/libhawk.so.0").stdout
    t.ok(re.search(r"SONAME\s+libhawk\.so\.0$", soname, re.M), "soname", soname)
    missing = [f for f in api() if not (prefix / f"share/man/man3/{f}.3").exists()]
    t.equal(missing, [], "every function has a man page")


def check_examples(root, work):
    prefix = root / "usr"
    pc = env | {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    shared = sh("pkg-config", "--cflags", "--libs", "libhawk", env=pc).stdout.split()
    static = sh("pkg-config", "--static", "--cflags", "--libs", "libhawk", env=pc).stdout.split()
    static = ["-l:libhawk.a" if flag == "-lhawk" else flag for flag in static]
    for page in sorted((TOP / "libhawk/man").glob("*.3")):
        source, program = work / f"{page.stem}.c", work / page.stem
        source.write_text(example(page))
        for how, flags in (("shared", shared), ("static", static)):
            run = sh("gcc", "-O2", *STRICT, source, "-o", program, *flags)
            if not good(run, f"example of {page.name} compiles, {how}"):
                continue
            run = sh(program, env=env | {"LD_LIBRARY_PATH": str(prefix / "lib"),
                                         "HAWK_URL": "embed:?dram=8M"})
            good(run, f"and runs, {how}")


with tempfile.TemporaryDirectory() as tmp:
    root, work = pathlib.Path(tmp) / "root", pathlib.Path(tmp)
    if good(sh("make", "--no-print-directory", "install-libhawk", f"DESTDIR={root}", "PREFIX=/usr"),
            "make install"):
        check_files(root)
        check_examples(root, work)
t.done()
