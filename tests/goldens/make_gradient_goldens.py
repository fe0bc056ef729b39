"""Computes tests/goldens/gradients.json: first and second derivatives of composite functions.

    python3 tests/goldens/make_gradient_goldens.py

Needs numpy and jax (written with jax 0.10.2); everything is f64 and computed by JAX alone. The
functions are written again in tests/autodiff/gradient_golden_test.cc. For y = f(x0, x1 ...), a
cotangent dy and a direction v per float input, a case holds
  output     y
  gradients  g_i = d <dy, y> / d x_i
  second     d (sum_j <v_j, g_j>) / d x_i
Inputs keep away from kinks and ties.
"""
import json
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(20240607)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    return RNG.uniform(0.3, 2.0, size=shape)


def distinct(*shape):
    count = int(np.prod(shape))
    return (RNG.permutation(count).reshape(shape) - count / 2 + 0.25) / 4


def softmax_cross_entropy(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -jnp.mean(picked)


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / jnp.sqrt(variance + 1e-5) * gain + bias


def attention(q, k, v):
    scores = jnp.einsum("btd,bsd->bts", q, k) / 2
    return jnp.einsum("bts,bsd->btd", jax.nn.softmax(scores, axis=-1), v)


def gelu(x):
    return 0.5 * x * (1 + jax.lax.erf(x / np.sqrt(2)))


def mlp(x, w1, b1, w2):
    hidden = jnp.tanh(x @ w1 + b1)
    return jnp.mean((jax.nn.sigmoid(hidden @ w2) - 0.5) ** 2)


def elementary(x):
    a = jnp.sin(x) * jnp.cos(x) + jnp.log1p(jnp.exp(x))
    b = jnp.expm1(x) * jax.lax.rsqrt(x * x + 1) + jnp.abs(x) * jnp.sqrt(x * x + 2)
    return a / (b * b + 1) + jnp.log(x * x + 0.5)


def extrema(x, y):
    rows = jnp.max(x, axis=1) * jnp.min(y, axis=1)
    inner = jnp.clip(x * y, -0.8, 0.9) + jnp.maximum(x, y) * jnp.minimum(x, 0.3)
    return inner.sum(axis=1) + rows


def movement(x, y):
    zero = jnp.zeros((), x.dtype)
    both = jnp.concatenate([x, y.T], axis=0)[1:5:2, :]
    padded = jax.lax.pad(both, zero, [(1, 0, 1), (-1, 2, 0)])
    return padded * jnp.broadcast_to(y[:1, :1], (4, 4)) + jnp.reshape(y, (1, 9))[:, 5:] ** 2


CASES = [
    ("softmax_cross_entropy", softmax_cross_entropy,
     [normal(4, 5), RNG.integers(0, 5, size=4).astype(np.int32)]),
    ("layer_norm", layer_norm, [normal(3, 6), normal(6), normal(6)]),
    ("logsumexp", lambda x: jax.nn.logsumexp(x * 3, axis=1), [normal(4, 5)]),
    ("norm", lambda x: jnp.sqrt(jnp.sum(x * x)), [normal(7)]),
    ("attention", attention, [normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4)]),
    ("product_with_a_zero", lambda x: jnp.prod(x, axis=1),
     [np.array([[0.5, 2, -3, 1.5], [0, 2, 3, -1], [1.25, -2, 0, 4]])]),
    ("power", lambda x, y: x ** y, [positive(3, 4), normal(1, 4)]),
    ("gelu", gelu, [normal(10)]),
    ("mlp", mlp, [normal(3, 4), normal(4, 6), normal(6), normal(6, 2)]),
    ("elementary", elementary, [normal(8)]),
    ("extrema", extrema, [distinct(3, 4), distinct(3, 4) + 0.1]),
    ("contraction", lambda a, b: jnp.einsum("ijbk,kbil->bjl", a, b),
     [normal(2, 3, 2, 4), normal(4, 2, 2, 3)]),
    ("movement", movement, [normal(3, 3), normal(3, 3)]),
]


def tensor(x):
    x = np.asarray(x)
    return {"sizes": list(x.shape), "values": x.reshape(-1).tolist()}


def case(function, inputs):
    floats = [i for i, x in enumerate(inputs) if x.dtype == np.float64]

    def on_floats(*values):
        arguments = [jnp.asarray(x) for x in inputs]
        for i, value in zip(floats, values):
            arguments[i] = value
        return function(*arguments)

    at = [jnp.asarray(inputs[i]) for i in floats]
    output = on_floats(*at)
    cotangent = normal(*output.shape)
    directions = [normal(*x.shape) for x in at]
    wrt = tuple(range(len(at)))
    gradient = jax.grad(lambda *x: jnp.sum(on_floats(*x) * cotangent), argnums=wrt)
    along = lambda *x: sum(jnp.sum(v * g) for v, g in zip(directions, gradient(*x)))
    return {
        "inputs": [tensor(x) for x in inputs],
        "output": tensor(output),
        "cotangent": tensor(cotangent),
        "gradients": [tensor(g) for g in gradient(*at)],
        "directions": [tensor(v) for v in directions],
        "second": [tensor(s) for s in jax.grad(along, argnums=wrt)(*at)],
    }


def main():
    cases = {name: case(function, inputs) for name, function, inputs in CASES}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gradients.json")
    with open(path, "w", encoding="ascii") as file:
        lines = ['"generator": "tests/goldens/make_gradient_goldens.py"']
        lines += [f'"{name}": {json.dumps(cases[name])}' for name in cases]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
