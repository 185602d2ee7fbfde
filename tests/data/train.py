#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Train the test model on the output of corpus.py. Needs PyTorch 1.13 or later.

The schedule runs on the clock, so that a run ends when it is told to, on any
machine: warm up for 2 %, hold, then from 55 % of the time on decay the learning
rate linearly to zero. Windows are of 128 tokens first, because attention is what
costs a CPU most, then longer, at last of 2,048; a batch is always 4,096 tokens.

The vocabulary is learnt on the first run and kept in WORK/vocab.json. Checkpoints
go to WORK/last.pt every two minutes, WORK/hold.pt just before the decay, and
WORK/final.pt at the end. Start from one of them with --init.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import time

import numpy as np
import torch

import bpe
import dataset
from model import Config, Model
from optim import Muon

BATCH_TOKENS = 4096
WARM_UP, DECAY_FROM = 0.02, 0.55
WINDOW_FROM = ((0.92, 2048), (0.80, 1024), (0.60, 256), (0.0, 128))


def vocabulary(work, texts, n_vocab):
    path = work / "vocab.json"
    if not path.exists():
        tok = bpe.train(texts, n_vocab, dataset.SPECIAL)
        path.write_text(json.dumps({"tokens": tok.tokens, "merges": tok.merges,
                                    "special": tok.special}))
    return bpe.Tokenizer(**json.loads(path.read_text()))


def stream(tok, texts):
    """All texts as one array of ids, each text preceded by the end-of-text token."""
    end, ids = tok.ids[dataset.END], []
    for text in texts:
        ids.append(end)
        ids.extend(tok.encode(text))
    return np.array(ids, dtype=np.int64)


class Windows:
    """Windows of the stream without replacement: an epoch at a time, shuffled."""

    def __init__(self, ids, end, seed):
        self.ids, self.end = ids, end
        self.rng = np.random.default_rng(seed)
        self.queue, self.length, self.epochs = [], 0, 0.0

    def batch(self, length):
        if length != self.length:
            self.queue, self.length = [], length
        rows = []
        while len(rows) < BATCH_TOKENS // length:
            if not self.queue:
                starts = np.arange(self.rng.integers(length), len(self.ids) - length - 1, length)
                self.queue = list(self.rng.permutation(starts))
            start = self.queue.pop()
            rows.append(self.ids[start:start + length + 1])
        self.epochs += BATCH_TOKENS / len(self.ids)
        rows = torch.from_numpy(np.stack(rows))
        # Position 0 always holds the end-of-text token when the model is used.
        rows[:, 0] = self.end
        return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def held_out_loss(model, ids, end, length=1024, windows=32):
    """Nats per token over evenly spaced windows; evaluate.py has the exact figure."""
    model.eval()
    starts = np.linspace(0, len(ids) - length - 2, windows).astype(int)
    rows = torch.from_numpy(np.stack([ids[s:s + length + 1] for s in starts]))
    rows[:, 0] = end
    loss = [model(part[:, :-1], part[:, 1:]).item() for part in rows.split(8)]
    model.train()
    return sum(loss) / len(loss)


def rate(done):
    """Learning-rate factor when the fraction @done of the time has passed."""
    return min(1.0, done / WARM_UP, max(0.0, (1 - done) / (1 - DECAY_FROM)))


def optimizers(model, args):
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "blk" in n]
    others = [p for n, p in model.named_parameters() if p.dim() == 1 or "blk" not in n]
    return [Muon(matrices, lr=args.lr, weight_decay=args.weight_decay),
            torch.optim.AdamW(others, lr=args.lr_embd, betas=(0.9, 0.95), weight_decay=0.0)]


def save(path, model, opts, note):
    torch.save({"model": model.state_dict(), "opts": [o.state_dict() for o in opts],
                "config": dataclasses.asdict(model.cfg), "note": note}, str(path) + ".new")
    os.replace(str(path) + ".new", path)


class Progress:
    """Prints the loss and the rate since the last line, every 50 steps."""

    def __init__(self):
        self.at, self.tokens = time.time(), 0

    def line(self, done, step, trained, epochs, loss):
        now = time.time()
        print(f"{100 * done:5.1f} % step {step} tokens {trained / 1e6:.2f}M epoch {epochs:.2f} "
              f"loss {loss:.3f} {self.tokens / (now - self.at):.0f} tokens/s", flush=True)
        self.at, self.tokens = now, 0


def set_rate(opts, factor):
    for o in opts:
        for group in o.param_groups:
            group["lr"] = group.setdefault("full_lr", group["lr"]) * factor


def one_step(model, opts, ids, targets, bf16):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        loss = model(ids, targets)
    loss.backward()
    for o in opts:
        o.step()
        o.zero_grad(set_to_none=True)
    return loss.item()


def train(model, opts, data, held, args):
    begin, step, trained = time.time(), 0, args.trained_before
    saved, held_back, progress = begin, False, Progress()
    while (done := (time.time() - begin) / (60 * args.minutes)) < 1:
        if done >= DECAY_FROM and not held_back:
            save(args.work / "hold.pt", model, opts, {"tokens": trained})
            held_back = True
        set_rate(opts, rate(done))
        ids, targets = data.batch(next(n for start, n in WINDOW_FROM if done >= start))
        loss = one_step(model, opts, ids, targets, args.bf16)
        step += 1
        trained += ids.numel()
        progress.tokens += ids.numel()
        if step % 50 == 0:
            progress.line(done, step, trained, data.epochs, loss)
        if time.time() - saved > 120:
            save(args.work / "last.pt", model, opts, {"tokens": trained})
            saved = time.time()
    loss = held_out_loss(model, held, data.end)
    note = {"tokens": trained, "steps": step, "seconds": time.time() - begin,
            "epochs": data.epochs, "held_out_loss": loss, "perplexity": math.exp(loss)}
    save(args.work / "final.pt", model, opts, note)
    print(json.dumps(note))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.
                                 RawDescriptionHelpFormatter)
    ap.add_argument("corpus", help="JSON lines from corpus.py")
    ap.add_argument("work", type=pathlib.Path, help="folder for vocabulary and checkpoints")
    ap.add_argument("--minutes", type=float, default=30, help="training time (30)")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--lr", type=float, default=0.02, help="Muon's rate (0.02)")
    ap.add_argument("--lr-embd", type=float, default=0.004, help="AdamW's rate (0.004)")
    ap.add_argument("--weight-decay", type=float, default=0.05)
    ap.add_argument("--chat-share", type=float, default=0.35,
                    help="share of the chats that can be made which is used (0.35)")
    ap.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    ap.add_argument("--init", help="checkpoint to start from")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)

    docs = dataset.load(args.corpus, "train")
    tok = vocabulary(args.work, map(dataset.render_document, docs), Config.n_vocab)
    end = tok.ids[dataset.END]
    ids = stream(tok, dataset.texts(docs, args.seed, args.chat_share))
    held = stream(tok, map(dataset.render_document, dataset.load(args.corpus, "held-out")))
    model = Model(Config())
    opts = optimizers(model, args)
    args.trained_before = 0
    if args.init:
        state = torch.load(args.init)
        model.load_state_dict(state["model"])
        for o, s in zip(opts, state["opts"]):
            o.load_state_dict({**s, "param_groups": o.state_dict()["param_groups"]})
        args.trained_before = state["note"]["tokens"]
    print(f"{sum(p.numel() for p in model.parameters())} parameters, "
          f"{len(ids)} training tokens, {len(held)} held-out tokens", flush=True)
    train(model, opts, Windows(ids, end, args.seed), held, args)


if __name__ == "__main__":
    main()
