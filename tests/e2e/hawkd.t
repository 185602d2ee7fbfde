#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hawkd through HTTP: answers, streams, reuse, spill, cancellation, errors.

Arguments are names of tests to run (completion, spill ...), all without. The tests
use the device named by HAWK_URL, otherwise the embedded backend."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

import serve  # noqa: E402
import tap  # noqa: E402

t = tap.Tap()
PROMPT = "The Linux kernel is a program that manages the hardware of a computer. "
LONG = PROMPT * 20


def kv_url(folder, dram):
    return os.environ.get("HAWK_URL",
                          f"embed:?dram={dram}&flash={folder}/kv.{dram}&flash_size=64M")


def post(server, body, headers=None):
    """(status, headers, decoded body) of a completion request."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    c.request("POST", "/v1/completions", body if isinstance(body, (str, bytes))
              else json.dumps({"model": serve.NAME, **body}), headers or {})
    r = c.getresponse()
    data = json.loads(r.read())
    c.close()
    return r.status, r.headers, data


def text_of(answer):
    return answer["choices"][0]["text"]


def events(server, body):
    """The JSON events of a stream, and whether it ended with [DONE]."""
    status, text = server.call("POST", "/v1/completions", {"stream": True, **body})
    assert status == 200, text
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"], lines[-1] == "[DONE]"


def test_completion(server):
    status, a = serve.completion(server, prompt=PROMPT, max_tokens=24)
    t.equal(status, 200, "a completion is answered with 200")
    t.equal(a["object"], "text_completion", "its object is text_completion")
    t.equal(a["usage"]["total_tokens"],
            a["usage"]["prompt_tokens"] + a["usage"]["completion_tokens"], "usage adds up")
    h = a["hawk"]
    t.equal(h["tokens_dram"] + h["tokens_flash"] + h["tokens_recomputed"],
            a["usage"]["prompt_tokens"], "prompt tokens add up by source")
    t.ok(a["choices"][0]["finish_reason"] in ("stop", "length"), "finish_reason is set")
    again = serve.completion(server, prompt=PROMPT, max_tokens=24)[1]
    t.equal(text_of(again), text_of(a), "greedy text is the same again")


def test_streaming(server):
    body = {"model": serve.NAME, "prompt": PROMPT, "max_tokens": 40, "temperature": 0}
    whole = serve.completion(server, **body)[1]
    got, done = events(server, {**body, "stream_options": {"include_usage": True}})
    t.equal("".join(e["choices"][0]["text"] for e in got if e["choices"]), text_of(whole),
            "streamed pieces make the same text")
    t.ok(done, "the stream ends with [DONE]")
    t.equal(got[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"],
            "include_usage sends the usage last")
    t.equal([e["choices"][0]["finish_reason"] for e in got if e["choices"]][-1],
            whole["choices"][0]["finish_reason"], "the last piece has the finish_reason")


def test_stop_strings(server):
    free = text_of(serve.completion(server, prompt=PROMPT, max_tokens=40)[1])
    cut = free[len(free) // 2:][:6]
    wanted = free[:free.index(cut)]
    body = {"prompt": PROMPT, "max_tokens": 40, "stop": ["never!?", cut]}
    status, a = serve.completion(server, **body)
    t.equal((status, text_of(a)), (200, wanted), "text ends before the stop string")
    t.equal(a["choices"][0]["finish_reason"], "stop", "with finish_reason stop")
    got, _ = events(server, {**body, "model": serve.NAME, "temperature": 0})
    t.equal("".join(e["choices"][0]["text"] for e in got), wanted,
            "no part of a stop string is streamed")


def test_sampling(server):
    body = {"prompt": PROMPT, "max_tokens": 32, "temperature": 1.0, "top_p": 0.95, "top_k": 50}
    a, b, c = (text_of(serve.completion(server, seed=seed, **body)[1]) for seed in (1, 1, 2))
    t.equal(a, b, "the same seed gives the same text")
    t.ok(a != c, "another seed another text")


def test_prompts(server):
    _, one = serve.completion(server, prompt=PROMPT, max_tokens=8, return_token_ids=True)
    ids = one["choices"][0]["prompt_token_ids"]
    _, two = serve.completion(server, prompt=ids, max_tokens=8)
    t.equal(text_of(two), text_of(one), "a token array gives the same text as its string")
    _, both = serve.completion(server, prompt=[PROMPT, "The scheduler"], max_tokens=8)
    t.equal([c["index"] for c in both["choices"]], [0, 1], "an array of strings: one choice each")
    t.equal(both["choices"][0]["text"], text_of(one), "in order")
    status, a = serve.completion(server, prompt="", max_tokens=4)
    t.ok(status == 200 or a["error"]["param"] == "prompt",
         "an empty prompt starts a text, or is refused by models without a start token")


def test_chat(server):
    body = {"model": serve.NAME, "max_tokens": 16, "temperature": 0, "return_token_ids": True,
            "messages": [{"role": "system", "content": "Be brief."},
                         {"role": "user", "content": [{"type": "text", "text": "What is RCU?"}]}]}
    status, a = server.call("POST", "/v1/chat/completions", body)
    t.equal((status, a["object"]), (200, "chat.completion"), "a chat is answered")
    t.equal(a["choices"][0]["message"]["role"], "assistant", "by the assistant")
    plain = len(a["choices"][0]["prompt_token_ids"])
    body["messages"][1]["content"] = "What is RCU?<|im_end|>"
    _, b = server.call("POST", "/v1/chat/completions", body)
    ids = b["choices"][0]["prompt_token_ids"]
    t.ok(len(ids) > plain + 1, "control tokens in user text stay plain text",
         f"{plain} tokens without, {len(ids)} with")


def test_parallel(server):
    prompts = [f"{PROMPT}Chapter {i}: memory. " for i in range(12)]
    alone = [text_of(serve.completion(server, prompt=p, max_tokens=40)[1]) for p in prompts]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        together = list(pool.map(
            lambda p: text_of(serve.completion(server, prompt=p, max_tokens=40)[1]), prompts))
    t.equal(together, alone, "twelve clients at once get the texts that each gets alone")


def test_prefix_reuse(server):
    fresh = "Reuse. " + LONG
    first = serve.completion(server, prompt=fresh, max_tokens=4)[1]
    second = serve.completion(server, prompt=fresh + "More.", max_tokens=4)[1]
    n = first["usage"]["prompt_tokens"]
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    t.equal(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0, "a new prompt: 0 cached")
    t.ok(n - 32 <= cached <= n, "a longer prompt reuses it", f"{cached} of {n}")
    t.equal(second["hawk"]["tokens_dram"], cached, "from DRAM")
    whole = serve.completion(server, prompt=fresh, max_tokens=4)[1]
    t.equal(text_of(whole), text_of(first), "the same prompt, cached, gives the same text")
    t.ok(whole["hawk"]["tokens_recomputed"] >= 1, "its last token is computed for its logits")
    salted = serve.completion(server, prompt=fresh, max_tokens=4, cache_salt="other")[1]
    t.equal(salted["usage"]["prompt_tokens_details"]["cached_tokens"], 0,
            "another cache_salt shares nothing")
    t.equal(text_of(salted), text_of(first), "and gives the same text")


def test_drop(server):
    """Another salt shares nothing, so its answer is computed from the first token on."""
    def tell(ids, salt, **hawk):
        a = serve.completion(server, prompt=ids, max_tokens=6, return_token_ids=True,
                             cache_salt=salt, hawk=hawk)[1]
        return a["choices"][0]["token_ids"], a["hawk"]
    ids = [300 + i * 37 % 1000 for i in range(300)]
    got, _ = tell(ids, "a", drop=[[40, 200]])
    t.equal(got, tell(ids[:40] + ids[200:], "b")[0], "dropped at its end: as if never been there")
    ids += tell(ids, "a")[0] + ids[:20]
    tell(ids, "a", drop=[[40, 200]], at=306)
    got, hawk = tell(ids, "a", drop=[[40, 200]], at=306)
    t.equal(got, tell(ids, "c", drop=[[40, 200]], at=306)[0],
            "from the cache what is computed with the same drop")
    t.ok(hawk["tokens_skipped"] == 144 and hawk["tokens_recomputed"] <= 16,
         "without the blocks that were dropped", hawk)


def leave(server, prompt, stream):
    """Ask for many tokens and close the connection, after the first if @stream."""
    body = json.dumps({"model": serve.NAME, "prompt": prompt, "stream": stream,
                       "max_tokens": 1000, "temperature": 1.0, "seed": 1})
    sock = serve.raw_request(server, f"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                     f"Content-Length: {len(body)}\r\n\r\n{body}")
    if stream:
        sock.recv(4096)
    sock.close()


def test_cancel(server):
    name = 'hawkd_requests_total{outcome="cancelled"}'
    for stream, what in ((True, "in a stream"), (False, "before any answer")):
        before = server.metrics()[name]
        for attempt in range(10):       # the model may end a text before the client leaves
            asked = server.metrics()["hawkd_ttft_seconds_count"]
            leave(server, f"{attempt} {stream}. {LONG}", stream)
            m = serve.until(server, lambda m: m["hawkd_running_sequences"] == 0 and
                            m["hawkd_kv_pinned_blocks"] == 0 and
                            m["hawkd_ttft_seconds_count"] + m[name] > asked + before)
            if m and m[name] > before:
                break
        t.ok(m and m[name] > before, f"a client that goes away {what} cancels its sequence "
                                     "and its KV blocks are given back")


BAD = [
    ("malformed JSON", '{"model": ', 400, None, "invalid_json"),
    ("a body that is not an object", "[1]", 400, None, None),
    ("no body", "", 400, None, "invalid_json"),
    ("invalid UTF-8", b'{"model": "\xff"}', 400, None, "invalid_json"),
    ("deep nesting", "[" * 100000, 400, None, "invalid_json"),
    ("no model", {"prompt": "x"}, 400, "model", None),
    ("unknown model", {"model": "gpt-9", "prompt": "x"}, 404, "model", "model_not_found"),
    ("unknown model, its name cut within a character", {"model": "a" * 99 + "é" * 99}, 404,
     "model", "model_not_found"),
    ("no prompt", {}, 400, "prompt", None),
    ("prompt of a wrong type", {"prompt": 7}, 400, "prompt", None),
    ("token out of range", {"prompt": [1, 99999999]}, 400, "prompt", None),
    ("negative token", {"prompt": [-1]}, 400, "prompt", None),
    ("mixed prompt", {"prompt": ["a", 1]}, 400, "prompt", None),
    ("too many prompts", {"prompt": ["a"] * 33}, 400, "prompt", None),
    ("max_tokens 0", {"prompt": "x", "max_tokens": 0}, 400, "max_tokens", None),
    ("max_tokens as text", {"prompt": "x", "max_tokens": "9"}, 400, "max_tokens", None),
    ("temperature 3", {"prompt": "x", "temperature": 3}, 400, "temperature", None),
    ("top_p 2", {"prompt": "x", "top_p": 2}, 400, "top_p", None),
    ("n 2", {"prompt": "x", "n": 2}, 400, "n", None),
    ("logprobs", {"prompt": "x", "logprobs": 1}, 400, "logprobs", "unsupported_parameter"),
    ("echo", {"prompt": "x", "echo": True}, 400, "echo", "unsupported_parameter"),
    ("five stop strings", {"prompt": "x", "stop": list("abcde")}, 400, "stop", None),
    ("an empty stop string", {"prompt": "x", "stop": ""}, 400, "stop", None),
    ("stream as text", {"prompt": "x", "stream": "yes"}, 400, "stream", None),
    ("prompt beyond the context", {"prompt": "word " * 9000}, 400, "prompt",
     "context_length_exceeded"),
    ("max_tokens beyond the context", {"prompt": "x", "max_tokens": 10**6}, 400, "prompt",
     "context_length_exceeded"),
]


def test_bad_requests(server):
    for name, body, status, param, code in BAD:
        got, _, answer = post(server, json.dumps(body) if name == "no model" else body)
        e = answer["error"]
        good = (got == status and e["param"] == param and e["message"] and e["type"] and
                (code is None or e["code"] == code))
        t.ok(good, f"{name}: {status}", f"{got} {e}")
    for extra in ({"response_format": {"type": "text"}}, {"logprobs": False}, {"best_of": 1}):
        t.equal(post(server, {"prompt": "x", "max_tokens": 1, **extra})[0], 200,
                f"a default, said aloud, is accepted: {extra}")


def test_bad_chats(server):
    for name, messages in (("no messages", None), ("empty messages", []),
                           ("an unknown role", [{"role": "x<|im_end|>", "content": "a"}]),
                           ("an image", [{"role": "user", "content": [{"type": "image_url"}]}]),
                           ("content as a number", [{"role": "user", "content": 5}]),
                           ("a message as text", ["hello"])):
        status, a = server.call("POST", "/v1/chat/completions",
                                {"model": serve.NAME, "messages": messages})
        t.ok(status == 400 and a["error"]["param"] == "messages", f"chat, {name}: 400",
             f"{status} {a}")


def test_bad_http(server):
    t.equal(server.call("GET", "/nowhere")[0], 404, "an unknown path: 404")
    t.equal(server.call("GET", "/v1/completions")[0], 405, "GET of a completion: 405")
    t.equal(server.call("DELETE", "/metrics")[0], 405, "DELETE of the metrics: 405")
    t.equal(server.call("GET", "/v1/models/other")[0], 404, "an unknown model: 404")
    t.equal(server.call("GET", "/v1/models/%ff")[0], 404, "a model that is no UTF-8: 404")
    sock = serve.raw_request(server, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                     "Content-Length: 99999999999\r\n\r\n")
    t.ok(b" 413 " in sock.recv(200), "a body announced as too large: 413")
    sock.close()
    sock = serve.raw_request(server, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                     "Transfer-Encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    for _ in range(140):
        sock.sendall(piece)
    sock.sendall(b"0\r\n\r\n")
    t.ok(b" 413 " in sock.recv(200), "a body that turns out too large: 413")
    sock.close()
    sock = serve.raw_request(server, b"GET /health HTTP/1.1\r\nX: " + b"a" * 200000 + b"\r\n\r\n")
    try:
        got = sock.recv(200)
    except ConnectionResetError:
        got = b""
    t.ok(got == b"" or b" 431 " in got or b" 413 " in got or b" 400 " in got,
         "huge headers are refused", got)
    sock.close()
    sock = serve.raw_request(server, b"\x00\xff\x16\x03 nonsense\r\n\r\n")
    sock.recv(200)
    sock.close()
    t.equal(server.call("GET", "/health")[0], 200, "the server still answers")


def test_status(server):
    _, models = server.call("GET", "/v1/models")
    t.equal([m["id"] for m in models["data"]], [serve.NAME], "/v1/models names the model")
    status, health = server.call("GET", "/health?ready")
    t.ok(status == 200 and health["ready"], "/health?ready: 200 when there is room")
    m = server.metrics()
    t.ok(m["hawkd_ttft_seconds_count"] > 0 and m["hawkd_generated_tokens_total"] > 0,
         "/metrics counts")
    t.equal(m["hawkd_kv_pinned_blocks"], 0, "no block is pinned when nothing runs")


def test_nothing_lost(server):
    _, a = serve.completion(server, prompt="Reuse. " + LONG, max_tokens=4)
    t.ok(a["usage"]["prompt_tokens_details"]["cached_tokens"] > 0,
         "after all these errors the cache is still there")


def test_spill(folder):
    """Prompts that together exceed the DRAM tier, then again. Small: the VM emulates."""
    prompts = [f"Document {i}. " + f"Page {i} is about memory and I/O. " * 22 for i in range(8)]

    def ask(server, prompt):
        return serve.completion(server, prompt=prompt, max_tokens=8)[1]

    with serve.start("embed:?dram=4M", "--no-cache") as plain:
        wanted = [text_of(ask(plain, p)) for p in prompts]
        t.equal(plain.metrics()['hawkd_kv_blocks{where="all"}'], 0,
                "--no-cache leaves no block behind")
    with serve.start(kv_url(folder, "2M")) as small:
        t.equal([text_of(ask(small, p)) for p in prompts], wanted,
                "a small tier gives the texts of a large one")
        again = [ask(small, p) for p in prompts[:4]]
        t.ok(all(a["hawk"]["tokens_flash"] > 100 for a in again),
             "the second time KV comes from flash", [a["hawk"] for a in again])
        t.equal([text_of(a) for a in again], wanted[:4], "and the texts are the same")
        m = small.metrics()
        t.ok(m["hawkd_kv_reloaded_blocks_total"] > 0 and
             m['hawkd_kv_evicted_blocks_total{how="written"}'] > 0, "metrics show the traffic")
        t.ok(m['hawkd_kv_reload_choices_total{choice="reload"}'] >= 4 and
             m["hawkd_reload_seconds_count"] >= 4 and m["hawkd_kv_prefill_phases_total"] > 0,
             "that it was chosen, how long it took, and that the device was told of prefill", m)


def test_no_room(_):
    with serve.start("embed:?dram=2M") as small:
        room = small.call("GET", "/health")[1]["kv"]
        tokens = room["capacity_blocks"] * room["block_tokens"]
        status, a = serve.completion(small, prompt=[1] * 16, max_tokens=tokens)
        t.ok(status == 503 and a["error"]["code"] == "kv_too_small",
             "a request larger than the tier: 503", a)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            done = list(pool.map(lambda i: serve.completion(
                small, prompt=[5 + i] * (tokens // 2), max_tokens=tokens // 8)[0], range(6)))
        t.equal(done, [200] * 6, "requests that do not fit together wait for each other")
        t.equal(serve.completion(small, prompt=PROMPT, max_tokens=4)[0], 200,
                "and the server goes on")
        t.equal(small.metrics()["hawkd_kv_pinned_blocks"], 0, "with no block pinned")


def test_large_bodies(_):
    """As JSON they take many times their size: it is that of one, however many come."""
    def peak():
        text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if "VmHWM" in line)
    body = {"prompt": [{}] * 1000000}
    with serve.start("embed:?dram=8M") as server:
        grown, before = [], peak()
        for n in (1, 8):
            with concurrent.futures.ThreadPoolExecutor(n) as pool:
                got = {status for status, _, _ in pool.map(lambda _: post(server, body), range(n))}
            t.equal(got, {400}, f"{n} large bodies of nonsense are refused")
            grown.append(peak() - before)
    t.note(f"one took {grown[0]} KiB, eight {grown[1]} KiB")
    t.ok(grown[1] < 3 * grown[0], "eight at once take not even three times as much as one")


def test_queue_full(_):
    with serve.start("embed:?dram=8M", "--max-seqs", "1", "--queue", "1") as small:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            done = list(pool.map(lambda i: post(
                small, {"prompt": f"{i} {LONG}", "max_tokens": 64}), range(12)))
        t.equal({status for status, _, _ in done}, {200, 503},
                "a full queue: 503, the accepted are served")
        t.ok(all(h["Retry-After"] and a["error"]["code"] == "overloaded"
                 for status, h, a in done if status == 503), "with Retry-After")


def test_api_keys(folder):
    path = pathlib.Path(folder, "keys")
    path.write_text("# keys\nalpha-key\n\nbeta-key\n")
    with serve.start("embed:?dram=8M", "--api-key-file", str(path)) as server:
        def ask(key):
            status, _, body = post(server, {"prompt": LONG, "max_tokens": 2},
                                   {"Authorization": f"Bearer {key}"} if key else {})
            return status, body
        t.equal(ask(None)[1]["error"]["code"], "invalid_api_key", "no API key: refused")
        t.equal(ask("alpha-kez")[0], 401, "a wrong API key: 401")
        t.equal(ask("alpha-key")[0], 200, "a right one is served")
        t.ok(ask("alpha-key")[1]["hawk"]["tokens_dram"] > 0, "its holder reuses its cache")
        t.equal(ask("beta-key")[1]["hawk"]["tokens_dram"], 0, "and nobody else does")
        t.equal(server.call("GET", "/health")[0], 200, "health needs no key")
        server.stop()
        server.drain.wait()
        server.log.seek(0)
        t.ok("alpha-ke" not in server.log.read(), "no key is logged")


def test_drain(_):
    server = serve.start("embed:?dram=8M")
    with server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(serve.completion, server, prompt=LONG, max_tokens=200)
        serve.until(server, lambda m: m["hawkd_running_sequences"] > 0 or running.done())
        status = server.stop()
        t.equal(status, 0, "SIGTERM: exit status 0")
        t.equal(running.result()[0], 200, "the running request is finished first")


def test_stories(folder):
    if not serve.STORIES.exists():
        raise tap.Skip(f"no {serve.STORIES.name} here")
    readme = (serve.STORIES.parent / "README.md").read_text()
    told = readme[readme.index('prompt "One day'):].split("→\n")[1]
    wanted = "\n".join(line.strip() for line in told.strip().splitlines())
    prompt = "One day, a cat named Tom"
    url = kv_url(folder, "2M")
    with serve.start(url, model=str(serve.STORIES)) as server:
        for _ in range(2):
            a = serve.completion(server, prompt=prompt, max_tokens=200)[1]
            t.equal((prompt + text_of(a))[:len(wanted)], wanted,
                    f"stories260K tells its reference story over {url.split(':')[0]}:")


WITH_SERVER = (test_completion, test_streaming, test_stop_strings, test_sampling, test_prompts,
               test_chat, test_parallel, test_prefix_reuse, test_drop, test_cancel,
               test_bad_requests, test_bad_chats, test_bad_http, test_status, test_nothing_lost)
ALONE = (test_spill, test_no_room, test_large_bodies, test_queue_full, test_api_keys, test_drain,
         test_stories)


def main():
    with_server, alone = tap.chosen(WITH_SERVER, ALONE)
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        if with_server:
            with serve.start(kv_url(folder, "16M")) as server:
                for test in with_server:
                    t.run(test, server)
                t.equal(server.stop(), 0, "hawkd stops with status 0")
        for test in alone:
            t.run(test, folder)
    t.done()


if __name__ == "__main__":
    main()
