#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""TAP test of the shipped model, its files and the reference implementation."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP numpy is not installed (python3-numpy)")
    sys.exit(0)

import bpe  # noqa: E402
import gguf_read  # noqa: E402
import gguf_write  # noqa: E402
import reference  # noqa: E402

MODEL = HERE / "hawk-tiny.gguf"
MAX_BYTES = 4_000_000


def size_fits_the_limit(meta, tensors, golden):
    assert MODEL.stat().st_size <= MAX_BYTES, MODEL.stat().st_size


def shape_is_what_the_card_says(meta, tensors, golden):
    card = (HERE / "MODEL_CARD.md").read_text(encoding="utf-8")
    count = sum(t.size for t in tensors.values())
    assert f"{count:,} parameters" in card, f"{count:,} parameters"
    assert f"{MODEL.stat().st_size:,} bytes" in card, f"{MODEL.stat().st_size:,} bytes"
    assert meta["llama.attention.head_count"] > meta["llama.attention.head_count_kv"]
    assert meta["llama.context_length"] >= 2048


def special_tokens_are_control(meta, tensors, golden):
    tok = reference.tokenizer(meta)
    assert tok.special == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], tok.special
    assert len(tok.encode("<|im_end|>", parse_special=True)) == 1
    assert len(tok.encode("<|im_end|>", parse_special=False)) > 1
    for special in re.findall(r"<\|.*?\|>", meta["tokenizer.chat_template"]):
        assert special in tok.special, special


def tokenizer_gives_the_golden_ids(meta, tensors, golden):
    tok = reference.tokenizer(meta)
    for case in golden["tokenizer"]:
        ids = tok.encode(case["text"], parse_special=False)
        assert ids == case["tokens"], case["text"]
        assert tok.decode(ids) == case["text"], case["text"]


def generation_gives_the_golden_ids(meta, tensors, golden):
    tok, model = reference.tokenizer(meta), reference.Llama(meta, tensors)
    for case in golden["generation"]:
        ids = (reference.encode_chat(meta, tok, case["messages"]) if "messages" in case
               else reference.encode_prompt(meta, tok, case["prompt"]))
        assert ids == case["prompt_tokens"], case["kind"]
        out, _, finish = reference.generate(model, ids, len(case["tokens"]) or 1,
                                            reference.stop_tokens(meta))
        assert out == case["tokens"], case["kind"]
        assert finish == case["finish"] or len(out) == len(case["tokens"]), case["kind"]


def chunks_give_the_logits_of_one_pass(meta, tensors, golden):
    model = reference.Llama(meta, tensors)
    ids = next(c for c in golden["generation"] if c["kind"] == "long")["prompt_tokens"]
    whole = model.forward(ids)
    model.clear()
    parts = np.concatenate([model.forward(ids[:1]), model.forward(ids[1:100]),
                            model.forward(ids[100:])])
    assert np.abs(whole - parts).max() < 1e-3, np.abs(whole - parts).max()


def text_at_the_end_of_the_context_is_still_predicted(meta, tensors, golden):
    """A text repeated fills the context; its last copy costs at most 1 nat a token more.

    With positions that were never trained, or rotated wrongly, it costs several.
    """
    model = reference.Llama(meta, tensors)
    ids = next(c for c in golden["generation"] if c["kind"] == "long")["prompt_tokens"][1:]
    n = model.n_ctx
    full = (reference.bos(meta) + ids * (n // len(ids) + 1))[:n]
    logits = model.forward(full[:-1])
    top = logits.max(axis=1, keepdims=True)
    logp = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    loss = -logp[np.arange(n - 1), full[1:]]
    first, last = loss[:len(ids)].mean(), loss[-len(ids):].mean()
    assert np.isfinite(loss).all() and last < first + 1, (first, last)


def q8_0_is_exact_to_half_a_step(meta, tensors, golden):
    rows = np.random.default_rng(7).normal(size=(5, 96)).astype(np.float32)
    rows[2, :32] = 0
    back = gguf_read.dequantize(8, gguf_write.quantize_q8_0(rows), rows.size).reshape(rows.shape)
    step = np.abs(rows.reshape(-1, 32)).max(axis=1) / 127
    error = np.abs(rows - back).reshape(-1, 32).max(axis=1)
    assert (error <= step * 0.57).all(), (error / np.maximum(step, 1e-9)).max()


def training_a_vocabulary_merges_the_commonest_pair(meta, tensors, golden):
    tok = bpe.train(["abab abab cab"], 259, ["<|end|>"])
    assert tok.merges == ["a b", "ab ab"], tok.merges
    assert tok.encode("abab<|end|>") == [257, 258]


TESTS = [size_fits_the_limit, shape_is_what_the_card_says, special_tokens_are_control,
         tokenizer_gives_the_golden_ids, generation_gives_the_golden_ids,
         chunks_give_the_logits_of_one_pass, text_at_the_end_of_the_context_is_still_predicted,
         q8_0_is_exact_to_half_a_step, training_a_vocabulary_merges_the_commonest_pair]


def main():
    meta, tensors = gguf_read.read(MODEL)
    golden = json.loads((HERE / "golden.json").read_text(encoding="utf-8"))
    print(f"1..{len(TESTS)}")
    failed = 0
    for i, test in enumerate(TESTS, 1):
        name = test.__name__.replace("_", " ")
        try:
            test(meta, tensors, golden)
            print(f"ok {i} - {name}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"not ok {i} - {name}\n# {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
