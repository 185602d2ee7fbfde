#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Speculative decoding through HTTP: what is generated is the same token for token, with
guesses and without, also from the cache, from flash and beside others.

The tests use the device named by HAWK_URL, otherwise the embedded backend. HAWK_SPEC_TOKENS
is how many greedy tokens of each model are compared (10000), HAWK_SEED the seed."""

import concurrent.futures
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
TOKENS = int(os.environ.get("HAWK_SPEC_TOKENS", "10000"))
EACH = 200      # tokens of an answer
PROMPT = "The Linux kernel is a program that manages the hardware of a computer. "
ALWAYS = {"tokens": 8, "ngram": 2, "gate": False}


def kv_url(folder, name, dram):
    return os.environ.get("HAWK_URL",
                          f"embed:?dram={dram}&flash={folder}/kv.{name}&flash_size=256M")


def ask(server, spec, **body):
    """(token ids, finish_reason, answer)"""
    body.setdefault("prompt", PROMPT)
    body.setdefault("max_tokens", EACH)
    if spec is not None:
        body["hawk"] = {"speculate": spec}
    status, a = serve.completion(server, return_token_ids=True, **body)
    assert status == 200, a
    choice = a["choices"][0]
    return choice["token_ids"], choice["finish_reason"], a


def prompts_of(server, rng, n):
    """Prompts of some 120 tokens that the model's own tokenizer accepts: its own text."""
    ids = []
    for i in range(n):
        start, _, a = ask(server, None, prompt=f"{PROMPT}Part {rng.randrange(10000)}. ",
                          max_tokens=90, temperature=1.0, seed=i)
        ids.append(a["choices"][0]["prompt_token_ids"] + start)
    return ids


def test_greedy(folder, model):
    """Without, and with guesses from the cache; DRAM is small, so much of it comes from flash."""
    name = pathlib.Path(model).stem
    with serve.start(kv_url(folder, name, "2M"), model=model) as server:
        prompts = prompts_of(server, random.Random(SEED), max(TOKENS // EACH, 1))
        plain = [ask(server, None, prompt=p)[:2] for p in prompts]
        before = server.metrics()
        extra = [({"tokens": 1 + i % 16, "ngram": 1 + i % 4, "gate": i % 3 == 0}, p)
                 for i, p in enumerate(prompts)]
        spec = [ask(server, *e[:1], prompt=e[1])[:2] for e in extra]
        after = server.metrics()
    wrong = [i for i, (a, b) in enumerate(zip(plain, spec)) if a != b]
    n = sum(len(ids) for ids, _ in plain)
    t.equal(wrong, [], f"{name}: {n} greedy tokens are the same with guesses")
    grown = {k: after[k] - before.get(k, 0) for k in after}
    drafted = grown['hawkd_spec_tokens_total{kind="drafted"}']
    accepted = grown['hawkd_spec_tokens_total{kind="accepted"}']
    flash = grown['hawkd_prompt_tokens_total{source="flash"}']
    t.note(f"{name}: seed {SEED}, {drafted:.0f} tokens guessed, {accepted:.0f} right, "
           f"{flash:.0f} prompt tokens from flash")
    t.ok(drafted > accepted > 0, f"{name}: some guesses were right, some were not")
    if "HAWK_URL" not in os.environ:
        t.ok(flash > 0, f"{name}: some prompts came from flash")


def test_sampled(server):
    for seed in range(8):
        body = {"temperature": 0.7 + seed / 10, "top_p": 0.95, "top_k": 40 * (seed % 2),
                "seed": seed}
        t.equal(ask(server, ALWAYS, **body)[:2], ask(server, None, **body)[:2],
                f"sampled with seed {seed}: the same tokens")


def test_limits(server):
    free = ask(server, None)[0]
    t.equal([ask(server, {**ALWAYS, "tokens": 16}, max_tokens=n)[:2] for n in range(1, 40)],
            [(free[:n], "length") for n in range(1, 40)],
            "max_tokens ends an answer in the middle of what was guessed")
    text = ask(server, None)[2]["choices"][0]["text"]
    for at in range(20, len(text) - 12, len(text) // 12):
        stop = text[at:at + 9]
        a, b = (ask(server, s, stop=[stop])[2]["choices"][0] for s in (None, ALWAYS))
        if a != b:
            t.equal(b, a, f"stop string {stop!r}")
            return
    t.ok(True, "a stop string does, at the same place")


def test_end_of_text(server):
    """Prompts that the model ends by itself; guesses may hold the end, too."""
    ends = 0
    for seed in range(30):
        body = {"messages": [{"role": "user", "content": f"{seed}?"}], "temperature": 1.0,
                "seed": seed, "max_tokens": 60, "model": serve.NAME, "return_token_ids": True}
        _, a = server.call("POST", "/v1/chat/completions", body)
        body["hawk"] = {"speculate": {**ALWAYS, "ngram": 1}}
        _, b = server.call("POST", "/v1/chat/completions", body)
        a, b = a["choices"][0], b["choices"][0]
        ends += a["finish_reason"] == "stop"
        if a != b:
            t.equal(b, a, f"chat with seed {seed}")
            return
    t.ok(ends > 0, f"{ends} of 30 chats end by themselves, with the same tokens")


def test_beside_others(server):
    """Rounds of many sequences in one step, some with guesses and some without."""
    prompts = [f"{PROMPT}Chapter {i}. {PROMPT}" for i in range(12)]
    alone = [ask(server, None, prompt=p)[:2] for p in prompts]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        together = list(pool.map(
            lambda i: ask(server, (ALWAYS, None, {"tokens": 16})[i % 3], prompt=prompts[i])[:2],
            range(12)))
    t.equal(together, alone, "twelve clients at once get the tokens that each gets alone")


def test_after_drop(server):
    """Guesses behind dropped tokens, with the gap closed and open."""
    ids = ask(server, None, prompt=PROMPT * 12, max_tokens=1)[2]["choices"][0]["prompt_token_ids"]
    for repos in (True, False):
        hawk = {"drop": [[20, 60]], "at": 100, "repos": repos}
        body = {"prompt": ids, "max_tokens": 80, "return_token_ids": True}
        _, a = serve.completion(server, **body, hawk=hawk)
        _, b = serve.completion(server, **body, hawk={**hawk, "speculate": ALWAYS})
        t.equal(b["choices"][0]["token_ids"], a["choices"][0]["token_ids"],
                f"behind a drop, repos {repos}: the same tokens")


def test_cache_is_the_same(server):
    """What was generated with guesses is found by the next turn as what was without."""
    base = "Turn. " + PROMPT
    for i, spec in enumerate((None, ALWAYS)):
        first = ask(server, spec, prompt=f"{i} {base}")[2]["choices"][0]
        ids = first["prompt_token_ids"] + first["token_ids"]
        hawk = ask(server, None, prompt=ids, max_tokens=1)[2]["hawk"]
        t.equal(hawk["tokens_dram"], (len(ids) - 1) // 16 * 16,
                f"{'with' if spec else 'without'} guesses: all full blocks are found")


def test_errors(server):
    bad = ({"tokens": 17}, {"tokens": -1}, {"tokens": 1.5}, {"ngram": 0}, {"ngram": 9},
           {"gate": 1}, {"token": 4}, 4, [])
    wrong = [s for s in bad
             if serve.completion(server, prompt="x", hawk={"speculate": s})[0] != 400]
    t.equal(wrong, [], "wrong values are refused")
    t.equal(ask(server, {"tokens": 0}, max_tokens=2)[1], "length", "0 tokens: no guesses")


def test_option(folder):
    """--speculate is for requests that do not say; the gate decides and changes nothing."""
    with serve.start(kv_url(folder, "option", "16M"), "--speculate", "8") as server:
        plain = ask(server, {"tokens": 0})[:2]
        t.equal(server.metrics()["hawkd_spec_rounds_total"], 0, "a request may decline")
        t.equal(ask(server, None)[:2], plain, "with --speculate: the same tokens")
        t.ok(server.metrics()["hawkd_spec_rounds_total"] > 0, "and some were guessed")


def main():
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        test_greedy(folder, serve.MODEL)
        if serve.STORIES.exists():
            test_greedy(folder, str(serve.STORIES))
        with serve.start(kv_url(folder, "rest", "16M")) as server:
            for test in (test_sampled, test_limits, test_end_of_text, test_beside_others,
                         test_after_drop, test_cache_is_the_same, test_errors):
                test(server)
            t.equal(server.stop(), 0, "hawkd stops with status 0")
        test_option(folder)
    t.done()


if __name__ == "__main__":
    main()
