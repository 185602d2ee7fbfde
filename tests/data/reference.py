#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plain float32 inference of a llama-architecture GGUF: what hawkd must agree with.

Weights are dequantised once, everything is computed in float32 with numpy in the
obvious order, and generation is greedy. Prints one JSON object.
"""

import argparse
import json
import sys

import numpy as np

import bpe
import gguf_read

CONTROL = 3


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Llama:
    def __init__(self, meta, tensors):
        get = lambda key, default=None: meta.get("llama." + key, default)
        self.w = tensors
        self.n_layer = get("block_count")
        self.n_head = get("attention.head_count")
        self.n_head_kv = get("attention.head_count_kv", self.n_head)
        self.n_ctx = get("context_length")
        self.eps = np.float32(get("attention.layer_norm_rms_epsilon"))
        self.head_dim = get("embedding_length") // self.n_head
        freq = get("rope.freq_base", 10000.0) ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        angle = np.outer(np.arange(self.n_ctx), freq)
        self.cos, self.sin = np.cos(angle).astype("f4"), np.sin(angle).astype("f4")
        self.output = tensors.get("output.weight", tensors["token_embd.weight"])
        self.clear()

    def clear(self):
        """Forget the context."""
        empty = np.zeros((self.n_head_kv, 0, self.head_dim), dtype=np.float32)
        self.kv = [(empty, empty)] * self.n_layer

    def rotate(self, x, first):
        """Rotate pairs (2i, 2i+1) of x [heads, tokens, head_dim], at positions @first..."""
        cos = self.cos[first:first + x.shape[1]]
        sin = self.sin[first:first + x.shape[1]]
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return out

    def attention(self, layer, x):
        w = lambda name: self.w[f"blk.{layer}.{name}.weight"].T
        heads = lambda y, n: y.reshape(len(x), n, self.head_dim).transpose(1, 0, 2)
        first = self.kv[layer][0].shape[1]
        q = self.rotate(heads(x @ w("attn_q"), self.n_head), first)
        k = self.rotate(heads(x @ w("attn_k"), self.n_head_kv), first)
        v = heads(x @ w("attn_v"), self.n_head_kv)
        k = np.concatenate((self.kv[layer][0], k), axis=1)
        v = np.concatenate((self.kv[layer][1], v), axis=1)
        self.kv[layer] = (k, v)
        group = self.n_head // self.n_head_kv
        k, v = k.repeat(group, axis=0), v.repeat(group, axis=0)
        score = q @ k.transpose(0, 2, 1) * np.float32(self.head_dim ** -0.5)
        later = np.arange(k.shape[1])[None, :] > np.arange(first, k.shape[1])[:, None]
        score[:, later] = -np.inf
        y = (softmax(score) @ v).transpose(1, 0, 2).reshape(len(x), -1)
        return y @ w("attn_output")

    def forward(self, ids):
        """Logits [tokens, vocabulary] of @ids, which follow the context so far."""
        if self.kv[0][0].shape[1] + len(ids) > self.n_ctx:
            raise ValueError(f"more than {self.n_ctx} tokens")
        x = self.w["token_embd.weight"][ids]
        for layer in range(self.n_layer):
            w = lambda name: self.w[f"blk.{layer}.{name}.weight"]
            x = x + self.attention(layer, rms_norm(x, w("attn_norm"), self.eps))
            h = rms_norm(x, w("ffn_norm"), self.eps)
            gate = h @ w("ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
        return rms_norm(x, self.w["output_norm.weight"], self.eps) @ self.output.T


def tokenizer(meta):
    if meta["tokenizer.ggml.model"] != "gpt2" or meta["tokenizer.ggml.pre"] != "gpt-2":
        raise ValueError("only the byte-level BPE vocabulary with the GPT-2 pattern is known")
    tokens = meta["tokenizer.ggml.tokens"]
    special = [t for t, kind in zip(tokens, meta["tokenizer.ggml.token_type"]) if kind == CONTROL]
    return bpe.Tokenizer(tokens, meta["tokenizer.ggml.merges"], special)


def bos(meta):
    return [meta["tokenizer.ggml.bos_token_id"]] if meta.get("tokenizer.ggml.add_bos_token") else []


def encode_prompt(meta, tok, text):
    """Ids of a completion prompt. Special strings in it are plain text."""
    return bos(meta) + tok.encode(text, parse_special=False)


def encode_chat(meta, tok, messages):
    """Ids of a conversation up to where the assistant's answer starts.

    Special strings in the messages are plain text: nobody can forge a turn.
    """
    start, end = tok.ids["<|im_start|>"], tok.ids["<|im_end|>"]
    ids = bos(meta)
    for message in messages:
        ids += [start, *tok.encode(message["role"] + "\n" + message["content"],
                                   parse_special=False), end, *tok.encode("\n")]
    return ids + [start, *tok.encode("assistant\n")]


def generate(model, ids, n, stop):
    """Greedy continuation: (ids, min margin, finish).

    The margin is the distance, in logits, from the best token to the next best. A
    token in @stop ends the text and is not part of it.
    """
    model.clear()
    out, margin, logits = [], float("inf"), model.forward(ids)[-1]
    while True:
        second, best = np.argsort(logits)[-2:]
        margin = min(margin, float(logits[best] - logits[second]))
        if int(best) in stop:
            return out, margin, "stop"
        out.append(int(best))
        if len(out) == n:
            return out, margin, "length"
        logits = model.forward([int(best)])[-1]


def stop_tokens(meta):
    keys = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    return {meta[key] for key in keys if key in meta}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model", help="GGUF file")
    ap.add_argument("--prompt", default="", help="text to continue")
    ap.add_argument("--chat", action="store_true", help="the prompt is a user's message")
    ap.add_argument("-n", type=int, default=48, help="tokens to generate, at most (48)")
    args = ap.parse_args()
    try:
        meta, tensors = gguf_read.read(args.model)
        tok = tokenizer(meta)
    except (OSError, ValueError) as error:
        sys.exit(f"reference.py: {args.model}: {error}")
    if args.chat:
        ids = encode_chat(meta, tok, [{"role": "user", "content": args.prompt}])
    else:
        ids = encode_prompt(meta, tok, args.prompt)
    out, margin, finish = generate(Llama(meta, tensors), ids, args.n, stop_tokens(meta))
    print(json.dumps({"prompt_tokens": ids, "tokens": out, "text": tok.decode(out),
                      "finish": finish, "min_margin": round(margin, 6)}, ensure_ascii=False))


if __name__ == "__main__":
    main()
