#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sparse attention through HTTP: with room for all blocks it is dense attention token for
token, with room for few it reads few; what is read follows from the request alone; and the
KV that it wrote is never served to a dense request, nor the other way round.

The tests use the device named by HAWK_URL, otherwise the embedded backend. HAWK_SEED is the
seed of the drops."""

import concurrent.futures
import json
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

import serve  # noqa: E402
import tap  # noqa: E402

t = tap.Tap()
SEED = int(os.environ.get("HAWK_SEED", "1"))
BLOCK = 16
TEXT = "The Linux kernel is a program that manages the hardware of a computer. "
ALL = {"blocks": 1000, "sinks": 0, "window": BLOCK}
FEW = {"blocks": 1, "sinks": 4, "window": BLOCK}
FEW_FROM = (1 + 1 + 1) * BLOCK + BLOCK - 1     # first token that may choose: sinks, r, one more
OTHER = {"blocks": 2, "sinks": 20, "window": 48}
GUESS = {"tokens": 8, "ngram": 2, "gate": False}


def kv_url(folder, name, dram):
    return os.environ.get("HAWK_URL",
                          f"embed:?dram={dram}&flash={folder}/kv.{name}&flash_size=256M")


def ask(server, ids, salt, hawk=None, **body):
    """(token ids, figures); sampled, so that small differences show, too"""
    body = {"max_tokens": 60, "temperature": 1, "seed": SEED, **body}
    status, a = serve.completion(server, prompt=ids, cache_salt=salt, hawk=hawk or {},
                                 return_token_ids=True, **body)
    assert status == 200, a
    return a["choices"][0]["token_ids"], a["hawk"]


def prompt_of(server, seed):
    """Some 430 tokens: text that the model writes, as it hardly repeats itself."""
    status, a = serve.completion(server, prompt=TEXT * 2, max_tokens=400, temperature=1, seed=seed,
                                 return_token_ids=True, cache_salt="prompts")
    assert status == 200, a
    return a["choices"][0]["prompt_token_ids"] + a["choices"][0]["token_ids"]


def test_reads(server, ids):
    dense, figures = ask(server, ids, "dense")
    t.ok("sparse" not in figures, "a dense answer has no figures of sparse attention")
    full, figures = ask(server, ids, "all", {"sparse": ALL})
    t.equal(full, dense, "with room for all blocks: the dense tokens")
    t.equal(figures["sparse"]["blocks_read"], figures["sparse"]["blocks_visible"],
            "and all blocks are read")
    before = server.metrics()
    few, figures = ask(server, ids, "few", {"sparse": FEW})
    after = server.metrics()
    figures = figures["sparse"]
    t.ok(few != dense, "with room for few: other tokens")
    t.ok(figures["blocks_read"] < figures["blocks_visible"] / 2,
         f"{figures['blocks_read']:.1f} of {figures['blocks_visible']:.1f} blocks are read")
    steps, visible, read = (after[k] - before[k] for k in (
        "hawkd_sparse_steps_total", 'hawkd_sparse_blocks_total{kind="visible"}',
        'hawkd_sparse_blocks_total{kind="read"}'))
    seen = sum((len(ids) + i - 1) // BLOCK + 1 for i in range(60))
    t.equal((steps, visible), (60, seen), "the metrics count each step and what it sees")
    t.ok(abs(read / steps - figures["blocks_read"]) < 0.01, "and what it reads")
    return dense, few


def test_histories(server, ids, dense, few):
    """The same tokens, dense and sparse in turns, in one tenant."""
    other = ask(server, ids, "other", {"sparse": OTHER})[0]
    t.ok(other not in (dense, few), "other parameters give other tokens")
    want = {"dense": (None, dense), "few": ({"sparse": FEW}, few),
            "other": ({"sparse": OTHER}, other)}
    for order in ("dense few other dense", "few dense few other", "other few dense other"):
        got = [ask(server, ids, order, want[k][0])[0] for k in order.split()]
        t.equal(got, [want[k][1] for k in order.split()], f"one after the other: {order}")
    ask(server, ids, "share", {"sparse": FEW})
    figures = ask(server, ids, "share")[1]
    t.equal(figures["tokens_dram"] + figures["tokens_flash"], FEW_FROM // BLOCK * BLOCK,
            "blocks before the first token that may choose are shared")
    figures = ask(server, ids + few, "share", {"sparse": FEW})[1]
    t.equal(figures["tokens_dram"] + figures["tokens_flash"],
            (len(ids) + len(few) - 1) // BLOCK * BLOCK, "the next sparse turn finds all")


def test_histories_after_drop(server, ids):
    """Drops cut blocks: there is more to choose from, and earlier, than of whole blocks."""
    drop = {"drop": [[i, i + 1, i + 2] for i in range(6, 120, 4)], "repos": False}
    wide = {**drop, "sparse": {"blocks": 4, "sinks": 0, "window": BLOCK}}
    short = ids[:124]
    for name, one, two in (("dense behind sparse", wide, drop), ("sparse behind dense", drop, wide)):
        want = ask(server, short, f"alone {name}", two)[0]
        ask(server, short, name, one)
        t.equal(ask(server, short, name, two)[0], want, f"the same drops, {name}")


def test_next_turn(server, ids, dense, few):
    """A turn on cached blocks has the tokens of one that computes all of them."""
    for name, out, hawk in (("dense", dense, None), ("sparse", few, {"sparse": FEW})):
        turn = ids + out + ids[:20]
        fresh = ask(server, turn, f"fresh {name}", hawk)[0]
        ask(server, ids, f"turns {name}", hawk)
        cached, figures = ask(server, turn, f"turns {name}", hawk)
        t.ok(figures["tokens_recomputed"] < 60, f"{name}: a second turn finds its blocks")
        t.equal(cached, fresh, f"{name}: and gets the tokens of a fresh one")


def cut(rng, ids):
    """Drops of a few tokens each, so that segments end within blocks."""
    drop, at = [], 0
    while True:
        start = at + rng.randrange(5, 40)
        end = start + rng.randrange(1, 30)
        at = end + rng.randrange(0, 20)
        if at >= len(ids):
            return drop
        drop.append([start, end, at])
        at = end


def cases(ids):
    rng = random.Random(SEED)
    yield "plain", {"sparse": FEW}
    yield "narrow", {"sparse": {"blocks": 2, "sinks": 0, "window": BLOCK}}
    for i in range(6):
        yield f"drops {i}", {"drop": cut(rng, ids), "repos": i % 2 == 0,
                             "sparse": {"blocks": 1 + i % 3, "sinks": 7 * i,
                                        "window": BLOCK + i * 3}}


def ask_all(server, ids, salt, more=None):
    """{case: tokens}, all cases at once"""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(pool.map(lambda c: (c[0], ask(
            server, ids, salt + c[0], {**c[1], **(more or {})})[0]), cases(ids)))


def test_invariance(folder, server, ids):
    """Steps cut otherwise, guesses, others beside: the tokens are the same."""
    want = {name: ask(server, ids, name, hawk)[0] for name, hawk in cases(ids)}
    t.equal(len({tuple(w) for w in want.values()}), len(want),
            f"{len(ids)} tokens: all cases have an answer of their own (seed {SEED})")
    t.equal(ask_all(server, ids, ""), want, "from the cache: the same tokens")
    got = ask_all(server, ids, "guess ", {"speculate": GUESS})
    t.equal(got, want, "with guesses: the same tokens")
    t.ok(server.metrics()['hawkd_spec_tokens_total{kind="accepted"}'] > 0, "some were right")
    for chunk in ("1", "5", "64"):
        with serve.start(kv_url(folder, f"chunk{chunk}", "16M"), "--chunk", chunk,
                         "--no-cache") as other:
            got = ask_all(other, ids, "")
        t.equal(got, want, f"all at once, prompts in chunks of {chunk}: the same tokens")


def test_flash(folder):
    """DRAM holds one session and some: the next turn of each comes from flash."""
    with serve.start(kv_url(folder, "flash", "4M")) as server:
        ids = [prompt_of(server, SEED + i) for i in range(8)]
        hawk = [None, {"sparse": FEW}]
        want = [ask(server, p, f"alone {i % 2}", hawk[i % 2])[0] for i, p in enumerate(ids)]
        before = server.metrics()
        for i, p in enumerate(ids):
            ask(server, p, "both", hawk[1 - i % 2], max_tokens=1)
        for i, p in enumerate(ids):
            ask(server, p, "both", hawk[i % 2], max_tokens=1)
        got = [ask(server, p, "both", hawk[i % 2])[0] for i, p in enumerate(ids)]
        after = server.metrics()
    t.equal(got, want, "dense and sparse sessions of the same tokens, from flash")
    key = 'hawkd_prompt_tokens_total{source="flash"}'
    if "HAWK_URL" not in os.environ:
        t.ok(after[key] - before[key] > 4 * 400,
             f"{after[key] - before[key]:.0f} tokens came from flash")


def test_chat(server):
    body = {"messages": [{"role": "user", "content": TEXT * 12}], "model": serve.NAME,
            "temperature": 0, "max_tokens": 20, "hawk": {"sparse": FEW}}
    status, a = server.call("POST", "/v1/chat/completions", body)
    t.ok(status == 200 and a["hawk"]["sparse"]["blocks_read"] > 0, "a chat may be sparse")
    _, stream = server.call("POST", "/v1/chat/completions", {
        **body, "stream": True, "stream_options": {"include_usage": True}})
    last = json.loads(stream.strip().split("\n\n")[-2].removeprefix("data: "))
    t.equal(last["hawk"]["sparse"], a["hawk"]["sparse"], "a stream ends with the same figures")


def test_errors(server):
    bad = ({}, {"sinks": 4}, {"blocks": -1}, {"blocks": 1.5}, {"blocks": 1 << 40},
           {"blocks": 1, "sinks": -1}, {"blocks": 1, "window": BLOCK - 1},
           {"blocks": 1, "window": "all"}, {"blocks": 1, "block": 2}, 4, [], True)
    wrong = [s for s in bad
             if serve.completion(server, prompt="x", hawk={"sparse": s})[0] != 400]
    t.equal(wrong, [], "wrong values are refused")
    error = serve.completion(server, prompt="x", hawk={"sparse": {"blocks": 1, "window": 1}})[1]
    t.ok("'window' is 1, must be between 16 and" in error["error"]["message"],
         "the error names the range")


def test_option(folder):
    with serve.start(kv_url(folder, "off", "16M"), "--no-sparse") as server:
        status, a = serve.completion(server, prompt="x", hawk={"sparse": FEW})
        t.ok(status == 400 and "--no-sparse" in a["error"]["message"],
             "--no-sparse: refused, and the error tells why")
        t.equal(serve.completion(server, prompt="x", max_tokens=2)[0], 200, "dense ones are not")


def main():
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        with serve.start(kv_url(folder, "rest", "64M")) as server:
            ids = prompt_of(server, SEED)
            dense, few = test_reads(server, ids)
            test_histories(server, ids, dense, few)
            test_histories_after_drop(server, ids)
            test_next_turn(server, ids, dense, few)
            test_invariance(folder, server, ids)
            test_chat(server)
            test_errors(server)
            t.equal(server.metrics()["hawkd_kv_pinned_blocks"], 0, "no block stays pinned")
            t.equal(server.stop(), 0, "hawkd stops with status 0")
        test_flash(folder)
        test_option(folder)
    t.done()


if __name__ == "__main__":
    main()
