#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Paced reload in the lab's VM: sessions whose context lies half in DRAM and half on the
throttled drive, gathered with the pace off and on. See tests/bench/README.md, "Paced reload".

One factor, this drive's rate by that of the machine modelled, scales the link and the prefill
rate to the lab; nothing else is chosen."""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

PACE = Path("/sys/class/misc/hawk/pace")
TRACE = Path("/sys/kernel/tracing")
WINDOW_NS = 10_000_000
BLOCK = 64 << 10        # of 16 tokens: space.h
TOKEN = BLOCK // 16     # bytes
# what hawk-sim assumes: bytes/s, tokens/s, bytes of a token
MODEL = {"flash": 28e9, "link": 64e9, "prefill": 20e3, "token": 327680}


def tune(**values):
    for name, value in values.items():
        (PACE / name).write_text(f"{value}\n")


class Program:
    """pace, which fills its space once and then measures as told."""

    def __init__(self, build, drive):
        self.proc = subprocess.Popen(
            [Path(build) / "bench" / "pace", "-u", "dev:", "-b", str(BLOCK), "-s", "256",
             "-f", drive], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.proc.stdout.readline() != "ready\n":
            sys.exit("pace.py: pace could not fill its space; its message is above")

    def tell(self, what):
        self.proc.stdin.write(what + "\n")
        self.proc.stdin.flush()
        rows = []
        for line in iter(self.proc.stdout.readline, "end\n"):
            if not line:
                sys.exit("pace.py: pace failed; its message is above")
            rows.append(json.loads(line))
        return rows


def p99(values):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * 0.99))]


def spread(rows):
    """How much earlier the first of the two streams ended, of the time of the later one."""
    return [abs(r["flash_ns"] - r["dram_ns"]) / max(r["flash_ns"], r["dram_ns"]) for r in rows]


def traced(function):
    """What @function returns, and (ns, bytes) of all that passed the link meanwhile."""
    event = TRACE / "events/hawk/hawk_deliver_part/enable"
    (TRACE / "trace").write_text("")
    (TRACE / "buffer_size_kb").write_text("16384")
    event.write_text("1")
    value = function()
    event.write_text("0")
    parts = []
    for line in (TRACE / "trace").read_text().splitlines():
        if "hawk_deliver_part:" in line and "link=1" in line:
            words = dict(w.split("=") for w in line.split("hawk_deliver_part:")[1].split())
            parts.append((int(words["at"]), int(words["bytes"])))
    return value, sorted(parts)


def fullest(parts):
    """Bytes of the fullest window."""
    most = held = first = 0
    for at, nbytes in parts:
        held += nbytes
        while parts[first][0] <= at - WINDOW_NS:
            held -= parts[first][1]
            first += 1
        most = max(most, held)
    return most


def summary(rows):
    times = [r["ns"] / 1e6 for r in rows]
    return {"gathers": len(rows), "mean_ms": statistics.mean(times), "p99_ms": p99(times)}


MODES = {"unpaced": "off", "paced": "on"}


def agents(program, rates, rounds):
    """Reload times with the pace off and on in turns, and those of computing instead."""
    rows = {name: [] for name in (*MODES, *rates)}
    for i in range(rounds):
        for name in sorted(MODES, reverse=i % 2):
            tune(mode=MODES[name])
            rows[name] += program.tell("agents")
        for rate in rates:
            rows[rate] += program.tell(str(rate))
    result = {name: summary(r) for name, r in rows.items()}
    for rate in rates:
        result[rate]["paced_is_less_by"] = 1 - result["paced"]["p99_ms"] / result[rate]["p99_ms"]
    return {f"dram_only_{n:g}_tokens_per_s" if n in rates else n: r for n, r in result.items()}


def one(program):
    result = {}
    for name, mode in MODES.items():
        tune(mode=mode)
        apart = spread(program.tell("one"))
        result[name] = {"streams_apart_median": statistics.median(apart), "max": max(apart)}
    return result


def four(program, link):
    """Four at once through a link of @link MB/s."""
    result = {"cap_bytes": int(link * 1e6 * 0.7 * WINDOW_NS / 1e9)}
    for name, mode in MODES.items():
        tune(mode=mode, link_mb_per_s=link)
        rows, parts = traced(lambda: program.tell("four"))
        apart = spread(rows)
        result[name] = {**summary(rows), "traced_bytes": sum(n for _, n in parts),
                        "bytes": sum(r["flash"] + r["dram"] for r in rows),
                        "fullest_10_ms_bytes": fullest(parts),
                        "streams_apart_median": statistics.median(apart), "max": max(apart)}
    tune(link_mb_per_s=0)
    return result


def scaled(flash):
    """The modelled machine at a drive of @flash bytes/s: link in MB/s, prefill in tokens/s."""
    factor = flash / MODEL["flash"]
    return {"factor": factor, "link_mb_per_s": MODEL["link"] * factor / 1e6,
            "prefill_tokens_per_s": MODEL["prefill"] * MODEL["token"] * factor / TOKEN,
            # of one request, nothing else under way: what computing takes and reading does not
            "floor": 1 - MODEL["prefill"] * MODEL["token"] / MODEL["flash"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--drive", default="/dev/nvme0n1")
    parser.add_argument("--flash", type=float, required=True, metavar="BYTES/S",
                        help="what the drive reads at most; it scales all else")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    program = Program(args.build, args.drive)
    lab = scaled(args.flash)
    result = {"lab": lab, "one": one(program), "four": four(program, int(lab["link_mb_per_s"])),
              "agents": agents(program, [lab["prefill_tokens_per_s"]], args.rounds)}
    text = json.dumps(result, indent=1)
    print(text)
    if args.json:
        Path(args.json).write_text(text + "\n")


if __name__ == "__main__":
    main()
