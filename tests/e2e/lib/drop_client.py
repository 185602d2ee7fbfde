# SPDX-License-Identifier: MIT
"""Tokens dropped from the cache, through the openai package: called by hawkd-drop.t with
the right Python. Beside the server that is tested runs one with --no-cache: what it
answers was computed from the first token on, with the same operations."""

import concurrent.futures
import os
import random
import sys

sys.dont_write_bytecode = True

import serve  # noqa: E402
import tap  # noqa: E402

try:
    import openai
except ImportError as error:
    tap.skip_all(f"no openai package: {error}")

t = tap.Tap()
BLOCK = 16
SEED = int(os.environ.get("HAWK_SEED", "1"))
OBSERVATION = " ".join(f"{i:04x}: load {i * 37 % 101} %, {i * 7 % 13} runnable;" for i in range(24))


class Server:
    """A hawkd and a client of it."""

    def __init__(self, hawkd):
        self.hawkd = hawkd
        self.client = openai.OpenAI(base_url=f"http://127.0.0.1:{hawkd.port}/v1", api_key="none",
                                    max_retries=0, timeout=120)

    def complete(self, ids, drop=None, n=12, salt="", **hawk):
        """(tokens of the answer, figures under "hawk")"""
        extra = {"return_token_ids": True, "cache_salt": salt}
        if drop is not None or hawk:
            extra["hawk"] = {**hawk, **({"drop": drop} if drop is not None else {})}
        a = self.client.completions.create(model=serve.NAME, prompt=ids, max_tokens=n,
                                           temperature=0, extra_body=extra)
        return a.choices[0].token_ids, a.hawk

    def chat(self, messages, **hawk):
        a = self.client.chat.completions.create(
            model=serve.NAME, messages=messages, max_tokens=12, temperature=0,
            extra_body={"return_token_ids": True, **({"hawk": hawk} if hawk else {})})
        return a.choices[0], a.hawk


def words(rng, n, vocabulary=1500):
    return [rng.randrange(300, vocabulary) for _ in range(n)]


def test_never_been(server, fresh):
    """Dropped at its end, with the gap closed: the answer to the prompt without it."""
    ids = words(random.Random(SEED), 600)
    for start, end in ((100, 300), (3, 5), (113, 599)):
        got, hawk = server.complete(ids, [[start, end]])
        wanted, _ = fresh.complete(ids[:start] + ids[end:])
        t.equal(got, wanted, f"[{start}, {end}) dropped at its end: as if it had never been")
        t.equal((hawk["tokens_dropped"], hawk["tokens_kept"], hawk["tokens_shifted"]),
                (end - start, 600 - end + start, 0), "and counted")


def test_from_cache(server, fresh):
    """A turn after a drop: from DRAM, then from flash, then computed from the start."""
    rng = random.Random(SEED + 1)
    ids = words(rng, 700)
    first, _ = server.complete(ids)
    ids += first + words(rng, 30)
    at = 700 + len(first)
    for repos in (True, False):
        wanted, _ = fresh.complete(ids, [[120, 400]], at=at, repos=repos)
        got, hawk = server.complete(ids, [[120, 400]], at=at, repos=repos)
        t.equal(got, wanted, f"repos {repos}: from DRAM what is computed from the start")
        blocks = (at - 1) // BLOCK
        t.equal(hawk["tokens_dram"], blocks * BLOCK, "all full blocks before the drop are shared")
        t.equal(hawk["tokens_shifted"], (at - 400) * repos, "what lies behind it is shifted")
        got, hawk = server.complete(ids, [[120, 400]], at=at, repos=repos)
        t.equal(got, wanted, "again, with the blocks behind it from the cache as well")
        t.equal(hawk["tokens_skipped"], (400 // BLOCK - 8) * BLOCK,
                "blocks within the span are not needed")
        t.ok(hawk["tokens_recomputed"] <= BLOCK, "next to nothing is computed", hawk)
    for _ in range(60):
        server.complete(words(rng, 700), n=1)
    got, hawk = server.complete(ids, [[120, 400]], at=at)
    t.equal(got, fresh.complete(ids, [[120, 400]], at=at)[0], "from flash: the same")
    t.ok(hawk["tokens_flash"] > 200 and hawk["tokens_recomputed"] <= BLOCK,
         "and it was flash", hawk)


def session(server, seed, shared):
    """Requests of an agent that grows its prompt and drops some of it; one that does not."""
    rng = random.Random(seed)
    drops, ids, out = rng.random() < 0.6, list(shared), []
    spans, low = [], rng.randrange(20, 80)
    for _ in range(4):
        if drops and rng.random() < 0.7 and low + 40 < len(ids):
            end = low + rng.randrange(8, 40)
            spans.append([low, end, rng.randrange(end, len(ids))])
            low = end + rng.randrange(20)
        got, _ = server.complete(ids, spans if drops else None, n=4, repos=seed % 3 > 0)
        out.append(got)
        ids += got + shared[:rng.randrange(30, 60)]     # often the same tokens again
    return out


def test_histories(server, fresh):
    """Sessions with the same tokens, some of which drop: each as if it were alone."""
    shared = words(random.Random(SEED + 2), 200)
    seeds = range(SEED * 100, SEED * 100 + 16)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda s: session(server, s, shared), seeds))
    wanted = [session(fresh, s, shared) for s in seeds]
    wrong = [s for s, a, b in zip(seeds, got, wanted) if a != b]
    t.equal(wrong, [], "16 sessions that share tokens, interleaved: each as computed alone")
    ids = words(random.Random(SEED + 3), 320)
    server.complete(ids, [[32, 64]], at=200)
    got, hawk = server.complete(ids)
    t.equal(got, fresh.complete(ids)[0], "a session without the drop gets its own answer")
    t.equal(hawk["tokens_dram"], 200 // BLOCK * BLOCK, "and no block from behind the drop")
    ids = words(random.Random(SEED + 4), 320)
    server.complete(ids)
    got, hawk = server.complete(ids, [[32, 64]], at=200)
    t.equal(got, fresh.complete(ids, [[32, 64]], at=200)[0], "nor the other way round")
    t.equal(hawk["tokens_dram"], 200 // BLOCK * BLOCK, "whatever is there")


def test_chat(server, fresh):
    """An observation is seen by one answer and then dropped, where the next turn begins."""
    messages = [{"role": "system", "content": "You answer questions about a machine."},
                {"role": "user", "content": "Look at this. <ephemeral_observation>"
                 f"{OBSERVATION}</ephemeral_observation> Is it busy?"}]
    plain = [messages[0], {"role": "user", "content": messages[1]["content"].replace(
        "<ephemeral_observation>", "").replace("</ephemeral_observation>", "")}]
    one, hawk = server.chat(messages, drop_after_turns=1)
    t.equal(hawk["tokens_dropped"], 0, "the first answer sees the observation")
    t.ok(abs(len(one.prompt_token_ids) - len(server.chat(plain)[0].prompt_token_ids)) < 4,
         "the tags are no text")
    tagged = server.chat(messages)[0].prompt_token_ids
    t.ok(len(tagged) > len(one.prompt_token_ids) + 4, "but they are where no field asks for it")
    messages += [{"role": "assistant", "content": one.message.content},
                 {"role": "user", "content": "And what does a scheduler do?"}]
    two, hawk = server.chat(messages, drop_after_turns=1)
    ids = two.prompt_token_ids
    n = hawk["tokens_dropped"]
    t.ok(n > 200, "the second does not", hawk)
    t.ok(hawk["tokens_dram"] >= len(one.prompt_token_ids) // BLOCK * BLOCK,
         "and has all of the first turn from the cache", hawk)
    t.equal(two.token_ids, fresh.chat(messages, drop_after_turns=1)[0].token_ids,
            "as computed from the start")
    t.equal(ids[:len(one.prompt_token_ids)], one.prompt_token_ids,
            "whose tokens are still its prefix")
    messages[1]["hawk"] = {"drop_after_turns": 2}
    t.equal(server.chat(messages, drop_after_turns=1)[1]["tokens_dropped"], 0,
            "a message may ask for another number of turns")
    del messages[1]["hawk"]
    messages += [{"role": "assistant", "content": two.message.content},
                 {"role": "user", "content": "Thank you."}]
    three, hawk = server.chat(messages, drop_after_turns=1)
    t.equal(hawk["tokens_dropped"], n, "it stays dropped in the third turn")
    t.ok(hawk["tokens_recomputed"] < 64 and hawk["tokens_skipped"] > n - 2 * BLOCK,
         "and is neither needed nor computed", hawk)
    t.equal(three.token_ids, fresh.chat(messages, drop_after_turns=1)[0].token_ids,
            "with the answer computed from the start")


def test_limits(server, fresh):
    """A session may be longer than the context, if what is left of it is not."""
    ids = words(random.Random(SEED + 5), 1900)
    drop = [[100, 1500, 1880]]
    server.complete(ids, drop, n=1)
    ids += words(random.Random(SEED + 6), 400)
    got, hawk = server.complete(ids, drop)
    t.equal((len(ids), hawk["tokens_kept"]), (2300, 900), "2300 tokens in a context of 2048")
    t.equal(got, fresh.complete(ids, drop)[0], "as computed from the start")
    refused(lambda: server.complete(ids, [[100, 1500, 2100]]), "hawk.drop",
            "reaches 2100 before some are dropped", "a drop behind the end of the context")
    refused(lambda: server.complete(ids, drop, repos=False), "prompt",
            "needs 2312 (2300 in the prompt", "a gap that stays")


BAD = (
    ({"drop": [[1, 2], [4, 3]]}, "hawk.drop", "ends before it starts"),
    ({"drop": [[4, 4]]}, "hawk.drop", "empty"),
    ({"drop": [[4, 9], [8, 12]]}, "hawk.drop", "in order and not overlap"),
    ({"drop": [[8, 12], [2, 4]]}, "hawk.drop", "in order and not overlap"),
    ({"drop": [[10, 101]]}, "hawk.drop", "not a token of the prompt"),
    ({"drop": [[-1, 3]]}, "hawk.drop", "not a token of the prompt"),
    ({"drop": [[50, 100]]}, "hawk.drop", "last one is needed"),
    ({"drop": [[5, 10]], "at": 9}, "hawk.drop", "before its end"),
    ({"drop": [[5, 10]], "at": 100}, "hawk.drop", "at most 99"),
    ({"drop": [[5, 10]], "at": 101}, "at", "must be between"),
    ({"drop": [[5, 10, 7]]}, "hawk.drop", "before its end"),
    ({"drop": [[0, 10]]}, "hawk.drop", "nothing would be left"),
    ({"drop": [[5]]}, "hawk.drop", "[start, end]"),
    ({"drop": [[5, 1.5]]}, "hawk.drop", "not an integer"),
    ({"drop": [5, 10]}, "hawk.drop", "[start, end]"),
    ({"drop": {"start": 1}}, "hawk.drop", "array of spans"),
    ({"at": 5}, "hawk.at", "needs 'drop'"),
    ({"drop": [[5, 10]], "repos": 1}, "repos", "true or false"),
    ({"dorp": [[5, 10]]}, "hawk", "no member"),
    ({"drop_after_turns": 1}, "hawk", "no member"),
    ([], "hawk", "must be an object"),
)
BAD_TEXT = (
    ("<ephemeral_observation>a", "without </ephemeral_observation>"),
    ("a</ephemeral_observation>", "without <ephemeral_observation>"),
    ("</ephemeral_observation>a<ephemeral_observation>", "without <ephemeral_observation>"),
    ("<ephemeral_observation><ephemeral_observation>a</ephemeral_observation>"
     "</ephemeral_observation>", "inside another"),
)


def refused(call, param, words_of_it, name):
    try:
        call()
        t.ok(False, f"{name} is refused")
    except openai.BadRequestError as error:
        t.ok(error.body["param"] == param and words_of_it in error.body["message"],
             f"refused: {words_of_it}", repr(error))


def test_errors(server, _):
    ids = words(random.Random(SEED), 100)
    for hawk, param, why in BAD:
        refused(lambda: server.client.completions.create(
            model=serve.NAME, prompt=ids, extra_body={"hawk": hawk}), param, why, hawk)
    refused(lambda: server.client.completions.create(
        model=serve.NAME, prompt=["one text", "two texts"], extra_body={"hawk": {"drop": [[1, 2]]}}),
        "hawk.drop", "tokens of one prompt", "two prompts")
    for text, why in BAD_TEXT:
        refused(lambda: server.chat([{"role": "user", "content": text}], drop_after_turns=1),
                "messages", why, text)
    refused(lambda: server.chat([{"role": "user", "content": "a", "hawk": {"drop": []}}]),
            "hawk", "no member of 'hawk' in a message", "a span in a message")


def test_metrics(server, _):
    m = server.hawkd.metrics()
    for name in ("hawkd_dropped_tokens_total", "hawkd_shifted_tokens_total",
                 'hawkd_prompt_tokens_total{source="skipped"}'):
        t.ok(m[name] > 0, f"{name} has counted")
    t.equal((m["hawkd_kv_pinned_blocks"], m["hawkd_running_sequences"]), (0, 0),
            "nothing is left pinned")


def main():
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    t.note(f"HAWK_SEED={SEED}")
    with serve.scratch() as folder:
        url = os.environ.get("HAWK_URL", f"embed:?dram=24M&flash={folder}/kv&flash_size=256M")
        with serve.start(url) as server, serve.start("embed:?dram=64M", "--no-cache") as fresh:
            pair = Server(server), Server(fresh)
            for test in (test_never_been, test_from_cache, test_histories, test_chat, test_limits,
                         test_errors, test_metrics):
                t.run(test, *pair)
    t.done()


if __name__ == "__main__":
    main()
