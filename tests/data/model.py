# SPDX-License-Identifier: MIT
"""The llama architecture in PyTorch, for training only.

The weights have the names and shapes that GGUF gives them, so that exporting is
a copy. Tied embeddings: the output matrix is token_embd.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    n_vocab: int = 2048
    n_ctx: int = 4096
    n_embd: int = 256
    n_layer: int = 6
    n_head: int = 8
    n_head_kv: int = 2
    n_ff: int = 448
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.n_embd // self.n_head


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rope_table(cfg, n):
    """cos and sin of position * base^(-2i/head_dim), each of shape [n, head_dim/2]."""
    freq = cfg.rope_base ** (-torch.arange(0, cfg.head_dim, 2).float() / cfg.head_dim)
    angle = torch.outer(torch.arange(n).float(), freq)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    """Rotate the pairs (2i, 2i+1) of the last dimension: llama's interleaved RoPE."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def attend(q, k, v):
    """Causal attention. PyTorch's fused kernel (from 2.0 on) wins on long windows only."""
    length = q.shape[2]
    if length > 256 and hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mask = torch.full((length, length), -math.inf, dtype=v.dtype).triu(1)
    score = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + mask
    return score.softmax(-1, dtype=v.dtype) @ v


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        kv = cfg.n_head_kv * cfg.head_dim
        self.attn_norm = RMSNorm(cfg.n_embd, cfg.eps)
        self.attn_q = nn.Linear(cfg.n_embd, cfg.n_embd, bias=False)
        self.attn_k = nn.Linear(cfg.n_embd, kv, bias=False)
        self.attn_v = nn.Linear(cfg.n_embd, kv, bias=False)
        self.attn_output = nn.Linear(cfg.n_embd, cfg.n_embd, bias=False)
        self.ffn_norm = RMSNorm(cfg.n_embd, cfg.eps)
        self.ffn_gate = nn.Linear(cfg.n_embd, cfg.n_ff, bias=False)
        self.ffn_up = nn.Linear(cfg.n_embd, cfg.n_ff, bias=False)
        self.ffn_down = nn.Linear(cfg.n_ff, cfg.n_embd, bias=False)

    def attention(self, x, cos, sin):
        batch, length, _ = x.shape
        heads = lambda y, n: y.view(batch, length, n, self.cfg.head_dim).transpose(1, 2)
        q = rotate(heads(self.attn_q(x), self.cfg.n_head), cos, sin)
        k = rotate(heads(self.attn_k(x), self.cfg.n_head_kv), cos, sin)
        v = heads(self.attn_v(x), self.cfg.n_head_kv)
        group = self.cfg.n_head // self.cfg.n_head_kv
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        y = attend(q, k, v)
        return self.attn_output(y.transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attn_norm(x), cos, sin)
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Model(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.token_embd = nn.Embedding(cfg.n_vocab, cfg.n_embd)
        self.blk = nn.ModuleList(Layer(cfg) for _ in range(cfg.n_layer))
        self.output_norm = RMSNorm(cfg.n_embd, cfg.eps)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                deep = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * cfg.n_layer) if deep else 1))

    def forward(self, ids, targets):
        """Mean cross-entropy in nats of @targets given @ids, both [batch, length]."""
        cos, sin = rope_table(self.cfg, ids.shape[1])
        x = self.token_embd(ids)
        for layer in self.blk:
            x = layer(x, cos.to(x.dtype), sin.to(x.dtype))
        logits = F.linear(self.output_norm(x), self.token_embd.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
