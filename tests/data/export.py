#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write a training checkpoint as GGUF: matrices Q8_0, norms F32. Needs PyTorch."""

import argparse
import json
import pathlib

import torch

import dataset
import gguf_write as gw
from model import Config

NORMAL, CONTROL = 1, 3
FILE_TYPE_Q8_0 = 7
# What the model was trained on and no more: positions past this are untested.
CONTEXT = 2048
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def add_model(out, cfg):
    out.add("general.architecture", gw.STRING, "llama")
    out.add("general.name", gw.STRING, "hawk-tiny")
    out.add("general.description", gw.STRING,
            "Test model of the Hawk project, trained on the Linux kernel's documentation")
    out.add("general.license", gw.STRING, "gpl-2.0")
    out.add("general.file_type", gw.U32, FILE_TYPE_Q8_0)
    out.add("general.quantization_version", gw.U32, 2)
    out.add("llama.vocab_size", gw.U32, cfg.n_vocab)
    out.add("llama.context_length", gw.U32, CONTEXT)
    out.add("llama.embedding_length", gw.U32, cfg.n_embd)
    out.add("llama.block_count", gw.U32, cfg.n_layer)
    out.add("llama.feed_forward_length", gw.U32, cfg.n_ff)
    out.add("llama.attention.head_count", gw.U32, cfg.n_head)
    out.add("llama.attention.head_count_kv", gw.U32, cfg.n_head_kv)
    out.add("llama.attention.layer_norm_rms_epsilon", gw.F32, cfg.eps)
    out.add("llama.rope.dimension_count", gw.U32, cfg.head_dim)
    out.add("llama.rope.freq_base", gw.F32, cfg.rope_base)


def add_vocabulary(out, vocab):
    tokens = vocab["tokens"]
    out.add("tokenizer.ggml.model", gw.STRING, "gpt2")
    out.add("tokenizer.ggml.pre", gw.STRING, "gpt-2")
    out.add_array("tokenizer.ggml.tokens", gw.STRING, tokens)
    out.add_array("tokenizer.ggml.token_type", gw.I32,
                  [CONTROL if t in vocab["special"] else NORMAL for t in tokens])
    out.add_array("tokenizer.ggml.merges", gw.STRING, vocab["merges"])
    out.add("tokenizer.ggml.bos_token_id", gw.U32, tokens.index(dataset.END))
    out.add("tokenizer.ggml.eos_token_id", gw.U32, tokens.index(dataset.END))
    out.add("tokenizer.ggml.eot_token_id", gw.U32, tokens.index(dataset.TURN_END))
    out.add("tokenizer.ggml.add_bos_token", gw.BOOL, True)
    out.add("tokenizer.chat_template", gw.STRING, CHAT_TEMPLATE)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("checkpoint", help="WORK/final.pt of train.py")
    ap.add_argument("vocab", type=pathlib.Path, help="WORK/vocab.json of train.py")
    ap.add_argument("out", help="GGUF file to write")
    args = ap.parse_args()
    state = torch.load(args.checkpoint)
    out = gw.Writer()
    add_model(out, Config(**state["config"]))
    add_vocabulary(out, json.loads(args.vocab.read_text(encoding="utf-8")))
    for name, weight in state["model"].items():
        out.add_tensor(name, weight.float().numpy())
    out.write(args.out)
    print(f"{args.out}: {pathlib.Path(args.out).stat().st_size} bytes, "
          f"trained: {json.dumps(state['note'])}")


if __name__ == "__main__":
    main()
