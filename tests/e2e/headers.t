#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The public headers compile alone, in C and C++, with gcc and clang, for 64 and for 32 bits,
and the ABI's structures are made of types of fixed width, without hidden padding. Their sizes
and offsets are held by abi.t."""

import itertools
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
UAPI = TOP / "uapi/hawk.h"
NPU = [TOP / "uapi/hawk_npu.h", TOP / "uapi/hawk_npu_fw.h"]
API = sorted((TOP / "libhawk/include/hawk").glob("*.h"))
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
COMPILERS = {"gcc": "g++", "clang": "clang++"}
# ISO C++ has no flexible array member, C of 1990 no 64-bit integer, every compiler has
OLD_LANGUAGES = {
    "C90": ["-x", "c", "-std=c90", "-Wno-long-long", "-Wno-pedantic"],
    "C++98": ["-x", "c++", "-std=c++98", "-Wno-long-long", "-Wno-pedantic"],
}
LANGUAGES = {
    "C99": ["-x", "c", "-std=c99"],
    "GNU C11": ["-x", "c", "-std=gnu11"],
    "C++11": ["-x", "c++", "-std=c++11", "-Wno-pedantic"],
    "C++20": ["-x", "c++", "-std=c++20", "-Wno-pedantic"],
}
# Debian keeps <asm/types.h> in the folder of the 64-bit architecture; the headers need nothing
# else that depends on it, and the compiler brings the freestanding <stdint.h> itself.
WIDTHS = {
    "64 bits": ["-m64"],
    "32 bits": ["-m32", "-ffreestanding", "-isystem", "/usr/include/x86_64-linux-gnu"],
}
STRUCT = re.compile(r"^struct (hawk_\w+) \{\n(.*?)^\};", re.M | re.S)
# Types of the same width everywhere
FIXED = r"(?:__[us](?:8|16|32|64)|__aligned_u64|struct hawk_\w+)"
MEMBER = re.compile(rf"\t{FIXED} \w+(?:\[\w*\])?;\s*$")

t = tap.Tap()


def compile_text(text, *flags, compiler="gcc"):
    """With <linux/hawk.h> where the installation puts it."""
    with tempfile.TemporaryDirectory() as root:
        include = pathlib.Path(root) / "linux"
        include.mkdir()
        shutil.copy(UAPI, include)
        return subprocess.run([compiler, *flags, f"-I{root}", f"-I{TOP}/libhawk/include", "-"],
                              input=text, capture_output=True, text=True)


def alone(header, languages):
    """Included twice, so that the guard is seen to work."""
    text = f'#include "{header}"\n' * 2
    for (c, cxx), (language, lang_flags) in itertools.product(COMPILERS.items(), languages.items()):
        compiler = cxx if "++" in language else c
        name = f"{header.relative_to(TOP)} alone in {language}, {compiler}"
        if not shutil.which(compiler):
            t.skip(name, f"{compiler} is not installed")
            continue
        for width, width_flags in WIDTHS.items():
            run = compile_text(text, *STRICT, *lang_flags, *width_flags, compiler=compiler)
            t.ok(run.returncode == 0, f"{name}, {width}", run.stderr)


def structures():
    """The ABI's structures, and their lines that are no member of a fixed width."""
    text = re.sub(r"/\*.*?\*/", "", "".join(h.read_text() for h in [UAPI, *NPU]), flags=re.S)
    found = dict(STRUCT.findall(text))
    return set(found), [f"{name}: {line.strip()}" for name, body in found.items()
                        for line in body.splitlines() if line.strip() and not MEMBER.match(line)]


def layout():
    found, strange = structures()
    t.ok(len(found) >= 10, "the structures of the ABI are found", str(sorted(found)))
    t.equal(strange, [], "every member has a type of fixed width")


def padding():
    """Padding would carry bytes of the kernel's stack to user space, or break 32-bit callers."""
    for width, flags in WIDTHS.items():
        text = "".join(f'#include "{header}"\n' for header in [UAPI, *NPU])
        run = compile_text(text, "-x", "c", "-Wpadded", "-Werror",
                           "-fsyntax-only", *flags)
        t.ok(run.returncode == 0, f"no structure has hidden padding, {width}", run.stderr)


for uapi in [UAPI, *NPU]:
    alone(uapi, OLD_LANGUAGES | LANGUAGES)
for api in API:
    alone(api, LANGUAGES)
layout()
padding()
t.done()
