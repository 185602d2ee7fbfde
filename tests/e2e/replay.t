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

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
SIM = TOP / "build/bin/hawk-sim"
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


def between(points, x):
    """y at x, on straight lines between points that begin at (0, 0)."""
    points = sorted([(0, 0), *points])
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return points[-1][1]


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
    for dram, hints in ((10, 0), (10, 100), (20, 50)):
        case = (*AGENTS, "--no-ttft", "--dram", f"{dram}%", "--hints", hints)
        got = by_policy(sim(*case, "--policy", "all,second,ours", "--budget", "20,40,60,80"))
        got["random"] = sim(*case, "--policy", "random", "--share", "20,40,60,80")
        every = sim(*case, "--policy", "all")[0]
        for peer in ("second", "all", "random"):
            points = [(r["writes"], r["flash_hits"]) for r in [*got[peer], every]]
            lead = [(r["flash_hits"] - between(points, r["writes"])) / every["flash_hits"]
                    for r in got["ours"]]
            t.ok(min(lead) > 0, f"DRAM {dram} %, hints {hints} %: more hits than {peer} "
                 "at equal writes, at each budget", lead)


def test_full_hints_keep_the_reuse():
    """With all transient blocks marked: 94.2 % of the reuse, and half of the useless writes."""
    for dram in (10, 20, 30):
        case = ("agents", "--seed", SEED, "--no-ttft", "--dram", f"{dram}%")
        every, oracle = sim(*case, "--policy", "all,oracle")
        middle = (every["writes"] + oracle["writes"]) / 2
        budgets = f"{100 * middle / every['writes']},100"
        kept = [r["flash_hits"] / every["flash_hits"] for r in
                sim(*case, "--policy", "ours", "--budget", budgets) if r["writes"] <= middle]
        t.ok(kept and max(kept) >= 0.942,
             f"DRAM {dram} %: 94.2 % of the reuse with half of the useless writes", kept)


def test_paced_reload():
    got = sim("agents", "--seed", SEED, "--policy", "dram,ours", "--delivery", "unpaced,paced")
    dram, _, unpaced, paced = got
    t.ok(paced["link_window"] <= 0.7, "no 10 ms have more than 70 % of the link", paced)
    t.ok(paced["skew_p99"] <= 0.05 < unpaced["skew_p99"],
         "both streams of a mixed reload end within 5 % of each other, only if paced", paced)
    t.ok(paced["ttft_mean_s"] < unpaced["ttft_mean_s"], "paced, the wait is shorter",
         (paced["ttft_mean_s"], unpaced["ttft_mean_s"]))
    t.ok(paced["ttft_p99_s"] < 0.3 * dram["ttft_p99_s"], "and far shorter than without flash",
         (paced["ttft_p99_s"], dram["ttft_p99_s"]))
    t.ok(paced["promoted"] > 0, "blocks are promoted while prefill runs")


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
    points = [(r["writes"], r["flash_hits"]) for r in [*rnd, every]]
    t.ok(all(r["flash_hits"] > between(points, r["writes"]) for r in ours),
         "ours above random admission at equal writes, 10 to 90 %")
    second = sim(*load, "--policy", "second", "--budget", "10,15,20,25")
    points = [(r["writes"], r["flash_hits"]) for r in second]
    t.ok(all(r["flash_hits"] > between(points, r["writes"]) for r in ours),
         "and above second access", [(r["writes"], r["flash_hits"]) for r in ours])


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
                        test_budget_is_held_for_ten_days, test_reasons_are_counted,
                        test_public_trace, test_azure_table]):
    t.run(test)
t.done()
