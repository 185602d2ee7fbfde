#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sparse attention through HTTP: with room for all blocks it is dense attention token for
token, with room for few it reads few; what is read follows from the request alone; and the
KV that it wrote is never served to a dense request, nor the other way round.

Arguments are names of tests to run (reads, flash ...), all without. The tests use the device
named by HAWK_URL, otherwise the embedded backend, with which other devices are compared.
HAWK_SMALL makes prompts short and cases few, HAWK_SEED is the seed of prompts and drops."""

import concurrent.futures
import functools
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
FLASH = 'hawkd_prompt_tokens_total{source="flash"}'
ACCEPTED = 'hawkd_spec_tokens_total{kind="accepted"}'
TRIES = 16                          # seeds until a model writes what a test is about
PROMPT = serve.size(430, 240)       # tokens
ANSWER = serve.size(60, 16)
TEXT = "The Linux kernel is a program that manages the hardware of a computer. "
WINDOW = serve.size(BLOCK, 2 * BLOCK - 1)       # a step has WINDOW - BLOCK + 1 rows at most
ALL = {"blocks": 1000, "sinks": 0, "window": WINDOW}
FEW = {"blocks": 1, "sinks": 4, "window": WINDOW}
FEW_FROM = (1 + 1 + 1) * BLOCK + WINDOW - 1     # first token that may choose: sinks, r, one more
OTHER = {"blocks": 2, "sinks": 20, "window": 48}
LONG = serve.size({}, {"max_tokens": 40, "temperature": 0})    # few sampled ones are guessed
GUESS = {"tokens": 8, "ngram": 1, "gate": False}


def kv_url(folder, name, dram):
    return os.environ.get("HAWK_URL",
                          f"embed:?dram={dram}&flash={folder}/kv.{name}&flash_size=256M")


def start(kv, *options):
    """Of FP32 a DRAM of 2 MiB holds not even three prompts."""
    return serve.start(kv, *options, *serve.size((), ("--kv-dtype", "f32")), sparse=True)


def ask(server, ids, salt, hawk=None, **body):
    """(token ids, figures and why it ended); sampled, so that small differences show, too"""
    body = {"max_tokens": ANSWER, "temperature": 1, "seed": SEED, **body}
    status, a = serve.completion(server, prompt=ids, cache_salt=salt, hawk=hawk or {},
                                 return_token_ids=True, **body)
    assert status == 200, a
    choice = a["choices"][0]
    return choice["token_ids"], {**a["hawk"], "finish": choice["finish_reason"]}


def in_cache(tokens, out, figures):
    """Tokens in full blocks behind a prompt and its answer: nobody computes the K/V of a last
    token by length, but that of one before the end of the text."""
    return (tokens + len(out) - (figures["finish"] == "length")) // BLOCK * BLOCK


def text(rng):
    """English of some 600 tokens, the same on every CPU; what a model writes is not."""
    things = ("the kernel", "a driver", "the scheduler", "a page", "memory", "the device",
              "a process", "the file system", "an interrupt", "the cache", "a block", "user space")
    does = ("reads", "writes", "waits for", "maps", "frees", "finds", "moves", "calls")
    return " ".join(f"{rng.choice(things)} {rng.choice(does)} {rng.choice(things)}.".capitalize()
                    for _ in range(80))


def prompt_of(server, seed, salt):
    """Its first PROMPT tokens; all of it is in the cache then."""
    status, a = serve.completion(server, prompt=text(random.Random(seed))[:PROMPT * 6],
                                 cache_salt=salt, max_tokens=1, return_token_ids=True)
    ids = a["choices"][0]["prompt_token_ids"] if status == 200 else []
    assert len(ids) >= PROMPT, (len(ids), a)
    return ids[:PROMPT]


class Tests:
    """The tests that share a server and what it answered to @ids, dense and sparse."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.ids = prompt_of(server, SEED, "dense")

    def differ(self, kinds):
        """(seed, {kind: (tokens, figures)}): the first seed with which all kinds of requests
        have answers of their own, so that one served with the KV of another would show."""
        for seed in range(SEED, SEED + TRIES):
            got = {k: self.ask(k, hawk, seed=seed) for k, hawk in kinds.items()}
            if len({tuple(ids) for ids, _ in got.values()}) == len(got):
                break
        return seed, got

    @functools.cached_property
    def two(self):
        return self.differ({"dense": None, "few": {"sparse": FEW}})

    def ask(self, salt, hawk=None, ids=None, **body):
        return ask(self.server, ids or self.ids, salt, hawk, **body)


def test_reads(s):
    seed, answers = s.two
    dense, figures = answers["dense"]
    t.ok("sparse" not in figures, "a dense answer has no figures of sparse attention")
    full, figures = s.ask("all", {"sparse": ALL}, seed=seed)
    t.equal(full, dense, "with room for all blocks: the dense tokens")
    t.equal(figures["sparse"]["blocks_read"], figures["sparse"]["blocks_visible"],
            "and all blocks are read")
    before = s.server.metrics()
    few, figures = s.ask("few", {"sparse": FEW}, seed=seed)
    after = s.server.metrics()
    ended, figures = figures["finish"] != "length", figures["sparse"]
    t.ok(few != dense, f"with room for few: other tokens (seed {seed})")
    t.ok(figures["blocks_read"] < figures["blocks_visible"] * serve.size(0.5, 0.7),
         f"{figures['blocks_read']:.1f} of {figures['blocks_visible']:.1f} blocks are read")
    steps, visible, read = (after[k] - before[k] for k in (
        "hawkd_sparse_steps_total", 'hawkd_sparse_blocks_total{kind="visible"}',
        'hawkd_sparse_blocks_total{kind="read"}'))
    t.equal(steps, len(few) + ended, "the metrics count each step")
    seen = sum((PROMPT + i - 1) // BLOCK + 1 for i in range(int(steps)))
    t.equal(visible, seen, "and what it sees")
    t.ok(abs(read / steps - figures["blocks_read"]) < 0.01, "and what it reads")


def test_histories(s):
    """The same tokens, dense and sparse in turns, in one tenant."""
    kinds = {"dense": None, "few": {"sparse": FEW}, "other": {"sparse": OTHER}}
    seed, want = s.differ(kinds)
    t.equal(len({tuple(ids) for ids, _ in want.values()}), len(kinds),
            f"dense and with different parameters: all tokens differ (seed {seed})")
    for order in ("dense few other dense", "few dense few other", "other few dense other"):
        got = [s.ask(order, kinds[k], seed=seed)[0] for k in order.split()]
        t.equal(got, [want[k][0] for k in order.split()], f"one after the other: {order}")
    s.ask("share", {"sparse": FEW})
    figures = s.ask("share")[1]
    t.equal(figures["tokens_dram"] + figures["tokens_flash"], FEW_FROM // BLOCK * BLOCK,
            "blocks before the first token that may choose are shared")


def test_histories_after_drop(s):
    """Drops cut blocks: there is more to choose from, and earlier, than of whole blocks."""
    drop = {"drop": [[i, i + 1, i + 2] for i in range(6, 120, 4)], "repos": False}
    wide = {**drop, "sparse": {"blocks": 4, "sinks": 0, "window": BLOCK}}
    short = s.ids[:124]
    for name, one, two in (("dense behind sparse", wide, drop),
                           ("sparse behind dense", drop, wide)):
        want = s.ask(f"alone {name}", two, short)[0]
        s.ask(name, one, short)
        t.equal(s.ask(name, two, short)[0], want, f"the same drops, {name}")


def test_next_turn(s):
    """A turn on cached blocks has the tokens of one that computes all of them."""
    before = s.server.metrics()[FLASH]
    for name, hawk in (("few", {"sparse": FEW}), ("dense", None))[:serve.size(2, 1)]:
        out, was = s.two[1][name]
        turn = s.ids + out + s.ids[:20]
        fresh = s.ask(f"fresh {name}", hawk, turn)[0]
        cached, figures = s.ask(name, hawk, turn)
        t.equal(figures["tokens_dram"] + figures["tokens_flash"], in_cache(PROMPT, out, was),
                f"{name}: a second turn finds its blocks")
        t.equal(cached, fresh, f"{name}: and gets the tokens of a fresh one")
    if serve.SMALL:                     # DRAM is
        came = s.server.metrics()[FLASH] - before
        t.ok(came > PROMPT // 2, f"{came:.0f} tokens came from flash")


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
    if not serve.SMALL:
        yield "plain", {"sparse": FEW}
        yield "narrow", {"sparse": {"blocks": 2, "sinks": 0, "window": BLOCK}}
    for i in serve.size(range(6), (5,)):        # a window of one block has no room for guesses
        yield f"drops {i}", {"drop": cut(rng, ids), "repos": i % 2 == 0,
                             "sparse": {"blocks": 1 + i % 3, "sinks": 7 * i,
                                        "window": BLOCK + i * 3}}


def ask_all(server, ids, salt, seed, more=None):
    """{case: tokens}, all cases at once"""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(pool.map(lambda c: (c[0], ask(
            server, ids, salt + c[0], {**c[1], **(more or {})}, **{"seed": seed, **LONG})[0]),
            cases(ids)))


def test_invariance(s):
    """Steps cut otherwise, guesses, others beside, another device: the tokens are the same."""
    for seed in range(SEED, SEED + TRIES):
        want = {name: s.ask(name, hawk, **{"seed": seed, **LONG})[0] for name, hawk in cases(s.ids)}
        if len({tuple(w) for w in want.values()}) == len(want):
            break
    t.equal(len({tuple(w) for w in want.values()}), len(want),
            f"{PROMPT} tokens: all cases have an answer of their own (seed {seed})")
    t.equal(ask_all(s.server, s.ids, "", seed), want, "from the cache: the same tokens")
    got = ask_all(s.server, s.ids, "guess ", seed, {"speculate": GUESS})
    t.equal(got, want, "with guesses: the same tokens")
    for more in range(1, TRIES):        # a text may be past guessing
        if s.server.metrics()[ACCEPTED]:
            break
        again = s.ids[more:] + s.ids[:60]
        a, b = (s.ask(f"{kind} {more}", hawk, again, max_tokens=40, temperature=0)[0]
                for kind, hawk in (("guess", {"sparse": FEW, "speculate": GUESS}),
                                   ("plain", {"sparse": FEW})))
        t.equal(a, b, f"with guesses, prompt {more}: the same tokens")
    t.ok(s.server.metrics()[ACCEPTED] > 0, "some were right")
    for chunk in serve.size(("1", "5", "64"), ("64",)):
        with start("embed:?dram=16M", "--chunk", chunk, "--no-cache") as other:
            got = ask_all(other, s.ids, "", seed)
        t.equal(got, want, "embedded backend, all at once, prompts in chunks of "
                           f"{chunk}: the same tokens")


def test_flash(folder):
    """DRAM holds one session and some: the next turn of each comes from flash."""
    n = serve.size(8, 2)
    with start(kv_url(folder, "flash", serve.size("4M", "2M"))) as server:
        ids = [prompt_of(server, SEED + i, "prompts") for i in range(n)]
        hawk = [None, {"sparse": FEW}]
        want = [ask(server, p, f"alone {i % 2}", hawk[i % 2])[0] for i, p in enumerate(ids)]
        for i, p in enumerate(ids):
            ask(server, p, "both", hawk[1 - i % 2], max_tokens=1)
        for i, p in enumerate(ids):
            ask(server, p, "both", hawk[i % 2], max_tokens=1)
        before = server.metrics()[FLASH]
        got = [ask(server, p, "both", hawk[i % 2])[0] for i, p in enumerate(ids)]
        came = server.metrics()[FLASH] - before
    t.equal(got, want, "dense and sparse sessions of the same tokens, from flash")
    t.ok(came > n // 2 * (PROMPT - BLOCK), f"{came:.0f} tokens came from flash")


def test_chat(s):
    body = {"messages": [{"role": "user", "content": TEXT * 12}], "model": serve.NAME,
            "temperature": 0, "max_tokens": 20, "hawk": {"sparse": FEW}}
    status, a = s.server.call("POST", "/v1/chat/completions", body)
    t.ok(status == 200 and a["hawk"]["sparse"]["blocks_read"] > 0, "a chat may be sparse")
    _, stream = s.server.call("POST", "/v1/chat/completions", {
        **body, "stream": True, "stream_options": {"include_usage": True}})
    last = json.loads(stream.strip().split("\n\n")[-2].removeprefix("data: "))
    t.equal(last["hawk"]["sparse"], a["hawk"]["sparse"], "a stream ends with the same figures")


def test_errors(s):
    bad = ({}, {"sinks": 4}, {"blocks": -1}, {"blocks": 1.5}, {"blocks": 1 << 40},
           {"blocks": 1, "sinks": -1}, {"blocks": 1, "window": BLOCK - 1},
           {"blocks": 1, "window": "all"}, {"blocks": 1, "block": 2}, 4, [], True)
    wrong = [v for v in bad
             if serve.completion(s.server, prompt="x", hawk={"sparse": v})[0] != 400]
    t.equal(wrong, [], "wrong values are refused")
    error = serve.completion(s.server, prompt="x", hawk={"sparse": {"blocks": 1, "window": 1}})[1]
    t.ok("'window' is 1, must be between 16 and" in error["error"]["message"],
         "the error names the range")


def test_option(folder):
    with serve.start(kv_url(folder, "off", "16M"), "--no-sparse") as server:
        status, a = serve.completion(server, prompt="x", hawk={"sparse": FEW})
        t.ok(status == 400 and "--no-sparse" in a["error"]["message"],
             "--no-sparse: refused, and the error tells why")
        t.equal(serve.completion(server, prompt="x", max_tokens=2)[0], 200, "dense ones are not")


WITH_SERVER = (test_reads, test_histories, test_histories_after_drop, test_invariance,
               test_next_turn, test_chat, test_errors)
ALONE = (test_flash, test_option)


def main():
    with_server, alone = tap.chosen(WITH_SERVER, ALONE)
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        if with_server:
            with start(kv_url(folder, "rest", serve.size("64M", "2M"))) as server:
                shared = Tests(folder, server)
                for test in with_server:
                    t.run(test, shared)
                t.equal(server.metrics()["hawkd_kv_pinned_blocks"], 0, "no block stays pinned")
                t.equal(server.stop(), 0, "hawkd stops with status 0")
        for test in alone:
            t.run(test, folder)
    t.done()


if __name__ == "__main__":
    main()
