#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What goes to flash: hawk-sim --replay on the agent workload and, where it is, a public trace.

HAWK_TRACE names mooncake_fast25_conversation_trace.jsonl, HAWK_AZURE azure_llm_2023_code.csv;
without them those parts are skipped.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path[:0] = [str(HERE / "lib"), str(TOP / "tools/hawk-sim")]

import grid  # noqa: E402
import tap  # noqa: E402

SIM = TOP / "build/bin/hawk-sim"
PLOT = TOP / "tools/hawk-sim/plot.py"
SEED = 7
# a third of the sessions of the real one, so that it is quick
AGENTS = ("agents", "--seed", SEED, "--sessions", 12)

t = tap.Tap()


def sim(*options):
    argv = [SIM, "--replay", *options, "--json"]
    run = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True,
                         stdin=subprocess.DEVNULL)
    if run.returncode:
        raise RuntimeError(f"{argv}: {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def by_policy(results):
    return {policy: list(rs) for policy, rs in
            itertools.groupby(results, key=lambda r: r["policy"])}


def test_policies_are_what_they_say():
    got = {p: r[0] for p, r in by_policy(sim(*AGENTS)).items()}
    every, oracle, ours = got["all"], got["oracle"], got["ours"]
    t.equal((got["dram"]["writes"], got["dram"]["flash_hits"]), (0, 0), "without flash no writes")
    t.equal(len({r["dram_hits"] for r in got.values()}), 1,
            "what is in host memory does not depend on what is written")
    t.equal((oracle["flash_hits"], oracle["unread"]), (every["flash_hits"], 0),
            "the oracle has all hits, and every block it writes is read")
    t.ok(oracle["writes"] < every["writes"], "with fewer writes")
    t.equal({key: ours[key] for key in ("writes", "flash_hits")},
            {key: every[key] for key in ("writes", "flash_hits")},
            "without a budget ours writes everything")
    t.ok(every["ttft_mean_s"] < got["dram"]["ttft_mean_s"], "flash shortens the wait")
    t.equal(sim(*AGENTS, "--policy", "ours", "--budget", 40),
            sim(*AGENTS, "--policy", "ours", "--budget", 40), "the same seed is the same run")


def test_ours_leads_at_equal_writes():
    budgets = [20, 40, 60, 80]
    for dram, hints in ((10, 0), (10, 100), (20, 50)):
        cell = {"seed": SEED, "dram": dram, "hints": hints}
        row = grid.judge(cell, grid.cell_run(cell, budgets, ("--sessions", 12)), budgets, "flash_hits")
        t.equal((row["dominated"], row["behind"]), ([], []), f"DRAM {dram} %, hints {hints} %: more "
                "hits than every other online policy at equal writes, at each budget")


def test_full_hints_keep_the_reuse():
    """With all transient blocks marked: 94.2 % of the reuse, and half of the useless writes."""
    for dram in (10, 20, 30):
        case = ("agents", "--seed", SEED, "--no-ttft", "--dram", f"{dram}%")
        every, oracle = sim(*case, "--policy", "all,oracle")
        middle = (every["writes"] + oracle["writes"]) / 2
        ours = sim(*case, "--policy", "ours", "--budget", 100 * middle / every["writes"])[0]
        kept = ours["flash_hits"] / every["flash_hits"]
        t.ok(ours["writes"] <= middle and kept >= 0.942,
             f"DRAM {dram} %: 94.2 % of the reuse with half of the useless writes", kept)


def test_paced_reload():
    got = sim("agents", "--seed", SEED, "--policy", "dram,ours", "--delivery", "unpaced,paced")
    dram, _, unpaced, paced = got
    t.ok(paced["link_window"] <= 0.7, "no 10 ms have more than 70 % of the link", paced)
    t.ok(paced["skew_p99"] <= 0.05 < unpaced["skew_p99"],
         "both streams of a mixed reload end within 5 % of each other, only if paced", paced)
    t.ok(paced["promoted"] > 0, "blocks are promoted while prefill runs")
    in_turn = sim("agents", "--seed", SEED, "--policy", "ours", "--delivery", "paced", "--in-turn")[0]
    t.ok(paced["ttft_mean_s"] < in_turn["ttft_mean_s"] < unpaced["ttft_mean_s"],
         "paced, the wait is shorter, with deadlines more so than in turn")
    t.ok(paced["ttft_p99_s"] < unpaced["ttft_p99_s"] and paced["ttft_p99_s"] < 0.25 * dram["ttft_p99_s"],
         "so is the longest, and far shorter than without flash",
         (paced["ttft_p99_s"], unpaced["ttft_p99_s"], dram["ttft_p99_s"]))
    dram, unpaced = sim("agents", "--seed", SEED, "--policy", "dram,ours", "--layers", 80)
    paced = sim("agents", "--seed", SEED, "--policy", "ours", "--delivery", "paced", "--layers", 80)[0]
    t.ok(paced["ttft_p99_s"] <= min((1 - 0.798) * dram["ttft_p99_s"], unpaced["ttft_p99_s"]),
         "79.8 % shorter, where a layer is computed when its blocks are there",
         (paced["ttft_p99_s"], unpaced["ttft_p99_s"], dram["ttft_p99_s"]))


def test_charts():
    results = sim(*AGENTS, "--policy", "dram,all,ours", "--budget", 60)
    for chart in ("hits", "ttft", "cdf", "turns"):
        run = subprocess.run([PLOT, chart], input=json.dumps(results), capture_output=True, text=True)
        words = [e.text for e in xml.etree.ElementTree.fromstring(run.stdout).iter()
                 if e.tag.endswith("text")] if not run.returncode else run.stderr
        t.ok(all(p in words for p in ("dram", "all", "ours")), f"{chart}: a chart of all policies", words)
    run = subprocess.run([PLOT, "cdf"], input=json.dumps(sim(*AGENTS, "--policy", "all", "--no-ttft")),
                         capture_output=True, text=True)
    t.ok(run.returncode and "--no-ttft" in run.stderr, "without times it says what to do", run.stderr)
    every = results[1]
    t.ok(abs(every["write_bytes_per_day"] - every["writes"] * 16 * 327680 * 86400 / every["load_s"]) <
         1e-6 * every["write_bytes_per_day"], "bytes per day", every)
    t.ok(abs(every["drive_writes_per_day"] * 15.36e12 / every["write_bytes_per_day"] - 1) < 1e-6,
         "drive writes per day are of a drive of 15.36 TB")


def test_budget_is_held_for_ten_days():
    # every day two hours with eight times as many sessions; 3 % of the writes of all ten a day
    got = sim("agents", "--seed", SEED, "--no-ttft", "--sessions", 800, "--arrival", 1728, "--burst", 8,
              "--burst-every", 86400, "--burst-for", 7200, "--block-tokens", 512,
              "--dram", 300, "--period", 86400, "--policy", "ours", "--budget", 3)[0]
    budget, most = got["budget_blocks"], got["peak_writes"]
    t.ok(got["load_s"] >= 10 * 86400, "ten days", got["load_s"])
    t.ok(most <= budget + got["peak_control_writes"],
         "no 24 hours have more than the budget and one control period's writes", got)
    t.ok(most > 0.8 * budget and got["writes"] > 4 * budget, "which was used", got)


def test_reasons_are_counted():
    got = sim(*AGENTS, "--policy", "ours", "--budget", 20)[0]
    t.ok(got["refused"]["score"] > 0 and got["refused"]["parent"] > 0, "refusals have reasons",
         got["refused"])
    t.ok(0 < got["unread"] < got["writes"], "written and never read is counted")


def test_public_trace():
    trace = os.environ.get("HAWK_TRACE")
    if not trace:
        raise tap.Skip("HAWK_TRACE does not name the Mooncake conversation trace")
    load = (f"mooncake:{trace}", "--dram", 5000, "--no-ttft")
    got = {p: r[0] for p, r in by_policy(sim(*load, "--buckets", 1, "--in-order")).items()}
    # measured by others with one LRU list
    t.equal(got["all"]["writes"], 179301, "everything written: as many as one LRU writes")
    t.ok(abs(got["all"]["flash_hits"] / got["all"]["accesses"] - 0.256) < 0.001, "25.6 % hits")
    t.ok(abs(got["oracle"]["writes"] / 39373 - 1) < 0.01, "the oracle's writes")
    t.ok(abs(got["second"]["writes"] / 43255 - 1) < 0.01 and
         abs(got["second"]["flash_hits"] / got["second"]["accesses"] - 0.132) < 0.001,
         "second access: writes and hits")
    every = got["all"]
    ours = sim(*load, "--policy", "ours", "--budget", "10,20,30,50,70,90")
    rnd = sim(*load, "--policy", "random", "--share", "10,30,50,70,90")
    t.ok(all(r["flash_hits"] > grid.between([*rnd, every], r["writes"], "flash_hits") for r in ours),
         "ours above random admission at equal writes, 10 to 90 %")
    second = sim(*load, "--policy", "second", "--budget", "10,15,20,25")
    t.ok(all(r["flash_hits"] > 0.96 * grid.between(second, r["writes"], "flash_hits") for r in ours),
         "and not below second access by more than a little",
         [(r["writes"], r["flash_hits"]) for r in ours])


def test_azure_table():
    trace = os.environ.get("HAWK_AZURE")
    if not trace:
        raise tap.Skip("HAWK_AZURE does not name the Azure code trace")
    got = {p: r[0] for p, r in by_policy(sim(f"azure:{trace}", "--block-tokens", 64,
                                             "--policy", "dram,all")).items()}
    t.ok(got["all"]["flash_hits"] > 0 and got["all"]["ttft_mean_s"] < got["dram"]["ttft_mean_s"],
         "flash shortens the wait", got)


if not SIM.exists():
    tap.skip_all("hawk-sim is not built; run make")
for test in ([test_policies_are_what_they_say, test_ours_leads_at_equal_writes,
                        test_full_hints_keep_the_reuse, test_paced_reload,
                        test_charts, test_budget_is_held_for_ten_days, test_reasons_are_counted,
                        test_public_trace, test_azure_table]):
    t.run(test)
t.done()
