# SPDX-License-Identifier: MIT
"""The ABI as a list of facts: what uapi/hawk.h says, and what tests/data/abi-v1.txt has
frozen. Prints the facts of the header; --add appends those that the frozen list lacks.

A fact is a name and its numbers, one a line:

	struct hawk_query		40		its size, bytes
	member hawk_query.features	16 8		its offset and size, bytes
	HAWK_ABI_VERSION		0x1		a constant, an enumerator, a command
	HAWK_LID(1,2,3,4)		0x...		a macro with arguments, at a sample

A structure that begins with its size may grow at its end, reserved members may make room
for others, and HAWK_STATS_VERSION counts what its page has grown by; all else stays. The
compiler works the numbers out, for 64 and for 32 bits and without a 32-bit C library: they
are the values of an array, read from the object file."""

import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[3]
HEADER = TOP / "uapi/hawk.h"
FROZEN = TOP / "tests/data/abi-v1.txt"
# Debian keeps <asm/types.h> in the folder of the 64-bit architecture
ASM_INCLUDE = "/usr/include/x86_64-linux-gnu"
WIDTHS = {"64 bits": ["-m64"], "32 bits": ["-m32"]}
STRUCT = re.compile(r"^struct (hawk_\w+) \{\n(.*?)^\};", re.M | re.S)
MEMBER = re.compile(r"(\w+)(?:\[\w*\])?;\s*$", re.M)
ENUM = re.compile(r"^enum hawk_\w+ \{\n(.*?)^\};", re.M | re.S)
ENUMERATOR = re.compile(r"^\s*(HAWK_\w+)", re.M)
RESERVED = re.compile(r"member \w+\.reserved\d*$")
# Arguments of macros in whose low bits nothing happens; other arguments are 1, 2, 3, ...
SAMPLES = {"v": "0x123456789abcdef"}
MACRO = re.compile(r"^#define (HAWK_\w+)(\([^)]*\))?[ \t]+\S", re.M)


def names():
    """C expressions of the header's facts: [(name, [expression, ...])]."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    facts = []
    for name, body in STRUCT.findall(text):
        facts.append((f"struct {name}", [f"sizeof(struct {name})"]))
        for member in MEMBER.findall(body):
            size = f"sizeof(((struct {name} *)0)->{member})"
            if f"{member}[];" in body:      # a flexible array has no size, its elements have
                size = size.replace(f"->{member}", f"->{member}[0]")
            facts.append((f"member {name}.{member}",
                          [f"__builtin_offsetof(struct {name}, {member})", size]))
    for body in ENUM.findall(text):
        facts += [(name, [name]) for name in ENUMERATOR.findall(body)]
    for name, params in MACRO.findall(text):
        args = [SAMPLES.get(p, str(n)) for n, p in enumerate(re.findall(r"\w+", params), 1)]
        call = f"{name}({','.join(args)})" if params else name
        facts.append((call, [call]))
    return facts


def compile_values(expressions, *flags):
    """Their values, as the compiler sees them with these flags."""
    values = "".join(f"\t(__u64)({e}),\n" for e in expressions)
    source = (f'#include "{HEADER}"\n'
              f'__attribute__((section("abi"))) const __u64 hawk_abi[] = {{\n{values}}};\n')
    with tempfile.TemporaryDirectory() as tmp:
        obj, raw = pathlib.Path(tmp) / "abi.o", pathlib.Path(tmp) / "abi.bin"
        run = subprocess.run(["gcc", "-ffreestanding", "-isystem", ASM_INCLUDE, *flags, "-x", "c",
                              "-c", "-o", obj, "-"], input=source, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"abi: the header's names do not compile:\n{run.stderr}")
        subprocess.run(["objcopy", "-O", "binary", "-j", "abi", obj, raw], check=True)
        return [value for value, in struct.iter_unpack("<Q", raw.read_bytes())]


def header(width="64 bits"):
    """{name: numbers as text} of the header, in its order."""
    facts = names()
    values = iter(compile_values([e for _, exprs in facts for e in exprs], *WIDTHS[width]))
    found = {}
    for name, exprs in facts:
        form = "{}" if " " in name else "{:#x}"
        found[name] = " ".join(form.format(next(values)) for _ in exprs)
    return found


def frozen():
    """{name: numbers as text} of the frozen list; the last word on a name counts."""
    lines = FROZEN.read_text().splitlines() if FROZEN.exists() else []
    return dict(re.split(r"\t+", line) for line in lines if line and not line.startswith("#"))


def may_become(name, then, now):
    """Structures that begin with their size may grow, reserved room may be used up."""
    if RESERVED.match(name):
        return True
    if name == "HAWK_STATS_VERSION":
        return name in now and int(now[name], 16) > int(then[name], 16)
    kind, _, struct_name = name.partition(" ")
    return (kind == "struct" and name in now and int(now[name]) > int(then[name])
            and then.get(f"member {struct_name}.size") == "0 4")


def compare(now, then):
    """(what was removed or changed, what is new), as lines to show."""
    differ = [name for name, value in then.items() if now.get(name) != value]
    broken = [f"{name}: was {then[name]}, " + (f"is {now[name]}" if name in now else "is gone")
              for name in differ if not may_become(name, then, now)]
    new = [f"{name}\t{value}" for name, value in now.items() if then.get(name) != value
           and (name not in then or may_become(name, then, now))]
    return broken, new


def main(argv):
    if argv not in ([], ["--add"]):
        raise SystemExit("usage: abi.py [--add]\n\n" + __doc__)
    if not shutil.which("objcopy"):
        raise SystemExit("abi: objcopy is missing; run tools/setup/install-deps build")
    now = header()
    if not argv:
        print("".join(f"{name}\t{value}\n" for name, value in now.items()), end="")
        return
    broken, new = compare(now, frozen())
    if broken:
        raise SystemExit("abi: these are frozen, nothing was added:\n" + "\n".join(broken))
    with FROZEN.open("a") as out:
        out.write("".join(f"{line}\n" for line in new))
    print(f"abi: {len(new)} added to {FROZEN.relative_to(TOP)}")


if __name__ == "__main__":
    main(sys.argv[1:])
