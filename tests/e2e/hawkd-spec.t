#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Speculative decoding through HTTP: what is generated is the same token for token, with
guesses and without, also from the cache, from flash and beside others.

Arguments are names of tests to run (greedy, sampled ...), all without. The tests use the
device named by HAWK_URL, otherwise the embedded backend. HAWK_SPEC_TOKENS is how many greedy
tokens of each model are compared (10000), HAWK_SEED the seed; HAWK_SMALL makes answers short
and cases few."""

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
EACH = serve.size(200, 40)          # tokens of an answer
TOKENS = int(os.environ.get("HAWK_SPEC_TOKENS", serve.size(10000, 2 * EACH)))
TRIES = 16                          # prompts until a model writes what a test is about
CLIENTS = serve.size(12, 3)
PROMPT = "The Linux kernel is a program that manages the hardware of a computer. "
HAWK_MMAP_DRAFT = 4     # area of mmap offsets, of 2^40 bytes
ALWAYS = {"tokens": 8, "ngram": 2, "gate": False}
ROUNDS = "hawkd_spec_rounds_total"
DRAFTED = 'hawkd_spec_tokens_total{kind="drafted"}'
ACCEPTED = 'hawkd_spec_tokens_total{kind="accepted"}'
FLASH = 'hawkd_prompt_tokens_total{source="flash"}'
DONE = 'hawkd_requests_total{outcome="ok"}'


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


def grown(after, before):
    """What the counters of speculation and of flash have grown by."""
    return [after[k] - before.get(k, 0) for k in (DRAFTED, ACCEPTED, FLASH)]


def compare(server, prompts):
    """(tokens compared, prompts whose tokens differ, what counters have grown by)"""
    plain = [ask(server, None, prompt=p)[:2] for p in prompts]
    before = server.metrics()
    spec = [ask(server, {"tokens": 1 + i % 16, "ngram": 1 + i % 4, "gate": i % 3 == 0},
                prompt=p)[:2] for i, p in enumerate(prompts)]
    wrong = [p for a, b, p in zip(plain, spec, prompts) if a != b]
    return sum(len(ids) for ids, _ in plain), wrong, grown(server.metrics(), before)


def greedy(folder, model):
    """Without, and with guesses from the cache; DRAM is small, so much of it comes from flash.
    Texts may end early or be past guessing: then there are more of them."""
    name, rng = pathlib.Path(model).stem, random.Random(SEED)
    n, asked, wrong, counts = 0, 0, [], [0, 0, 0]
    with serve.start(kv_url(folder, name, "2M"), model=model) as server:
        for _ in range(TRIES):
            length = max(n // asked, EACH // 10) if asked else EACH
            more = max(-((n - TOKENS) // length), 1)
            some = compare(server, prompts_of(server, rng, more))
            n, asked, wrong = n + some[0], asked + more, wrong + some[1]
            counts = [a + b for a, b in zip(counts, some[2])]
            drafted, accepted, flash = counts
            if n >= TOKENS and drafted > accepted > 0:
                break
    t.equal(wrong, [], f"{name}: {n} greedy tokens are the same with guesses")
    t.ok(n >= TOKENS, f"{name}: these are {TOKENS} or more")
    t.note(f"{name}: seed {SEED}, {drafted:.0f} tokens guessed, {accepted:.0f} right, "
           f"{flash:.0f} prompt tokens from flash")
    t.ok(drafted > accepted > 0, f"{name}: some guesses were right, some were not")
    if n > 4000 and "HAWK_URL" not in os.environ:
        t.ok(flash > 0, f"{name}: some prompts came from flash")


def test_greedy(folder):
    greedy(folder, serve.MODEL)


def test_stories(folder):
    if not serve.STORIES.exists():
        raise tap.Skip(f"no {serve.STORIES.name} here")
    greedy(folder, str(serve.STORIES))


def ring_head(pid):
    """Tokens accepted in the draft ring that a process has mapped, as the device reads them:
    the first word of the ring (struct hawk_draft in uapi/hawk.h); None: it has none."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, _, offset, _, _, path = (line.split() + [""])[:6]
        if path == "/dev/hawk" and int(offset, 16) >> 40 == HAWK_MMAP_DRAFT:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
                mem.seek(int(span.split("-")[0], 16))
                return int.from_bytes(mem.read(8), sys.byteorder)
    return None


def test_ring(folder):
    """While a sequence is guessed for, a ring of the device counts what is accepted."""
    def kept(metrics):
        """One token a round is no guess. Metrics count a round before the ring does."""
        return metrics[ROUNDS] + metrics[ACCEPTED] - before[ROUNDS] - before[ACCEPTED]

    def far(metrics):
        return kept(metrics) > 40 and metrics[ACCEPTED] > before[ACCEPTED]
    url = kv_url(folder, "ring", "16M")
    if not url.startswith("dev:"):
        raise tap.Skip("not over the device: rings are memory of hawkd's own")
    with serve.start(url) as server:
        t.equal(ring_head(server.process.pid), None, "no ring while nothing runs")
        for part in range(TRIES):       # until a text does not end before that
            before = server.metrics()
            body = json.dumps({"model": serve.NAME, "prompt": f"Part {part}. {PROMPT}",
                               "temperature": 0, "max_tokens": 1000,
                               "hawk": {"speculate": ALWAYS}})
            sock = serve.raw_request(server, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                             f"Content-Length: {len(body)}\r\n\r\n{body}")
            low = serve.until(server, lambda m: far(m) or m[DONE] > before[DONE])
            head = ring_head(server.process.pid)
            high = server.metrics()
            sock.close()
            if low and far(low) and high[DONE] == before[DONE]:
                break
        a_round = ALWAYS["tokens"] + 1
        t.ok(head is not None and low and kept(low) - a_round <= head <= kept(high),
             f"the device's ring has counted the {head} tokens that were accepted",
             f"before: {low and kept(low)}, after: {kept(high)}")
        t.ok(serve.until(server, lambda _: ring_head(server.process.pid) is None),
             "the client goes: the sequence ends, and its ring")


def test_sampled(server):
    for seed in range(serve.size(8, 1)):
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
    ends = seed = 0
    while seed < 30 or (not ends and seed < 300):
        seed += 1
        body = {"messages": [{"role": "user", "content": f"{seed}?"}], "seed": seed,
                "temperature": 1.0 if seed <= 30 else 2.0,     # any token is likelier then
                "max_tokens": 60, "model": serve.NAME, "return_token_ids": True}
        _, a = server.call("POST", "/v1/chat/completions", body)
        body["hawk"] = {"speculate": {**ALWAYS, "ngram": 1}}
        _, b = server.call("POST", "/v1/chat/completions", body)
        a, b = a["choices"][0], b["choices"][0]
        ends += a["finish_reason"] == "stop"
        if a != b:
            t.equal(b, a, f"chat with seed {seed}")
            return
    t.ok(ends > 0, f"{ends} of {seed} chats end by themselves, with the same tokens")


def test_beside_others(server):
    """Rounds of many sequences in one step, some with guesses and some without."""
    prompts = [f"{PROMPT}Chapter {i}. {PROMPT}" for i in range(CLIENTS)]
    alone = [ask(server, None, prompt=p)[:2] for p in prompts]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        together = list(pool.map(
            lambda i: ask(server, (ALWAYS, None, {"tokens": 16})[i % 3], prompt=prompts[i])[:2],
            range(CLIENTS)))
    t.equal(together, alone, f"{CLIENTS} clients at once get the tokens that each gets alone")


def test_after_drop(server):
    """Guesses behind dropped tokens, with the gap closed and open."""
    ids = ask(server, None, prompt=PROMPT * 8, max_tokens=1)[2]["choices"][0]["prompt_token_ids"]
    for repos in (True, False):
        hawk = {"drop": [[20, 60]], "at": 100, "repos": repos}
        body = {"prompt": ids, "max_tokens": min(80, EACH), "return_token_ids": True}
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
        for part in range(TRIES):
            if not server.metrics()[ROUNDS]:
                ask(server, None, prompt=f"{PROMPT}Part {part}. {PROMPT}")
        t.ok(server.metrics()[ROUNDS] > 0, "and some were guessed")


WITH_SERVER = (test_sampled, test_limits, test_end_of_text, test_beside_others, test_after_drop,
               test_cache_is_the_same, test_errors)
ALONE = (test_greedy, test_stories, test_ring, test_option)


def main():
    with_server, alone = tap.chosen(WITH_SERVER, ALONE)
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        if with_server:
            with serve.start(kv_url(folder, "rest", "16M")) as server:
                for test in with_server:
                    t.run(test, server)
                t.equal(server.stop(), 0, "hawkd stops with status 0")
        for test in alone:
            t.run(test, folder)
    t.done()


if __name__ == "__main__":
    main()
