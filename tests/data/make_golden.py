#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write golden.json: what the tests expect of hawk-tiny.gguf, from reference.py.

"tokenizer" holds texts with their ids (no BOS). "generation" holds prompts with
their ids (BOS first) and the greedy continuation. Each kind of prompt has a few
candidates; the one whose closest call between the best and the second-best token
is widest is kept, so that rounding in another implementation does not flip one.
"""

import argparse
import json
import random

import gguf_read
import reference

N_TOKENS = 48
CLEAR_MARGIN = 0.02  # logits; KV in F16 moves them by less than 0.01

LONG = (
    "A process sees its own address space, and the kernel gives it the illusion that all of that "
    "space is memory. The truth is less generous. Physical memory is divided into page frames, and "
    "a page table maps each page of the address space to a frame, or to nothing at all. When a "
    "program touches a page that has no frame, the processor raises a page fault and the kernel "
    "looks for the data: it may have to allocate an empty frame, to read the page from a file, or "
    "to bring it back from the swap device. All of this takes time, and a read from a drive takes "
    "the longest.\n\n"
    "A cache for a language model has the same shape. Each token that the model has read leaves a "
    "key and a value behind in every layer, and the next token needs all of them. They are written "
    "once and read many times. As a conversation grows, so does the memory that holds it, and when "
    "the user stops to think the memory does nothing. It is tempting to throw it away, but then "
    "the whole conversation must be computed again when the next message arrives. It is cheaper to "
    "move the blocks that nobody needs to a slower device, and to read them back when the "
    "conversation goes on.\n\n"
    "The kernel is a good place for this work. It knows how much memory is free, it can talk to "
    "the drive without a copy, and it outlives the process that computed the blocks.\n\n")

PROMPTS = {
    "short": ["The Linux kernel is", "This document describes", "The page cache is used to",
              "Memory management"],
    "long": [LONG + tail for tail in (
        "In order to", "The driver must", "The page table is", "If the device is")],
    "non-ascii": [
        "Größe und Übergabe: naïve café, 你好世界, привет, 🙂 €. The device",
        "Größe und Übergabe: naïve café, 你好世界, привет, 🙂 €. The kernel",
        "Größe und Übergabe: naïve café, 你好世界, привет, 🙂 €. This file",
        "Größe und Übergabe: naïve café, 你好世界, привет, 🙂 €. If the"],
}
CHATS = {
    "chat": [[{"role": "user", "content": text}] for text in (
        "What is a page table?", "What is virtual memory?", "How does the scheduler work?",
        "Tell me about block devices.")],
    "chat-turns": [[
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "What is the page cache?"},
        {"role": "assistant", "content": "The page cache holds the pages of files in memory."},
        {"role": "user", "content": text}] for text in (
            "How does it work?", "What is swap?", "Tell me about memory pressure.",
            "Explain a <|im_end|> in a message.", "Where does it live?", "How large is it?",
            "Why is it fast?", "Who writes the pages back?")],
}

TEXTS = [
    "", " ", "\n", "a", "Hello, world!", "  two  spaces\t\ttabs \n\n\n lines \r\n",
    "don't I'll we've they're she'd it's I'm DON'T 's 'x", "1234567890 3.14 0xdeadbeef 2²³ Ⅻ ½",
    "__init__ /dev/hawk --kernel=6.12 a_b-c::d", "ends with space ",
    "<|im_start|>user\nnot a turn<|im_end|> <|endoftext|>",
    "Größe naïve façade Ærø", "你好，世界。こんにちは", "привет мир Ελλάδα עברית हिन्दी",
    "🙂👩\u200d👩\u200d👧 flags 🇫🇮", "e\u0301 combining, \u00a0 no-break, \u2003 em, \ufeff bom",
    "\u0000\u0001\u007f controls", "x" * 70, "The quick brown fox jumps over the lazy dog.",
]


def random_texts(count, seed=20240229):
    """Strings of random code points, so that no test can be right by chance."""
    rng = random.Random(seed)
    spans = [(0x20, 0x7E)] * 4 + [(0x09, 0x0D), (0xA0, 0x17F), (0x370, 0x52F), (0x2000, 0x206F),
                                  (0x2150, 0x218F), (0x4E00, 0x4EFF), (0x1F600, 0x1F64F)]
    return ["".join(chr(rng.randint(*rng.choice(spans))) for _ in range(rng.randint(5, 40)))
            for _ in range(count)]


def best_case(meta, tok, model, kind, candidates):
    cases = []
    for candidate in candidates:
        if isinstance(candidate, str):
            case = {"kind": kind, "prompt": candidate}
            ids = reference.encode_prompt(meta, tok, candidate)
        else:
            case = {"kind": kind, "messages": candidate}
            ids = reference.encode_chat(meta, tok, candidate)
        out, margin, finish = reference.generate(model, ids, N_TOKENS,
                                                 reference.stop_tokens(meta))
        cases.append({**case, "prompt_tokens": ids, "tokens": out, "text": tok.decode(out),
                      "finish": finish, "min_margin": round(margin, 4)})
    # A text that stops at once is a weak test whatever its margin, and one with a very
    # close call tests rounding, not arithmetic.
    clear = [c for c in cases if c["min_margin"] >= CLEAR_MARGIN] or cases
    full = [c for c in clear if c["finish"] == "length"] or clear
    return max(full, key=lambda c: c["min_margin"])


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model", help="GGUF file")
    ap.add_argument("out", help="JSON file to write")
    args = ap.parse_args()
    meta, tensors = gguf_read.read(args.model)
    model, tok = reference.Llama(meta, tensors), reference.tokenizer(meta)
    texts = TEXTS + random_texts(24)
    golden = {
        "spdx": "SPDX-License-Identifier: MIT",
        "made_by": "make_golden.py: greedy, float32, weights dequantised; margins in logits",
        "tokenizer": [{"text": t, "tokens": tok.encode(t, parse_special=False)} for t in texts],
        "generation": [best_case(meta, tok, model, kind, c)
                       for kind, c in {**PROMPTS, **CHATS}.items()],
    }
    for case in golden["tokenizer"]:
        if tok.decode(case["tokens"]) != case["text"]:
            raise SystemExit(f"does not survive the tokenizer: {case['text']!r}")
    with open(args.out, "w", encoding="utf-8") as out:
        json.dump(golden, out, ensure_ascii=False, indent=1)
        out.write("\n")
    for case in golden["generation"]:
        print(f"{case['kind']}: {len(case['prompt_tokens'])} prompt tokens, {case['finish']} "
              f"after {len(case['tokens'])}, margin {case['min_margin']}: {case['text']!r}")


if __name__ == "__main__":
    main()
