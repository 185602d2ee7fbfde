#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hawkctl flash: pools are made, and not over what is somebody's; checked, dumped, damaged.
The blocks come from a program on the embedded backend, which ends or is killed."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
CTL = TOP / "build/bin/hawkctl"
FILL = TOP / "build/tests/pool_fill"
BLOCKS = 96             # of 64 KiB: three chunks

t = tap.Tap()


def ctl(*argv):
    return subprocess.run([str(a) for a in (CTL, *argv)], capture_output=True, text=True)


def answer(*argv):
    run = ctl("--json", *argv)
    return run.returncode, json.loads(run.stdout) if run.stdout else run.stderr


def refused(name, words, *argv, status=1):
    run = ctl(*argv)
    t.ok(run.returncode == status and all(w in run.stderr for w in words), name,
         f"status {run.returncode}, wanted {status} and {words}\n{run.stdout}{run.stderr}")


def fill(pool, name, blocks):
    url = f"embed:?dram=2M&flash={pool}&persist=1"
    run = subprocess.run([FILL, url, name, str(blocks)], capture_output=True, text=True)
    return run.stdout.strip(), run.stderr


def formats(pool):
    refused("a new file needs a size", ["--bytes"], "flash", "format", pool, status=2)
    refused("slots of 12K", ["power of two"], "flash", "format", pool, "--bytes", "32M",
            "--slot-bytes", "12K", status=2)
    refused("no room for a chunk", ["no room"], "flash", "format", pool, "--bytes", "3M")
    status, made = answer("flash", "format", pool, "--bytes", "32M", "--dwpd", "0.5")
    t.equal((status, made["bytes"], made["slot_bytes"], made["chunks"],
             made["rated_bytes_per_day"]), (0, 32 << 20, 16384, 14, 16 << 20), "a pool is made")
    refused("one endurance", ["not both"], "flash", "format", pool, "--force", "--dwpd", "1",
            "--endurance", "1T", status=2)
    refused("no drive stands so much", ["no drive"], "flash", "format", pool, "--force",
            "--endurance", str(1 << 62), status=2)
    status, made = answer("flash", "format", pool, "--force", "--endurance", "3T")
    t.equal((status, made["rated_bytes_per_day"]), (0, 3 << 40), "endurance in bytes per day")
    wear = ctl("--json", "flash", "wear", pool)
    told = json.loads(wear.stdout)
    t.ok(told["pool"] == {"rated_bytes_per_day": 3 << 40, "budget_bytes_per_day": 9 << 38,
                          "written_bytes": 0} and
         ("drive" in told if not wear.returncode else "hawkctl: " in wear.stderr),
         "and told, with what the drive says or why it does not", f"{told} {wear.stderr}")
    refused("not over another pool", ["--force"], "flash", "format", pool)
    status, again = answer("flash", "format", pool, "--force")
    t.ok(status == 0 and again["uuid"] != made["uuid"], "but by force, with another uuid")


def foreign(folder):
    page = folder / "page"
    page.write_text("something of somebody's\n" * 400000)
    before = page.read_bytes()
    refused("not over a file with something in it", ["something", "--force"],
            "flash", "format", page)
    mkfs = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin")
    disk = folder / "disk"
    disk.touch()
    with disk.open("r+b") as f:
        f.truncate(16 << 20)
    if mkfs:
        subprocess.run([mkfs, "-q", "-F", disk], check=True)
        refused("not over a file system", ["ext4", "--force"], "flash", "format", disk)
    else:
        t.skip("not over a file system", "mkfs.ext4 is missing")
    t.ok(page.read_bytes() == before, "what was refused is as it was")
    t.ok(ctl("flash", "format", disk, "--force").returncode == 0, "by force it becomes a pool")
    refused("check of what is no pool", ["no pool"], "flash", "check", page)
    refused("a folder", ["directory"], "flash", "format", folder)


def blocks(pool):
    t.equal(fill(pool, "agents", BLOCKS), ("recovered 0", ""), "blocks are put")
    status, sound = answer("flash", "check", pool, "--data")
    n = sound["headers"]["blocks"]
    t.ok(status == 0 and sound["clean"] and n >= BLOCKS - 32,
         f"{n} blocks are there, all whole", str(sound))
    t.equal((sound["payloads"], sound["headers"]["damaged"]), ({"good": n, "damaged": 0}, 0),
            "and have their bytes")
    status, chunks = answer("flash", "dump", pool, "--data")
    found = [b for c in chunks for b in c["blocks"]]
    keys = {struct.unpack("<I", bytes.fromhex(b["key"])[:4])[0] for b in found}
    t.ok(status == 0 and len(found) == len(keys) == n and keys <= set(range(1, BLOCKS + 1)),
         "the dump has each of them once", str(chunks)[:2000])
    t.equal({(c["space"], c["model_id"], c["block_bytes"]) for c in chunks},
            {("agents", 77, 65536)}, "and says whose they are")
    t.ok(all(b["data"] == "good" and b["turn"] == struct.unpack(
        "<I", bytes.fromhex(b["key"])[:4])[0] - 1 for b in found), "and what was said of them")
    text = ctl("flash", "dump", pool).stdout
    t.equal(text.count(" key "), n, "so does the text")
    t.equal(fill(pool, "agents", 0), (f"recovered {n}", ""), "another process finds them")
    t.equal(fill(pool, "others", 0), ("recovered 0", ""), "another space does not")
    return n


def in_use(pool):
    url = f"embed:?dram=2M&flash={pool}&persist=1"
    run = subprocess.Popen([FILL, url, "agents", "0", "wait"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    refused("check of a pool in use", ["--force"], "flash", "check", pool)
    refused("format of a pool in use", ["uses it"], "flash", "format", pool, "--force")
    status, now = answer("flash", "check", pool, "--force")
    t.ok(status == 0 and not now["clean"], "by force it is read")
    run.kill()
    run.communicate()
    t.ok(fill(pool, "agents", 0)[0] != "recovered 0", "killed: the blocks are there all the same")


def tiers(pool):
    kv = ("--kv", "embed:?dram=2M")
    refused("a pool is no plain flash", ["pool"], *kv, "tier", "add-blk", pool)
    t.equal(ctl(*kv, "--pool", "tier", "add-blk", pool).stdout, "1\n", "with --pool it is added")


def damage(pool, n):
    data = bytearray(pool.read_bytes())
    headers, = struct.unpack_from("<Q", data, 64)
    payload, = struct.unpack_from("<Q", data, 72)
    at = next(i for i in range(headers, payload, 128) if data[i:i + 4] == b"HKSH")
    data[at + 70] ^= 1
    other = next(i for i in range(at + 128, payload, 128) if data[i:i + 4] == b"HKSH")
    chunk, slot = divmod((other - headers) // 128, 128)
    data[payload + chunk * (2 << 20) + slot * 65536 + 99] ^= 1
    data[20] ^= 1           # the uuid in superblock 0
    pool.write_bytes(data)
    status, seen = answer("flash", "check", pool, "--data")
    t.equal((status, seen["superblocks"], seen["headers"]["damaged"], seen["headers"]["blocks"],
             seen["payloads"]), (1, ["damaged", "good"], 1, n - 1, {"good": n - 2, "damaged": 1}),
            "what is damaged is counted")
    out, err = fill(pool, "agents", 0)
    t.ok(out == f"recovered {n - 1}" and "damaged" in err, "and told when it is opened", out + err)
    status, seen = answer("flash", "check", pool)
    t.equal((status, seen["superblocks"], seen["headers"]["damaged"]), (0, ["good", "good"], 0),
            "after which it is whole again")


if not (CTL.exists() and FILL.exists()):
    tap.skip_all("nothing is built; run make all tests")
with tempfile.TemporaryDirectory(dir=TOP / "build") as tmp:
    folder = pathlib.Path(tmp)
    formats(folder / "pool")
    foreign(folder)
    count = blocks(folder / "pool")
    in_use(folder / "pool")
    tiers(folder / "pool")
    damage(folder / "pool", count)
t.done()
