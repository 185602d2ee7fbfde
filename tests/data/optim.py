# SPDX-License-Identifier: MIT
"""Muon: momentum whose update matrix is made orthogonal before it is applied.

K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
It needs markedly fewer tokens than AdamW here, which is what a CPU has least of.
"""

import torch


def orthogonalize(g, steps=5):
    """Push the singular values of @g towards 1 with a quintic Newton-Schulz iteration.

    The coefficients are the published ones: steepest at zero, at the price of
    singular values that end anywhere in about 0.7 to 1.2.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if tall else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    """For the 2-D weights inside the layers; embeddings and norms take AdamW."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                speed = self.state[p].setdefault("momentum", torch.zeros_like(p))
                speed.lerp_(p.grad, 1 - group["momentum"])
                update = orthogonalize(p.grad.lerp(speed, group["momentum"]))
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * scale)
