#!/usr/bin/env python3
"""Writes nn.json beside itself: what the tests of random numbers, losses and optimizers compare with.

Needs numpy and jax (written with numpy 2.4.6, jax 0.10.2). Nothing here calls mulgrad:
- random: Philox4x32-10 written again from the paper's definition, on Python's integers
- cross entropy, mse: jax in f64, through its own log_softmax and an indexed pick; gradients by jax.grad
- optimizers: the formulas of PyTorch's documentation of SGD and AdamW, in numpy f64
"""
import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
MASK = 0xFFFFFFFF


def philox(counter, key):
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & MASK, (a >> 32) ^ counter[3] ^ key[1], a & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def words(seed, stream):
    block = 0
    while True:
        yield from philox([block & MASK, block >> 32, stream & MASK, stream >> 32], [seed & MASK, seed >> 32])
        block += 1


def u64(source):
    low = next(source)
    return low | next(source) << 32


def uniform(source):
    return (u64(source) >> 11) / 2.0**53


def normal(source):
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(source)))
    return radius * math.cos(2.0 * math.pi * uniform(source))


def below(source, bound):
    while True:
        draw = u64(source)
        if draw >= 2**64 % bound:
            return draw % bound


def shuffled(n, seed, epoch):
    source = words(seed, 2**63 + epoch)
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(source, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def take(count, draw, seed, stream, *arguments):
    source = words(seed, stream)
    return [draw(source, *arguments) for _ in range(count)]


def random_cases():
    seed, stream = 0x0123456789ABCDEF, 0x0FEDCBA987654321
    big = 3 * 2**62 + 1  # a quarter of the draws is thrown away
    return {
        "seed": seed,
        "stream": stream,
        "words": take(9, next, seed, stream),
        "uniform_f32": take(5, lambda s: (next(s) >> 8) / 2.0**24, seed, stream),
        "uniform_f64": take(5, uniform, seed, stream),
        "normal": take(5, normal, seed, stream),
        "bound": big,
        "below": take(20, below, seed, stream, big),
        "shuffled": [
            {"n": n, "seed": s, "epoch": e, "order": shuffled(n, s, e)}
            for n, s, e in [(10, 0, 0), (10, 0, 1), (10, 1, 0), (1, 5, 5), (0, 5, 5), (23, seed, 2**40)]
        ],
    }


def cross_entropy_case(logits, labels):
    def loss(z):
        rows = jnp.arange(z.shape[0])
        return -jnp.mean(jax.nn.log_softmax(z, axis=1)[rows, jnp.array(labels)])

    z = jnp.array(logits)
    return {
        "sizes": list(z.shape),
        "logits": np.ravel(z).tolist(),
        "labels": labels,
        "loss": float(loss(z)),
        "gradient": np.ravel(jax.grad(loss)(z)).tolist(),
    }


def mse_case(prediction, target):
    def loss(p):
        return jnp.mean((p - jnp.array(target)) ** 2)

    p = jnp.array(prediction)
    return {
        "sizes": list(p.shape),
        "prediction": np.ravel(p).tolist(),
        "target": np.ravel(target).tolist(),
        "loss": float(loss(p)),
        "gradient": np.ravel(jax.grad(loss)(p)).tolist(),
    }


def sgd_case(start, gradients, rate, momentum, weight_decay):
    p, buffer, steps = start.copy(), None, []
    for g in gradients:
        if weight_decay != 0:
            g = g + weight_decay * p
        if momentum != 0:
            buffer = g if buffer is None else momentum * buffer + g
            g = buffer
        p = p - rate * g
        steps.append(p.tolist())
    return {"rate": rate, "momentum": momentum, "weight_decay": weight_decay, "steps": steps}


def adamw_case(start, gradients, rate, beta1, beta2, epsilon, weight_decay):
    p, steps = start.copy(), []
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gradients, start=1):
        p = p - rate * weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        p = p - rate * m_hat / (np.sqrt(v_hat) + epsilon)
        steps.append(p.tolist())
    return {"rate": rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon,
            "weight_decay": weight_decay, "steps": steps}


def main():
    rng = np.random.default_rng(7)
    start = np.array([0.5, -1.25, 3.0, 0.0, -0.75, 1e-3])
    gradients = rng.normal(size=(5, start.size)) * np.array([1, 1e-3, 10, 1, 0, 1e-8])
    golden = {
        "generator": "tests/goldens/make_nn_goldens.py",
        "random": random_cases(),
        "cross_entropy": [
            cross_entropy_case(rng.normal(size=(3, 4)).tolist(), [2, 0, 3]),
            cross_entropy_case([[1000.0, 0.0, -1000.0], [-1000.0, -1001.0, -1002.0]], [1, 0]),
            cross_entropy_case([[0.25]], [0]),
            cross_entropy_case((3 * rng.normal(size=(5, 10))).tolist(), [9, 9, 0, 4, 1]),
        ],
        "mse": [
            mse_case(rng.normal(size=(3, 4)), rng.normal(size=(3, 4))),
            mse_case(rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 2))),
        ],
        "optimizers": {
            "start": start.tolist(),
            "gradients": gradients.tolist(),
            "sgd": [
                sgd_case(start, gradients, 0.1, 0.0, 0.0),
                sgd_case(start, gradients, 0.1, 0.0, 0.05),
                sgd_case(start, gradients, 0.05, 0.9, 0.0),
                sgd_case(start, gradients, 0.05, 0.9, 0.05),
            ],
            "adamw": [
                adamw_case(start, gradients, 1e-3, 0.9, 0.999, 1e-8, 0.01),
                adamw_case(start, gradients, 0.1, 0.8, 0.95, 1e-3, 0.0),
                adamw_case(start, gradients, 0.1, 0.0, 0.99, 1e-8, 0.2),
            ],
        },
    }
    path = pathlib.Path(__file__).with_name("nn.json")
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
