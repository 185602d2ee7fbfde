# SPDX-License-Identifier: MIT
"""hawkd and the openai package: called by hawkd-openai.t with the right Python."""

import concurrent.futures
import os
import sys

sys.dont_write_bytecode = True

import serve  # noqa: E402
import tap  # noqa: E402

try:
    import openai
except ImportError as error:
    tap.skip_all(f"no openai package: {error}")

t = tap.Tap()
MESSAGES = [{"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "What is a spinlock?"}]


def client_of(server):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none",
                         max_retries=0, timeout=120)


def test_models(client, _):
    t.equal([m.id for m in client.models.list()], [serve.NAME], "models.list()")
    t.equal(client.models.retrieve(serve.NAME).object, "model", "models.retrieve()")


def test_completion(client, _):
    a = client.completions.create(model=serve.NAME, prompt="The kernel", max_tokens=20,
                                  temperature=0)
    t.ok(a.choices[0].text and a.usage.completion_tokens <= 20, "completions.create()", a)
    b = client.completions.create(model=serve.NAME, prompt="The kernel", max_tokens=20,
                                  temperature=0, stream=True)
    t.equal("".join(c.choices[0].text for c in b), a.choices[0].text, "and streaming")


def test_chat(client, _):
    ask = {"model": serve.NAME, "messages": MESSAGES, "max_completion_tokens": 30,
           "temperature": 0}
    a = client.chat.completions.create(**ask)
    t.equal(a.choices[0].message.role, "assistant", "chat.completions.create()")
    chunks = list(client.chat.completions.create(stream=True, **ask,
                                                 stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    t.equal(text, a.choices[0].message.content, "and streaming")
    t.equal(chunks[0].choices[0].delta.role, "assistant", "the first chunk has the role")
    t.equal(chunks[-1].usage.prompt_tokens, a.usage.prompt_tokens, "the last the usage")
    t.ok(chunks[-1].usage.prompt_tokens_details.cached_tokens > 0, "with cached tokens")


def test_two_clients(client, server):
    other = client_of(server)

    def tell(who, prompt):
        return who.completions.create(model=serve.NAME, prompt=prompt, max_tokens=60,
                                      temperature=0).choices[0].text
    prompts = ["A process is ", "A thread is "]
    alone = [tell(client, p) for p in prompts]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(tell, *pair) for pair in zip((client, other), prompts)]
        t.equal([j.result() for j in jobs], alone, "two clients at once: the texts of each alone")


def test_cancel(client, server):
    name = 'hawkd_requests_total{outcome="cancelled"}'
    before = server.metrics()[name]
    for seed in range(10):
        stream = client.completions.create(model=serve.NAME, prompt=f"{seed}. Memory",
                                           max_tokens=1500, seed=seed, stream=True)
        next(iter(stream))
        stream.close()
        m = serve.until(server, lambda m: m["hawkd_running_sequences"] == 0 and
                        m["hawkd_kv_pinned_blocks"] == 0)
        if m and m[name] > before:
            break
    t.ok(m and m[name] > before, "closing a stream cancels it and gives its KV back")


def test_errors(client, _):
    for name, wanted, call in (
            ("an unknown model", openai.NotFoundError,
             lambda: client.completions.create(model="gpt-9", prompt="x")),
            ("a bad parameter", openai.BadRequestError,
             lambda: client.completions.create(model=serve.NAME, prompt="x", temperature=9)),
            ("a prompt beyond the context", openai.BadRequestError,
             lambda: client.completions.create(model=serve.NAME, prompt="word " * 9000)),
            ("logprobs", openai.BadRequestError,
             lambda: client.chat.completions.create(model=serve.NAME, messages=MESSAGES,
                                                    logprobs=True))):
        try:
            call()
            t.ok(False, f"{name} is refused")
        except openai.APIStatusError as error:
            t.ok(isinstance(error, wanted) and error.body["message"],
                 f"{name}: {wanted.__name__}", repr(error))


def main():
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        url = os.environ.get("HAWK_URL", f"embed:?dram=8M&flash={folder}/kv&flash_size=32M")
        with serve.start(url) as server:
            client = client_of(server)
            for test in (test_models, test_completion, test_chat, test_two_clients, test_cancel,
                         test_errors):
                t.run(test, client, server)
    t.done()


if __name__ == "__main__":
    main()
