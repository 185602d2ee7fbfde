#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ABI version 1 is frozen: each structure, member, constant and command of uapi/hawk.h has
the numbers that tests/data/abi-v1.txt holds, for 64- and 32-bit programs. Additions have to
be entered there (make abi-dump), so that they are frozen too."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import abi  # noqa: E402
import tap  # noqa: E402

t = tap.Tap()


def frozen_holds():
    then = abi.frozen()
    t.ok(len(then) > 200, f"{len(then)} facts are frozen")
    for width in abi.WIDTHS:
        now = abi.header(width)
        broken, new = abi.compare(now, then)
        t.equal(broken, [], f"none of them has changed, {width}")
        t.ok(not new, f"none is missing, {width}",
             "new: run make abi-dump\n" + "\n".join(new))


def version_and_commands():
    now = abi.header()
    numbers = {}
    for name, value in now.items():
        if name.startswith("HAWK_IOC_") and name != "HAWK_IOC_MAGIC":
            numbers.setdefault(value, []).append(name)
    t.equal([n for n in numbers.values() if len(n) > 1], [], "no command number is used twice")
    t.equal([f"{n}: {v}" for v, n in numbers.items() if int(v, 16) >> 8 != 0xef], [],
            "commands carry no size and no direction")
    features = [int(v, 16) for n, v in now.items() if n.startswith("HAWK_FEAT_")]
    t.ok(all(f & (f - 1) == 0 for f in features) and len(set(features)) == len(features),
         "every feature has a bit of its own", str(features))
    areas = [int(v, 16) for n, v in now.items() if n.startswith("HAWK_MMAP_")]
    t.ok(all(a < 1 << 44 for a in areas), "mmap2() of 32-bit programs reaches every area")


def edits_are_seen():
    """The checks above see what they are there for: the header is edited and looked at again."""
    then, text = abi.frozen(), abi.HEADER.read_text()
    edits = {
        "a member moved": ("\t__u32 batch_max;\n\t__aligned_u64 features;\n",
                           "\t__aligned_u64 features;\n\t__u32 batch_max;\n"),
        "a member widened": ("\t__u32 abi_version;\n", "\t__aligned_u64 abi_version;\n"),
        "a member renamed": ("\t__u32 frame_align;\n", "\t__u32 frame_alignment;\n"),
        "a flag moved": ("#define HAWK_BATCH_PREFIX\t(1u << 4)",
                         "#define HAWK_BATCH_PREFIX\t(1u << 14)"),
        "a command renumbered": ("HAWK_IOC_MAGIC, 0x19)", "HAWK_IOC_MAGIC, 0x79)"),
        "an enumerator moved": ("HAWK_TIER_BLK = 2", "HAWK_TIER_BLK = 9"),
        "a LID's layout changed": ("HAWK_LID_SEQ_SHIFT\t44", "HAWK_LID_SEQ_SHIFT\t43"),
    }
    real = abi.HEADER
    with tempfile.TemporaryDirectory() as tmp:
        abi.HEADER = pathlib.Path(tmp) / "hawk.h"
        for name, (old, new) in edits.items():
            assert text.count(old) == 1, name
            abi.HEADER.write_text(text.replace(old, new))
            broken, _ = abi.compare(abi.header(), then)
            t.ok(broken, f"{name}: seen")
        abi.HEADER.write_text(text.replace(
            "\t__u32 frame_align;\n", "\t__u32 frame_align;\n\t__aligned_u64 zz_later;\n"))
        broken, new = abi.compare(abi.header(), then)
        t.equal((broken, [n.split("\t")[0] for n in new]),
                ([], ["struct hawk_query", "member hawk_query.zz_later"]),
                "a member added at the end: new, not broken")
        abi.HEADER.write_text(text.replace("struct hawk_cqe {", "struct hawk_cqe {\n\t__u64 zz;"))
        broken, _ = abi.compare(abi.header(), then)
        t.ok("struct hawk_cqe: was 40, is 48" in broken, "an array's element may not grow", broken)
    abi.HEADER = real


def holes():
    """pahole, which reads the debugger's view of the structures, finds no hole in them."""
    if not shutil.which("pahole"):
        t.skip("pahole finds no hole", "pahole is not installed")
        return
    structs = [n.split()[1] for n in abi.header() if n.startswith("struct ")]
    source = f'#include "{abi.HEADER}"\n' + "".join(f"struct {s} *{s}_p;\n" for s in structs)
    for width, flags in abi.WIDTHS.items():
        with tempfile.TemporaryDirectory() as tmp:
            obj = pathlib.Path(tmp) / "abi.o"
            subprocess.run(["gcc", "-g", "-ffreestanding", "-isystem", abi.ASM_INCLUDE, *flags,
                            "-x", "c", "-c", "-o", obj, "-"], input=source, text=True, check=True)
            text = subprocess.run(["pahole", obj], capture_output=True, text=True).stdout
        seen = [s for s in structs if f"struct {s} {{" in text]
        t.equal((seen, "XXX" in text, "padding:" in text), (structs, False, False),
                f"pahole finds no hole in {len(structs)} structures, {width}")


if not shutil.which("objcopy"):
    tap.skip_all("objcopy is not installed")
frozen_holds()
version_and_commands()
edits_are_seen()
holes()
t.done()
