"""Times of the same training steps in JAX: one jitted function that owns its state.

usage: jax_step.py THREADS [FILTER]; prints lines of name, threads and microseconds, tab-separated.
"""

import os
import re
import sys
import time

threads = int(sys.argv[1])
chosen = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
if threads == 1:
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

SECONDS = 1.5
SGD_RATE = 1e-3
ADAM = dict(rate=1e-5, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.01)


def best_time(step, state, data):
    """Microseconds a step in the best of many short turns."""
    for _ in range(10):
        state = step(state, *data)
    jax.block_until_ready(state)
    start = time.perf_counter()
    state = step(state, *data)
    jax.block_until_ready(state)
    steps = max(1, int(5e-3 / (time.perf_counter() - start)))
    best = float("inf")
    end = time.perf_counter() + SECONDS
    turns = 0
    while turns < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(steps):
            state = step(state, *data)
        jax.block_until_ready(state)
        best = min(best, (time.perf_counter() - start) / steps)
        turns += 1
    return best * 1e6


def sgd_step(loss):
    def step(parameters, *data):
        gradients = jax.grad(loss)(parameters, *data)
        return jax.tree.map(lambda p, g: p - SGD_RATE * g, parameters, gradients)

    return jax.jit(step, donate_argnums=0), lambda parameters: parameters


def adamw_step(loss):
    def step(state, *data):
        parameters, mean, square, count = state
        count = count + 1
        gradients = jax.grad(loss)(parameters, *data)
        mean = jax.tree.map(
            lambda m, g: ADAM["beta1"] * m + (1 - ADAM["beta1"]) * g, mean, gradients
        )
        square = jax.tree.map(
            lambda v, g: ADAM["beta2"] * v + (1 - ADAM["beta2"]) * g * g, square, gradients
        )
        c1 = 1 - ADAM["beta1"] ** count
        c2 = 1 - ADAM["beta2"] ** count

        def moved(p, m, v):
            kept = p * (1 - ADAM["rate"] * ADAM["decay"])
            return kept - ADAM["rate"] * (m / c1) / (jnp.sqrt(v / c2) + ADAM["epsilon"])

        return jax.tree.map(moved, parameters, mean, square), mean, square, count

    def start(parameters):
        def zeros():
            return jax.tree.map(jnp.zeros_like, parameters)

        return parameters, zeros(), zeros(), jnp.float32(0)

    return jax.jit(step, donate_argnums=0), start


def cross_entropy(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -jnp.mean(picked)


def network(widths, batch):
    random = np.random.default_rng(0)
    parameters = [
        (
            jnp.asarray(random.uniform(-1, 1, (i, o)) / np.sqrt(i), jnp.float32),
            jnp.zeros((o,), jnp.float32),
        )
        for i, o in zip(widths, widths[1:])
    ]
    inputs = jnp.asarray(random.random((batch, widths[0])), jnp.float32)
    labels = jnp.asarray(random.integers(0, widths[-1], batch), jnp.int32)

    def loss(parameters, x, y):
        for weight, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = parameters[-1]
        return cross_entropy(x @ weight + bias, y)

    return loss, parameters, (inputs, labels)


def transformer(layers, width, heads, context, batch, vocabulary):
    """Blocks with the norm in front, learned positions, linear maps without bias."""
    random = np.random.default_rng(0)

    def matrix(*shape):
        return jnp.asarray(random.normal(0, 0.02, shape), jnp.float32)

    def norm_parameters():
        return jnp.ones(width), jnp.zeros(width)

    parameters = dict(
        tokens=matrix(vocabulary, width),
        positions=matrix(context, width),
        norm=norm_parameters(),
        head=matrix(width, vocabulary),
        blocks=[
            dict(
                norm1=norm_parameters(),
                qkv=matrix(width, 3 * width),
                joined=matrix(width, width),
                norm2=norm_parameters(),
                up=matrix(width, 4 * width),
                down=matrix(4 * width, width),
            )
            for _ in range(layers)
        ],
    )
    seen = jnp.tril(jnp.ones((context, context), bool))
    size = width // heads

    def norm(x, scale_and_shift):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * scale_and_shift[0] + scale_and_shift[1]

    def attention(x, block):
        parts = jnp.split(x @ block["qkv"], 3, axis=-1)
        q, k, v = (p.reshape(batch, context, heads, size).swapaxes(1, 2) for p in parts)
        scores = jnp.where(seen, q @ k.swapaxes(-1, -2) / np.sqrt(size), -jnp.inf)
        mixed = jax.nn.softmax(scores, axis=-1) @ v
        return mixed.swapaxes(1, 2).reshape(batch, context, width) @ block["joined"]

    def loss(parameters, tokens, labels):
        x = parameters["tokens"][tokens] + parameters["positions"]
        for block in parameters["blocks"]:
            x = x + attention(norm(x, block["norm1"]), block)
            hidden = jax.nn.gelu(norm(x, block["norm2"]) @ block["up"], approximate=True)
            x = x + hidden @ block["down"]
        return cross_entropy(norm(x, parameters["norm"]) @ parameters["head"], labels)

    tokens, labels = (
        jnp.asarray(random.integers(0, vocabulary, (batch, context)), jnp.int32) for _ in range(2)
    )
    return loss, parameters, (tokens, labels)


def rows():
    sizes = [
        ((2, 8, 2), 4),
        ((784, 128, 10), 1),
        ((784, 128, 10), 32),
        ((784, 128, 10), 128),
        ((784, 500, 10), 500),
        ((784, 512, 512, 10), 128),
    ]
    for rule, make in (("SGD", sgd_step), ("AdamW", adamw_step)):
        for widths, batch in sizes:
            name = f"{'-'.join(map(str, widths))} B{batch} {rule}"
            yield name, make, lambda: network(widths, batch)
    yield "char L4 d128 h4 T64 B12 V65 AdamW", adamw_step, lambda: transformer(4, 128, 4, 64, 12, 65)


for name, make, model in rows():
    if not chosen.search(name):
        continue
    loss, parameters, data = model()
    step, start = make(loss)
    print(name, threads, f"{best_time(step, start(parameters), data):.3f}", sep="\t", flush=True)
