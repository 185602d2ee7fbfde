#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measure an exported GGUF: held-out perplexity, and sampled text. Needs numpy.

The weights are read back from the file, so the figures are those of the quantised
model. Every held-out document starts a new context; a document longer than the
context is cut into full contexts that do not see each other.
"""

import argparse
import json
import math

import numpy as np

import dataset
import gguf_read
import reference

# Tokens computed at a time: bounds the memory that attention takes.
CHUNK = 256


def log_softmax_at(logits, targets):
    top = logits.max(axis=1)
    total = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    return logits[np.arange(len(targets)), targets] - total


def perplexity(model, meta, tok, docs):
    nats, tokens, size = 0.0, 0, 0
    start = reference.bos(meta)
    for i, doc in enumerate(docs):
        text = dataset.render_document(doc)
        ids = tok.encode(text, parse_special=False)
        for at in range(0, len(ids), model.n_ctx):
            part = start + ids[at:at + model.n_ctx]
            model.clear()
            for first in range(0, len(part) - 1, CHUNK):
                targets = part[first + 1:first + 1 + CHUNK]
                logits = model.forward(part[first:first + len(targets)])
                nats -= float(log_softmax_at(logits, targets).sum())
        tokens += len(ids)
        size += len(text.encode("utf-8"))
        print(f"\r{i + 1}/{len(docs)} documents, perplexity {math.exp(nats / tokens):.3f} ",
              end="", flush=True)
    print()
    return {"documents": len(docs), "tokens": tokens, "bytes": size,
            "nats_per_token": nats / tokens, "perplexity": math.exp(nats / tokens),
            "bits_per_byte": nats / math.log(2) / size}


def sample(model, ids, n, temperature, rng, stop):
    """Continuation of @ids; temperature 0 is greedy, no truncation of the tail."""
    if temperature == 0:
        return reference.generate(model, ids, n, stop)[0]
    model.clear()
    out, logits = [], model.forward(ids)[-1]
    while len(out) < n:
        chance = reference.softmax(logits.astype(np.float64) / temperature)
        token = int(rng.choice(len(chance), p=chance))
        if token in stop:
            break
        out.append(token)
        logits = model.forward([token])[-1]
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model", help="GGUF file")
    ap.add_argument("--corpus", help="JSON lines from corpus.py: print the held-out perplexity")
    ap.add_argument("--sample", metavar="TEXT", help="print a continuation of TEXT")
    ap.add_argument("--chat", action="store_true", help="the sample's text is a user's message")
    ap.add_argument("--temperature", type=float, default=0.8)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("-n", type=int, default=100, help="tokens to sample, at most (100)")
    args = ap.parse_args()
    meta, tensors = gguf_read.read(args.model)
    model, tok = reference.Llama(meta, tensors), reference.tokenizer(meta)
    if args.corpus:
        print(json.dumps(perplexity(model, meta, tok, dataset.load(args.corpus, "held-out"))))
    if args.sample is not None:
        if args.chat:
            ids = reference.encode_chat(meta, tok, [{"role": "user", "content": args.sample}])
        else:
            ids = reference.encode_prompt(meta, tok, args.sample)
        out = sample(model, ids, args.n, args.temperature, np.random.default_rng(args.seed),
                     reference.stop_tokens(meta))
        print(tok.decode(out))


if __name__ == "__main__":
    main()
