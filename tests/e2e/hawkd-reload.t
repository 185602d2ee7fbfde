#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hawkd reads cached KV back from flash, or computes it where that is quicker; a drive that
stalls hangs no request. The texts are the same either way.

Arguments are names of tests to run (choices, stall), all without. `choices` uses the device
named by HAWK_URL, otherwise the embedded backend."""

import concurrent.futures
import fcntl
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import serve  # noqa: E402
import tap  # noqa: E402

t = tap.Tap()
DOCS = [f"Document {i}. " + f"Page {i} is about memory and I/O. " * 22 for i in range(8)]
CHOICES = [f'hawkd_kv_reload_choices_total{{choice="{c}"}}'
           for c in ("reload", "recompute", "trial")]


def ask(server, prompt):
    status, a = serve.completion(server, prompt=prompt, max_tokens=4)
    assert status == 200, a
    return a["choices"][0]["text"], a["hawk"], a["usage"]["prompt_tokens"]


def test_choices(folder):
    """Which way it goes is up to this machine; that it is told truly is not."""
    url = os.environ.get("HAWK_URL", f"embed:?dram=2M&flash={folder}/kv&flash_size=64M")
    with serve.start("embed:?dram=4M", "--no-cache") as plain:
        wanted = [ask(plain, p)[0] for p in DOCS]
    with serve.start(url, "--chunk", "32", reload="cheaper") as server:
        t.equal([ask(server, p)[0] for p in DOCS], wanted, "computed: the texts")
        got = [ask(server, p) for p in DOCS]
        t.equal([g[0] for g in got], wanted, "reloaded or computed again: the same texts")
        t.ok(all(h["tokens_dram"] + h["tokens_flash"] + h["tokens_recomputed"] == n
                 for _, h, n in got), "prompt tokens add up by source", got)
        m = server.metrics()
        flash = sum(h["tokens_flash"] for _, h, _ in got)
        t.ok(sum(m[c] for c in CHOICES) > 0 and flash + m["hawkd_kv_left_tokens_total"] > 0,
             "a choice was made for each prefix on flash", m)
        t.equal(m["hawkd_kv_left_tokens_total"] > 0, m[CHOICES[1]] > 0,
                "tokens are left on flash when, and only when, that was chosen")
        t.equal(m["hawkd_reload_seconds_count"], m["hawkd_reload_estimate_seconds_count"],
                "each reload has an estimate")
        t.ok(m["hawkd_prefill_tokens_per_second"] > 0, "the rate of prefill is known")
        t.ok(m["hawkd_kv_prefill_phases_total"] > 0, "the device was told of prefill")


def stalled_hawkd(folder):
    """A hawkd whose drive stalls while the file that is returned is locked."""
    library, lock = pathlib.Path(folder, "stall.so"), pathlib.Path(folder, "stall")
    lock.touch()
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library,
                    HERE / "lib/stall_reads.c"], check=True)
    os.environ |= {"LD_PRELOAD": str(library), "STALL_FILE": str(lock)}
    try:
        return serve.start(f"embed:?dram=2M&flash={folder}/kv&flash_size=64M&writeback=0",
                           "--chunk", "32", reload="cheaper"), lock
    finally:
        del os.environ["LD_PRELOAD"], os.environ["STALL_FILE"]


def test_stall(folder):
    """The drive does not come back before all have been answered."""
    server, lock = stalled_hawkd(folder)
    with server, lock.open() as file, concurrent.futures.ThreadPoolExecutor(2) as pool:
        wanted = [ask(server, p)[0] for p in DOCS]
        fcntl.flock(file, fcntl.LOCK_EX)
        again = pool.submit(ask, server, DOCS[0])
        other = pool.submit(ask, server, "Something new. " + DOCS[0])
        text, hawk, n = again.result()
        t.equal(text, wanted[0], "the drive stalls: the prompt is computed, the text is the same")
        t.equal(hawk["tokens_dram"] + hawk["tokens_recomputed"], n, "nothing came from flash")
        t.ok(other.result()[2] > 0, "who came behind is answered, too")
        late = server.metrics()["hawkd_kv_reloads_late_total"]
        t.equal(late, 1, "one reload was late")
        fcntl.flock(file, fcntl.LOCK_UN)
        t.equal([ask(server, p)[0] for p in DOCS], wanted, "it comes back: the same texts")
        t.equal(server.stop(), 0, "hawkd stops with status 0")


def main():
    tests, = tap.chosen((test_choices, test_stall))
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    for test in tests:
        with serve.scratch() as folder:
            t.run(test, folder)
    t.done()


if __name__ == "__main__":
    main()
