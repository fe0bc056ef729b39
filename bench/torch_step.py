"""Times of the same training steps in PyTorch, eager, as its tutorials write them.

usage: torch_step.py THREADS [FILTER]; prints lines of name, threads and microseconds, tab-separated.
"""

import os
import re
import sys
import time

threads = int(sys.argv[1])
chosen = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(threads)
torch.manual_seed(0)
SECONDS = 1.5


def best_time(step):
    """Microseconds a step in the best of many short turns."""
    for _ in range(10):
        step()
    start = time.perf_counter()
    step()
    steps = max(1, int(5e-3 / (time.perf_counter() - start)))
    best = float("inf")
    end = time.perf_counter() + SECONDS
    turns = 0
    while turns < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        best = min(best, (time.perf_counter() - start) / steps)
        turns += 1
    return best * 1e6


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.joined = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, context, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (p.view(batch, context, self.heads, -1).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(mixed.transpose(1, 2).reshape(batch, context, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight
        return self.head(self.norm(self.blocks(x)))


def network(widths, batch):
    layers = []
    for i, o in zip(widths, widths[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    return model, torch.rand(batch, widths[0]), torch.randint(0, widths[-1], (batch,))


def transformer():
    layers, width, heads, context, batch, vocabulary = 4, 128, 4, 64, 12, 65
    model = Transformer(layers, width, heads, context, vocabulary)
    tokens, labels = (torch.randint(0, vocabulary, (batch, context)) for _ in range(2))
    return model, tokens, labels


def step_of(model, optimizer, inputs, labels):
    def step():
        optimizer.zero_grad()
        scores = model(inputs)
        F.cross_entropy(scores.view(-1, scores.shape[-1]), labels.view(-1)).backward()
        optimizer.step()

    return step


def rows():
    sizes = [
        ((2, 8, 2), 4),
        ((784, 128, 10), 1),
        ((784, 128, 10), 32),
        ((784, 128, 10), 128),
        ((784, 500, 10), 500),
        ((784, 512, 512, 10), 128),
    ]
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=1e-3)
    adamw = lambda parameters: torch.optim.AdamW(parameters, lr=1e-5)
    for rule, make in (("SGD", sgd), ("AdamW", adamw)):
        for widths, batch in sizes:
            name = f"{'-'.join(map(str, widths))} B{batch} {rule}"
            yield name, make, lambda: network(widths, batch)
    yield "char L4 d128 h4 T64 B12 V65 AdamW", adamw, transformer


for name, make, parts in rows():
    if not chosen.search(name):
        continue
    model, inputs, labels = parts()
    step = step_of(model, make(model.parameters()), inputs, labels)
    print(name, threads, f"{best_time(step):.3f}", sep="\t", flush=True)
