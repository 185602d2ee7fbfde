# SPDX-License-Identifier: MIT
"""An agent's turn after it is done with a long observation: drop it from the cache, or cut
it out of the prompt and read what follows again. Time to first token, by hawkd, on a model
with random weights and a context of 32k. Called by bench.py."""

import random
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/demo"))

from hawkd import Hawkd  # noqa: E402

CONTEXT = 32768
HISTORY, START, OBSERVATION, MESSAGE = 24576, 4096, 8192, 200     # tokens
BLOCK = 16
WORDS = range(260, 500)


def ask(hawkd, prompt, **more):
    status, a = hawkd.call("POST", "/v1/completions", {
        "model": "random", "prompt": prompt, "max_tokens": 1, "temperature": 0, **more})
    if status != 200:
        raise RuntimeError(f"hawkd answered {status}: {a['error']['message']}")
    return a["hawk"]


def turn(hawkd, history, message, start):
    """(ms of a turn that drops, ms of one that reads again)"""
    end = start + OBSERVATION
    ours = ask(hawkd, history + message, hawk={"drop": [[start, end, HISTORY]]})
    peer = ask(hawkd, history[:start] + history[end:] + message)
    if ours["tokens_dropped"] != OBSERVATION or ours["tokens_recomputed"] > MESSAGE + BLOCK:
        raise RuntimeError(f"the turn did more than it was to do: {ours}")
    if peer["tokens_recomputed"] < HISTORY - end:
        raise RuntimeError(f"the peer found what it was to read again: {peer}")
    return ours["ttft_ms"], peer["ttft_ms"]


def measure(build, runs):
    """Pairs of times, milliseconds. Each run cuts elsewhere: nobody has seen that turn."""
    model = build / "bench" / "random.gguf"
    subprocess.run([build / "bench" / "random_model", model, str(CONTEXT)], check=True)
    rng = random.Random(1)
    history = [rng.choice(WORDS) for _ in range(HISTORY)]
    with Hawkd(str(build / "bin" / "hawkd"), str(model), "embed:?dram=512M", "--alias",
               "random") as hawkd:
        ask(hawkd, history)
        for run in range(runs):
            message = [rng.choice(WORDS) for _ in range(MESSAGE)]
            yield turn(hawkd, history, message, START + BLOCK * run)
