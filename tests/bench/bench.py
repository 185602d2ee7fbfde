#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures Hawk beside its peers, native and in the lab's virtual machine, prints a table
and writes bench.json. See tests/bench/README.md."""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import transport  # noqa: E402
import turn  # noqa: E402

REPO = Path(__file__).resolve().parents[2]

# name: (where, program, bar or None, peer). A ratio above 1 means that Hawk is better.
FIGURES = {
    "translate_vs_lfht": ("native", "translate", 4, "liburcu cds_lfht, QSBR"),
    "translate_one_vs_lfht": ("native", "translate", None, "liburcu cds_lfht, QSBR"),
    "alloc_evict_vs_global_lru_t1": ("native", "alloc", None, "mutex + global LRU"),
    "alloc_evict_vs_global_lru_t2": ("native", "alloc", 1.5, "mutex + global LRU"),
    "alloc_evict_vs_global_lru_t4": ("native", "alloc", None, "mutex + global LRU"),
    "hitrate_vs_global_lru_1k": ("native", "hitrate", None, "global LRU, 1,000 blocks"),
    "hitrate_vs_global_lru": ("native", "hitrate", 0.988, "global LRU, 5,000 blocks"),
    "hitrate_vs_global_lru_10k": ("native", "hitrate", None, "global LRU, 10,000 blocks"),
    "hitrate_vs_global_lru_30k": ("native", "hitrate", None, "global LRU, 30,000 blocks"),
    "reload_vs_fio_64k": ("native", "reload", 0.95, "fio io_uring, 64 KiB"),
    "reload_vs_fio": ("native", "reload", 0.95, "fio io_uring, 128 KiB"),
    "reload_vs_fio_1m": ("native", "reload", 0.95, "fio io_uring, 1 MiB"),
    "reload_cpu_vs_fio_64k": ("native", "reload", 1.0, "its CPU time, 64 KiB"),
    "reload_cpu_vs_fio": ("native", "reload", 1.0, "its CPU time, 128 KiB"),
    "reload_cpu_vs_fio_1m": ("native", "reload", 1.0, "its CPU time, 1 MiB"),
    "recovery_1m_slots": ("native", "recovery", 1.0, "5 s"),
    "recovery_vs_read": ("native", "recovery", 0.8, "fio reads the headers in order"),
    "reload_cpu_vs_fio_crc_64k": ("native", "reload", 1.0, "fio verify=crc32c, 64 KiB"),
    "reload_cpu_vs_fio_crc": ("native", "reload", 1.0, "fio verify=crc32c, 128 KiB"),
    "reload_cpu_vs_fio_crc_1m": ("native", "reload", 1.0, "fio verify=crc32c, 1 MiB"),
    "rollback_vs_block_free": ("native", "rollback", 50, "blocks freed through the allocator"),
    "gather_vs_per_row": ("native", "gather", 2, "a call per row and candidate, from flash"),
    "gather_vs_per_row_dram": ("native", "gather", None, "the same from DRAM"),
    "fork_vs_copy": ("native", "fork", 100, "memcpy of the KV bytes of 64k tokens"),
    "transform_tile16_vs_memcpy": ("native", "transform", 0.8, "memcpy, 256 MiB, one thread"),
    "transform_reshard_vs_memcpy": ("native", "transform", 0.7, "memcpy, 256 MiB, one thread"),
    "decode_hawk_vs_private": ("native", "decode", 0.97, "private array, the worse of 1 and 8"),
    "decode_hawk_vs_private_b1": ("native", "decode", 0.97, "private array, batch 1"),
    "decode_hawk_vs_private_b8": ("native", "decode", 0.97, "private array, batch 8"),
    "turn_after_drop_vs_reprefill": ("native", "turn", 5, "8k of 24k tokens cut out of the prompt"),
    "translate_vs_ioctl": ("vm", "translate", None, "HAWK_IOC_TRANSLATE, 1 LID"),
    "translate_vs_ioctl_64": ("vm", "translate", None, "HAWK_IOC_TRANSLATE, 64 LIDs"),
    "get_vs_redis_128k": ("vm", "get", 5, "Redis GET, 128 KiB"),
    "get_vs_redis_1m": ("vm", "get", 5, "Redis GET, 1 MiB"),
    "handoff_same_host_vs_copy": ("vm", "handoff", 50, "memcpy of the KV bytes of 64k tokens"),
    "transport_vs_ib_write_bw": ("vm", "transport", 0.9, "ib_write_bw, the same two ports"),
    "transport_naive_vs_ib_write_bw": ("vm", "transport", None, "ib_write_bw, the same two ports"),
    "overlap_exposed_vs_last_chunk": ("vm", "transport", 0.87, "a chunk sent alone"),
    "transport_vs_ib_write_bw_unlimited": ("vm", "transport", None, "the same, bound by the CPU"),
    "transport_naive_vs_ib_write_bw_unlimited": ("vm", "transport", None,
                                                 "the same, bound by the CPU"),
    "overlap_exposed_vs_last_chunk_unlimited": ("vm", "transport", None,
                                                "the same, bound by the CPU"),
    "reload_vs_fio_vm_64k": ("vm", "reload", 0.95, "fio io_uring, 64 KiB, NVMe"),
    "reload_vs_fio_vm": ("vm", "reload", 0.95, "fio io_uring, 128 KiB, NVMe"),
    "reload_vs_fio_vm_1m": ("vm", "reload", 0.95, "fio io_uring, 1 MiB, NVMe"),
    "reload_cpu_vs_fio_vm_64k": ("vm", "reload", 1.0, "CPU time with fio, 64 KiB, NVMe"),
    "reload_cpu_vs_fio_vm": ("vm", "reload", 1.0, "CPU time with fio, 128 KiB, NVMe"),
    "reload_cpu_vs_fio_vm_1m": ("vm", "reload", 1.0, "CPU time with fio, 1 MiB, NVMe"),
    "reload_cpu_vs_fio_crc_vm_64k": ("vm", "reload", 1.0, "fio verify=crc32c, 64 KiB, NVMe"),
    "reload_cpu_vs_fio_crc_vm": ("vm", "reload", 1.0, "fio verify=crc32c, 128 KiB, NVMe"),
    "reload_cpu_vs_fio_crc_vm_1m": ("vm", "reload", 1.0, "fio verify=crc32c, 1 MiB, NVMe"),
}
LOWER_IS_BETTER = ("ns", "us", "ms", "s", "ms/GB")
DEPTHS = (4, 16, 32, 64, 128)
FLASH_MIB = {"native": 1024, "vm": 256}
VM_NVME_BPS = "32M"     # what an emulated CPU can check the bytes of
RELOAD_BLOCKS = {"_64k": 64 << 10, "": 128 << 10, "_1m": 1 << 20}
VM_TIMEOUT = 480
TRANSPORT_TIMEOUT = 600  # it measures with a limit and without
# Emulated, the instructions take a checksum at a quarter of the speed of tables
TCG_CPU = "sse4.2=off,pclmulqdq=off"


class BenchError(Exception):
    """A benchmark could not run; the message says why and what to do."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def parse_args():
    parser = argparse.ArgumentParser(
        description="Measure Hawk beside its peers; print a table, write bench.json.")
    parser.add_argument("--build", default="build", metavar="DIR",
                        help="build folder (default: build)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only the figure NAME, or if there is none those whose name "
                        "starts so; may be repeated")
    parser.add_argument("--where", choices=("native", "vm"), help="only figures measured there")
    parser.add_argument("--quick", action="store_true",
                        help="shorter measurements, for trying the benchmarks out")
    parser.add_argument("--runs", type=int, default=0, help="runs of each side (default: 7, or 5 "
                        "in the VM and for reload)")
    parser.add_argument("--kernel", default="6.1", help="kernel of the VM (default: 6.1)")
    parser.add_argument("--nvme-bps", default=VM_NVME_BPS, metavar="SIZE", help="read limit of "
                        f"the VM's NVMe drive in bytes/s; 0: none (default: {VM_NVME_BPS})")
    parser.add_argument("--link-bps", type=int, metavar="N", help="rate of the wire between the "
                        "VM's soft RoCE ports in bytes/s (default: a quarter of what its CPUs "
                        "carry)")
    parser.add_argument("--json", metavar="FILE", help="result file (default: DIR/bench.json)")
    parser.add_argument("--list", action="store_true", help="list the figures and stop")
    parser.add_argument("--guest", metavar="FILE", help=argparse.SUPPRESS)
    return parser.parse_args()


class Bench:
    """The figures asked for and what has been measured of them."""

    def __init__(self, args):
        self.args = args
        self.build = (REPO / args.build).resolve()
        self.names = [n for n, f in FIGURES.items()
                      if (not args.only or any(n == o if o in FIGURES else n.startswith(o)
                                               for o in args.only))
                      and (not args.where or f[0] == args.where)]
        self.samples = {}
        self.units = {}
        self.skipped = {}
        self.notes = {}

    def wants(self, where, program):
        return any(FIGURES[n][:2] == (where, program) for n in self.names)

    def runs(self, default):
        return self.args.runs or default

    def ms(self, full):
        return full // 4 if self.args.quick else full

    def skip(self, where, program, why):
        for name in self.names:
            if FIGURES[name][:2] == (where, program):
                self.skipped[name] = why
        say(f"{program} ({where}): skipped: {why}")

    def add(self, name, side, value, unit):
        self.samples.setdefault(name, {"ours": [], "peer": []})[side].append(value)
        self.units[name] = unit

    def path(self, program):
        path = self.build / "bench" / program
        if not path.exists():
            raise BenchError(f"{path} is missing; run: make bench-build")
        return str(path)

    def take(self, line, rename=None):
        """One JSON line of a program."""
        m = json.loads(line)
        self.add(rename or m["name"], m["side"], m["value"], m["unit"])

    def run(self, program, *args, stdin=None):
        """Run a program to its end and take all that it measures."""
        argv = [self.path(program), *map(str, args)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=stdin, text=True) as p:
            for line in p.stdout:
                self.take(line)
        if p.returncode:
            raise BenchError(f"{program} ended with status {p.returncode}; its message is above")

    def rows(self):
        return [self.row(n) for n in self.names if n in self.samples]

    def row(self, name):
        """Ratio: median over the pairs of runs, so that what slows both cancels out."""
        where, _, bar, peer = FIGURES[name]
        ours, peers = self.samples[name]["ours"], self.samples[name]["peer"]
        lower = self.units[name] in LOWER_IS_BETTER
        ratios = [p / o if lower else o / p for o, p in zip(ours, peers)]
        ratio = statistics.median(ratios)
        return {"name": name, "unit": self.units[name], "ours": statistics.median(ours),
                "peer": statistics.median(peers), "peer_name": peer, "ratio": round(ratio, 3),
                "bar": bar, "runs": len(ratios),
                "spread": round((max(ratios) - min(ratios)) / ratio, 3), "where": where,
                **({"note": self.notes[name]} if name in self.notes else {})}


# ---- native ----

def bench_translate(b):
    b.run("translate", "-r", b.runs(7), "-m", b.ms(400))


def bench_alloc(b):
    b.run("alloc", "-r", b.runs(7), "-m", b.ms(600))


def bench_rollback(b):
    b.run("rollback", "-r", b.runs(7), "-m", b.ms(200))


def bench_fork(b):
    b.run("fork", "-r", b.runs(7), "-m", b.ms(200))


def bench_transform(b):
    b.run("transform", "-r", b.runs(7))


def trace_file():
    folder = Path(os.environ.get("HAWK_TRACES") or REPO.parent / "shared" / "traces")
    return folder / "mooncake_fast25_conversation_trace.jsonl"


def bench_hitrate(b):
    """Counts, so one run of each is exact."""
    trace = trace_file()
    if not trace.exists():
        b.skip("native", "hitrate", f"{trace} is not there; set HAWK_TRACES to the folder of "
               "the Mooncake trace")
        return
    with tempfile.TemporaryFile("w+") as flat:
        with trace.open() as f:
            for line in f:
                flat.write("".join(f"{h}\n" for h in json.loads(line)["hash_ids"]) + "\n")
        flat.seek(0)
        b.run("hitrate", stdin=flat)


FIO = ("fio", "--name=reload", "--rw=randread", "--ioengine=io_uring", "--direct=1",
       "--verify_state_save=0", "--output-format=json")


def fio(*args):
    """MB/s and bytes read."""
    out = subprocess.run([*FIO, *args], stdout=subprocess.PIPE, text=True, check=True).stdout
    read = json.loads(out[out.index("{"):])["jobs"][0]["read"]
    return read["bw_bytes"] / 1e6, read["io_bytes"]


class Fio:
    """fio on one file, at the depth that it does best at. With @crc behind what Hawk has
    there, on blocks of its own that it checks as Hawk does."""

    def __init__(self, path, block, mib, seconds, crc=False):
        self.args = (f"--filename={path}", f"--bs={block}", f"--size={mib}M")
        self.seconds = seconds
        # without checks, that are of more than what is read
        self.start = statistics.median(
            self.cpu(lambda: fio(*self.args, f"--io_size={block}"))[0] for _ in range(3))
        if crc:
            self.args += (f"--offset={mib}M", "--verify=crc32c", "--verify_fatal=1",
                          "--verify_state_save=0")
            fio(*self.args, "--rw=write", "--do_verify=0", "--iodepth=4")
        rates = {}
        for self.depth in DEPTHS:
            rates[self.depth] = fio(*self.timed(seconds))[0]
        say("  fio by depth: " + ", ".join(f"{d}: {r:.0f} MB/s" for d, r in rates.items()))
        self.depth = max(rates, key=rates.get)

    def timed(self, seconds):
        return (*self.args, "--time_based", f"--runtime={seconds}", f"--iodepth={self.depth}")

    @staticmethod
    def cpu(function):
        """CPU seconds of the children that @function waits for, and what it returns."""
        before = os.times()
        value = function()
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4]), value

    def measure(self):
        """MB/s and ms of CPU time for each GB, without fio's start and end."""
        cpu, (rate, nbytes) = self.cpu(lambda: fio(*self.timed(self.seconds)))
        return rate, (cpu - self.start) * 1e12 / nbytes


class DriveFio(Fio):
    """On a whole drive of a machine on which nothing else runs: CPU time is all that it was
    not idle, the kernel's own threads included, between two moments while fio runs."""

    def __init__(self, path, *args):
        self.drive = Path("/sys/block") / Path(path).name / "stat"
        super().__init__(path, *args)

    def now(self):
        """Seconds, CPU seconds, bytes read."""
        times = [int(t) for t in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        idle = (times[3] + times[4]) / os.sysconf("SC_CLK_TCK")
        at = time.monotonic()
        return at, os.cpu_count() * at - idle, int(self.drive.read_text().split()[2]) * 512

    def measure(self):
        with subprocess.Popen([*FIO, *self.timed(self.seconds + 30)],
                              stdout=subprocess.DEVNULL) as p:
            before = self.now()[2]
            while p.poll() is None and self.now()[2] - before < 4 << 20:
                time.sleep(0.1)
            t0, cpu0, bytes0 = self.now()
            time.sleep(self.seconds)
            t1, cpu1, bytes1 = self.now()
            if p.poll() is not None:
                raise BenchError(f"fio ended early, with status {p.returncode}")
            p.terminate()
        nbytes = bytes1 - bytes0
        return nbytes / (t1 - t0) / 1e6, (cpu1 - cpu0) * 1e12 / nbytes


def reload_pairs(b, names, path, block, *args):
    """Passes of the reload program and fio on the same file in turns; names: of the rate,
    of the CPU time, of that with a fio that checks what it reads."""
    where = FIGURES[names[0]][0]
    mib = FLASH_MIB[where]
    say(f"  {names[0]}: writing {mib} MiB to {path}")
    write_whole(path, 2 * mib)
    argv = [b.path("reload"), "-b", str(block), "-s", str(mib), "-f", str(path), *args]
    with subprocess.Popen(argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        if p.stdout.readline() != "ready\n":
            raise BenchError("reload could not fill its space; its message is above")
        kind, seconds = DriveFio if where == "vm" else Fio, 1 if b.args.quick else 3
        peer = kind(path, block, mib, seconds)
        checking = kind(path, block, mib, seconds, True) if names[2] in b.names else None
        for _ in range(b.runs(5)):
            p.stdin.write("\n")
            p.stdin.flush()
            lines = [p.stdout.readline() for _ in names[:2]]
            if not all(lines):
                raise BenchError("reload failed; its message is above")
            values = (*peer.measure(), checking.measure()[1] if checking else None)
            for name, line, value in zip(names, (*lines, lines[1]), values):
                if value is None:
                    continue
                fio_of = checking if name == names[2] else peer
                b.notes[name] = f"fio at depth {fio_of.depth}"
                b.take(line, name)
                b.add(name, "peer", value, b.units[name])
        p.stdin.close()


def reload_blocks(b, path, where, *args):
    """All block sizes of which a figure is wanted."""
    suffix = "_vm" if where == "vm" else ""
    for size, block in RELOAD_BLOCKS.items():
        names = [f"reload{what}{suffix}{size}"
                 for what in ("_vs_fio", "_cpu_vs_fio", "_cpu_vs_fio_crc")]
        if any(n in b.names for n in names):
            reload_pairs(b, names, path, block, *args)


def write_whole(path, mib):
    """Blocks never written would be read without touching the drive."""
    piece = os.urandom(1 << 20)
    with open(path, "wb") as f:
        for _ in range(mib):
            f.write(piece)
        os.fsync(f.fileno())


def bench_reload(b):
    path = b.build / "bench" / "flash.img"
    try:
        reload_blocks(b, path, "native")
    finally:
        path.unlink(missing_ok=True)


def bench_recovery(b):
    """A space finds a million blocks, and fio reads their headers in large pieces."""
    path = b.build / "bench" / "flash.img"
    try:
        with subprocess.Popen([b.path("recovery"), "-f", str(path)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            ready = p.stdout.readline().split()
            if ready[:1] != ["ready"]:
                raise BenchError("recovery could not make its pool; its message is above")
            peer = (f"--filename={path}", "--rw=read", "--bs=512k", "--iodepth=16",
                    f"--offset={ready[1]}", f"--size={ready[2]}")
            for _ in range(b.runs(5)):
                p.stdin.write("\n")
                p.stdin.flush()
                b.take(p.stdout.readline())
                b.take(p.stdout.readline())
                b.add("recovery_1m_slots", "peer", 5, "s")
                b.add("recovery_vs_read", "peer", fio(*peer)[0], "MB/s")
            p.stdin.close()
    finally:
        path.unlink(missing_ok=True)


def bench_gather(b):
    path = b.build / "bench" / "flash.img"
    try:
        write_whole(path, 512)
        b.run("gather", "-f", path, "-r", b.runs(7))
    finally:
        path.unlink(missing_ok=True)


def bench_decode(b):
    model = REPO / "tests" / "data" / "hawk-tiny.gguf"
    if not model.exists():
        b.skip("native", "decode", f"{model} is not there")
        return
    b.run("decode", "-f", model, "-r", b.runs(7), "-m", b.ms(600))
    parts = [b.row(n) for n in ("decode_hawk_vs_private_b1", "decode_hawk_vs_private_b8")]
    worst = min(parts, key=lambda r: r["ratio"])["name"]
    b.samples["decode_hawk_vs_private"] = b.samples[worst]
    b.units["decode_hawk_vs_private"] = b.units[worst]
    b.notes["decode_hawk_vs_private"] = "batch " + worst[-1]


def bench_turn(b):
    for ours, peer in turn.measure(b.build, b.runs(7)):
        b.add("turn_after_drop_vs_reprefill", "ours", ours, "ms")
        b.add("turn_after_drop_vs_reprefill", "peer", peer, "ms")


# ---- in the virtual machine ----

class Redis:
    """A Redis server of our own on a UNIX socket in a folder of its own."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="hawk-redis-")
        self.socket = os.path.join(self.dir, "s")
        self.proc = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
             "--appendonly", "no", "--dir", self.dir], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not os.path.exists(self.socket):
            if self.proc.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise BenchError("redis-server did not start")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.proc.terminate()
        self.proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def bench_vm_translate(b):
    b.run("translate", "-u", "dev:", "-r", b.runs(5), "-m", b.ms(1000))


def bench_vm_get(b):
    with Redis() as redis:
        for name, block in (("get_vs_redis_128k", 128 << 10), ("get_vs_redis_1m", 1 << 20)):
            if name in b.names:
                b.run("get", "-f", redis.socket, "-b", block, "-r", b.runs(5), "-m", b.ms(1500))


def bench_vm_handoff(b):
    b.run("handoff", "-u", "dev:", "-r", b.runs(5))


def bench_vm_transport(b):
    for suffix, lines, rate, note in transport.measure(
            b.path("transport"), b.runs(5), b.args.quick, b.args.link_bps, say):
        for line in lines:
            name = json.loads(line)["name"] + suffix
            b.take(line, name)
            b.notes[name] = note
        if rate:
            b.add(name, "peer", rate, "MB/s")


def bench_vm_reload(b):
    reload_blocks(b, "/dev/nvme0n1", "vm", "-u", "dev:")


NATIVE = {"translate": bench_translate, "alloc": bench_alloc, "hitrate": bench_hitrate,
          "reload": bench_reload, "recovery": bench_recovery,
          "rollback": bench_rollback, "gather": bench_gather,
          "fork": bench_fork, "transform": bench_transform, "decode": bench_decode,
          "turn": bench_turn}
GUEST = {"translate": bench_vm_translate, "get": bench_vm_get, "handoff": bench_vm_handoff,
         "transport": bench_vm_transport, "reload": bench_vm_reload}


def measure(b, where, programs):
    """A program that fails takes its own figures with it, not the others'."""
    for program, function in programs.items():
        if not b.wants(where, program):
            continue
        say(f"{program} ({where})")
        t0 = time.monotonic()
        try:
            function(b)
            say(f"{program} ({where}): {time.monotonic() - t0:.0f} s")
        except (BenchError, RuntimeError, OSError, subprocess.CalledProcessError) as e:
            for name in b.names:
                if FIGURES[name][:2] == (where, program):
                    b.samples.pop(name, None)
            b.skip(where, program, str(e))


def run_vm(b):
    """One VM runs this script again; it leaves its results in a folder both see."""
    if not any(b.wants("vm", p) for p in GUEST):
        return None
    out = b.build / "bench" / "vm"
    out.mkdir(parents=True, exist_ok=True)
    result = out / "guest.json"
    result.unlink(missing_ok=True)
    args = [a for name in b.names if FIGURES[name][0] == "vm" for a in ("--only", name)]
    args += ["--quick"] if b.args.quick else []
    args += ["--runs", str(b.args.runs)] if b.args.runs else []
    args += ["--link-bps", str(b.args.link_bps)] if b.args.link_bps else []
    why = "it did not get that far"
    timeout = VM_TIMEOUT + (TRANSPORT_TIMEOUT if b.wants("vm", "transport") else 0)
    module = any(FIGURES[n][0] == "vm" and FIGURES[n][1] != "transport" for n in b.names)
    try:
        if module:
            say("building hawk.ko")
            subprocess.run([REPO / "tools/lab/build-module", "--kernel", b.args.kernel],
                           stdout=subprocess.DEVNULL, check=True)
        subprocess.run([REPO / "tools/lab/hawk-lab", "run", "--kernel", b.args.kernel, "--out",
                        out, *([] if module else ["--no-module"]),
                        *(["--rdma"] if b.wants("vm", "transport") else []),
                        "--nvme-bps", b.args.nvme_bps, "--tcg-cpu", TCG_CPU,
                        "--timeout", str(timeout), "--",
                        Path(__file__).resolve(),
                        "--build", b.build, "--guest", result, *args], check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        why = str(e)
    guest = json.loads(result.read_text()) if result.exists() else None
    done = {r["name"] for r in guest["rows"]} | set(guest["skipped"]) if guest else set()
    for name in b.names:
        if FIGURES[name][0] == "vm" and name not in done:
            b.skipped[name] = f"the lab failed: {why}"
    return guest


# ---- the machine and the report ----

def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    return {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)),
            "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
            "kernel": platform.release(), "load": round(os.getloadavg()[0], 1)}


def vm_accel():
    status = subprocess.run([REPO / "tools/lab/hawk-lab", "status", "--json"], text=True,
                            stdout=subprocess.PIPE, check=False)
    return json.loads(status.stdout)["accel"] if not status.returncode else "unknown"


def machine_text(where, m):
    accel = f", {m['accel']}" if "accel" in m else ""
    return (f"{where}: {m['cpu']}, {m['cores']} cores, {m['memory_mib'] >> 10} GiB, "
            f"Linux {m['kernel']}{accel}, load {m['load']}")


def number(v):
    return f"{v:,.0f}" if v >= 1000 else f"{v:.4g}"


def verdict(row):
    if row["bar"] is None:
        return ""
    return "met" if row["ratio"] >= row["bar"] else "MISSED"


def print_table(rows, skipped, machines):
    print(f"{'':30} {'ours':>12} {'peer':>12} {'unit':6} {'ratio':>7} {'spread':>7} "
          f"{'bar':>6} {'':7} {'where':7} peer")
    for r in rows:
        bar = "-" if r["bar"] is None else f"{r['bar']:g}"
        note = f" ({r['note']})" if "note" in r else ""
        print(f"{r['name']:30} {number(r['ours']):>12} {number(r['peer']):>12} {r['unit']:6} "
              f"{r['ratio']:>7.3g} {r['spread']:>7.0%} {bar:>6} {verdict(r):7} {r['where']:7} "
              f"{r['peer_name']}{note}")
    for name, why in skipped.items():
        print(f"{name:30} skipped: {why}")
    for where, m in machines.items():
        print(machine_text(where, m))


def guest_main(b):
    """The results so far are there even if the VM runs out of time."""
    for program, function in GUEST.items():
        measure(b, "vm", {program: function})
        Path(b.args.guest).write_text(json.dumps(
            {"rows": b.rows(), "skipped": b.skipped, "machine": machine()}))


def main():
    args = parse_args()
    b = Bench(args)
    if args.list:
        print("\n".join(b.names))
        return 0
    if not b.names:
        raise BenchError("no figure has such a name; see --list")
    if args.guest:
        guest_main(b)
        return 0
    machines = {"native": machine()}
    if machines["native"]["load"] > machines["native"]["cores"]:
        say("this machine is busy: what several threads or the drive do at once will be "
            "measured too low, on both sides but not equally")
    measure(b, "native", NATIVE)
    rows = b.rows()
    guest = run_vm(b)
    if guest:
        rows += guest["rows"]
        b.skipped.update(guest["skipped"])
        machines["vm"] = {**guest["machine"], "accel": vm_accel()}
    for r in rows:
        r["machine"] = machines[r["where"]]
    path = Path(args.json) if args.json else b.build / "bench.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")
    print_table(rows, b.skipped, machines)
    say(f"wrote {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as e:
        say(str(e))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
