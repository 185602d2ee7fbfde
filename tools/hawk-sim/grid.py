#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The agent workload over seeds, sizes of memory, hints and budgets: where are we dominated?

	grid.py --seeds 1-3 --keep build/grid

Each cell is a seed, a size of host memory and a share of transient blocks that are marked. In
each the online policies (all, second, formula, ours) run at all budgets, and random at shares
of the same size. A point of ours is dominated if another online policy has at least as many flash
hits with no more writes, and is better in one of the two; behind, if it lies below the straight
lines through the points of one policy, which anybody could have by switching between two
budgets. Ours at the middle between the writes of everything and the oracle's is a run of its own.

With --keep each cell is written to a file once it is complete, and taken from there if the
simulator is still the same: what was stopped goes on where it was.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys

SIM = pathlib.Path(__file__).resolve().parents[2] / "build/bin/hawk-sim"
PEERS = ("all", "second", "formula", "random")
BAR = 94.2


def numbers(text):
    """1-3,7 is 1, 2, 3, 7."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def simulate(options):
    argv = [str(a) for a in (SIM, "--replay", "agents", "--no-ttft", *options, "--json")]
    run = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def points_of(results):
    found = {}
    for r in results:
        found.setdefault(r["policy"], []).append(
            {key: r[key] for key in ("writes", "flash_hits", "flash_used", "unread")})
    return found


def cell_run(cell, budgets, extra):
    """All points of one cell, by policy."""
    options = ("--seed", cell["seed"], "--dram", f"{cell['dram']}%", "--hints", cell["hints"], *extra)
    share = ",".join(str(b) for b in budgets)
    found = points_of(simulate((*options, "--policy", "all,second,formula,ours,oracle", "--budget", share)))
    found.update(points_of(simulate((*options, "--policy", "random", "--share", share))))
    found["whole"] = points_of(simulate((*options, "--policy", "all")))["all"]
    whole = found["whole"][0]["writes"]
    middle = 50 + 50 * found["oracle"][0]["writes"] / whole
    found["middle"] = points_of(simulate((*options, "--policy", "ours", "--budget", middle)))["ours"]
    return found


def cell_file(keep, cell, budgets, extra):
    what = json.dumps([cell, budgets, extra, hashlib.sha256(SIM.read_bytes()).hexdigest()])
    return keep / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"


def cell_get(cell, args):
    path = cell_file(args.keep, cell, args.budgets, args.extra) if args.keep else None
    if path and path.exists():
        return json.loads(path.read_text())
    found = cell_run(cell, args.budgets, args.extra)
    if path:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found))
        os.replace(part, path)
    return found


def between(points, x, key):
    """y at x, on straight lines between points that begin at (0, 0)."""
    points = sorted([(0, 0), *((p["writes"], p[key]) for p in points)])
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return points[-1][1]


def judge(cell, found, budgets, key):
    """What is to be said of a cell: shares in percent of what "all" writes and hits."""
    whole = found["whole"][0]
    row = {**cell, "oracle_writes": 100 * found["oracle"][0]["writes"] / whole["writes"],
           "dominated": [], "behind": []}
    for budget, ours in zip(budgets, found["ours"]):
        for peer in PEERS:
            over = [p for p in found[peer] if p["writes"] <= ours["writes"] and p[key] >= ours[key] and
                    (p["writes"], p[key]) != (ours["writes"], ours[key])]
            if over:
                row["dominated"].append([budget, peer])
            lead = 100 * (ours[key] - between([*found[peer], whole], ours["writes"], key)) / whole[key]
            if lead < 0:
                row["behind"].append([budget, peer, round(lead, 2)])
    middle = found["middle"][0]
    row["middle_writes"] = 100 * middle["writes"] / whole["writes"]
    row["middle_kept"] = 100 * middle[key] / whole[key]
    row["kept"] = [round(100 * p[key] / whole[key], 1) for p in found["ours"]]
    row["writes"] = [round(100 * p["writes"] / whole["writes"], 1) for p in found["ours"]]
    return row


def listed(items):
    return " ".join(":".join(str(i) for i in item) for item in items) or "-"


def show(rows, budgets, key):
    print(f"{key} kept, in percent of those of \"all\"; budgets {budgets}")
    print(f"{'seed':>4} {'dram':>4} {'hints':>5} {'oracle':>6} {'middle':>12}  ours at the budgets; "
          "dominated (budget:by); behind (budget:whom:lead)")
    for r in rows:
        low = "*" if r["hints"] == 100 and r["middle_kept"] < BAR else " "
        print(f"{r['seed']:>4} {r['dram']:>4} {r['hints']:>5} {r['oracle_writes']:6.1f} "
              f"{r['middle_writes']:5.1f}:{r['middle_kept']:5.1f}{low}  "
              f"{' '.join(f'{k:5.1f}' for k in r['kept'])}; {listed(r['dominated'])}; "
              f"{listed(r['behind'])}")
    n = len(rows) * len(budgets)
    print(f"{sum(len({d[0] for d in r['dominated']}) for r in rows)} of {n} points dominated, "
          f"{sum(len({d[0] for d in r['behind']}) for r in rows)} behind; full hints, budget at the "
          f"middle: {sum(r['hints'] == 100 and r['middle_kept'] < BAR for r in rows)} of "
          f"{sum(r['hints'] == 100 for r in rows)} below {BAR} % (marked *)")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seeds", type=numbers, default=numbers("1-3"), help="as in 1-3,7")
    p.add_argument("--dram", type=numbers, default=[10, 20, 30], help="percent of all blocks")
    p.add_argument("--hints", type=numbers, default=[0, 50, 100], help="percent of transient blocks")
    p.add_argument("--budgets", type=numbers, default=list(range(10, 101, 10)),
                   help="percent of what everything would be")
    p.add_argument("--used", action="store_true", help="count only hits with all blocks before in reach")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--keep", type=pathlib.Path, help="folder for complete cells")
    p.add_argument("--json", action="store_true", help="print JSON")
    p.add_argument("extra", nargs="*", help="after --: more options of hawk-sim")
    return p.parse_args()


def main():
    args = arguments()
    if not SIM.exists():
        sys.exit("grid.py: build/bin/hawk-sim is not built; run make")
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    cells = [{"seed": s, "dram": d, "hints": h}
             for s, d, h in itertools.product(args.seeds, args.dram, args.hints)]
    rows, key = [], "flash_used" if args.used else "flash_hits"
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for cell, found in zip(cells, pool.map(lambda c: cell_get(c, args), cells)):
            rows.append(judge(cell, found, args.budgets, key))
            print(f"\r{len(rows)} of {len(cells)} cells", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if args.json:
        print(json.dumps({"budgets": args.budgets, "key": key, "cells": rows}, indent=1))
    else:
        show(rows, args.budgets, key)
    return any(r["dominated"] for r in rows)


if __name__ == "__main__":
    sys.exit(main())
