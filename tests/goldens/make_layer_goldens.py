#!/usr/bin/env python3
"""Writes layers.json beside itself: what every layer computes, and its gradients, by jax in f64.

Needs numpy and jax (written with numpy 2.4.6, jax 0.10.2). Nothing here calls mulgrad. Activations and
softmax are jax.nn's own; the rest is written from the papers' formulas. (jax.nn.dot_product_attention
rounds to f32 within.) A case holds its inputs by
the names that the layer gives them, the result y, a cotangent dy, and the gradient of sum(y dy) with
respect to every float input but the uniform numbers.
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(5)


def normal(*sizes, deviation=1.0):
    return deviation * rng.normal(size=sizes)


def uniform(*sizes):
    return rng.integers(0, 2**24, size=sizes) / 2.0**24


def ids(n, *sizes):
    return rng.integers(0, n, size=sizes).astype(np.int32)


def prefixed(prefix, inputs):
    return {f"{prefix}.{name}": value for name, value in inputs.items()}


def part(prefix, inputs):
    return {name[len(prefix) + 1:]: value for name, value in inputs.items() if name.startswith(prefix + ".")}


def linear_inputs(n, m):
    return {"weight": normal(n, m, deviation=n**-0.5), "bias": normal(1, m)}


def linear(p, x):
    return x @ p["weight"] + p["bias"][0]


def norm_inputs(n):
    return {"scale": 1 + normal(1, n, deviation=0.3), "shift": normal(1, n)}


def layer_norm(p, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * p["scale"][0] + p["shift"][0]


def rms_norm(p, x):
    return x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * p["scale"][0] + p["shift"][0]


def dropout(u, x, rate):
    return jnp.where(u >= np.float32(rate), x / (1 - rate), 0)


def attention_inputs(n):
    return {k: v for name in ["query", "key", "value", "output"] for k, v in prefixed(name, linear_inputs(n, n)).items()}


def attention(p, x, heads, causal, padding=None, rate=0.0):
    b, t, n = x.shape
    q, k, v = (linear(part(name, p), x).reshape(b, t, heads, n // heads) for name in ["query", "key", "value"])
    allowed = np.ones((b, 1, t, t), bool)
    if causal:
        allowed &= np.tril(np.ones((t, t), bool))
    if padding is not None:
        allowed &= (np.asarray(padding) != 0)[:, None, None, :]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(n // heads)
    weights = jax.nn.softmax(jnp.where(allowed, scores, -1e30), axis=-1)
    weights = jnp.where(allowed, weights, 0)  # without any key: uniform until here
    if rate > 0:
        weights = dropout(p["uniform0"], weights, rate)
    return linear(part("output", p), jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, n))


def block(p, x):
    a, b = part("layer0", p), part("layer1", p)
    x = x + attention(part("layer1", a), layer_norm(part("layer0", a), x), 2, True)
    middle = jax.nn.gelu(linear(part("layer1", b), layer_norm(part("layer0", b), x)), approximate=False)
    return x + linear(part("layer3", b), middle)


def block_inputs(n):
    return {**prefixed("layer0.layer0", norm_inputs(n)), **prefixed("layer0.layer1", attention_inputs(n)),
            **prefixed("layer1.layer0", norm_inputs(n)), **prefixed("layer1.layer1", linear_inputs(n, 4 * n)),
            **prefixed("layer1.layer3", linear_inputs(4 * n, n))}


def cross_entropy(p, x):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), p["labels"][..., None], axis=-1))


def described(value):
    value = np.asarray(value)
    return {"sizes": list(value.shape), "values": np.ravel(value).tolist()}


def case(name, f, inputs):
    fixed = {k: v for k, v in inputs.items() if v.dtype.kind == "i" or k.startswith("uniform")}
    free = {k: jnp.array(v) for k, v in inputs.items() if k not in fixed}

    def run(values):
        everything = {**fixed, **values}
        return f(everything, everything["x"])

    y, pull = jax.vjp(run, free)
    dy = normal(*y.shape)
    gradients = pull(jnp.array(dy))[0]
    return {"name": name, "inputs": {k: described(v) for k, v in inputs.items()}, "y": described(y),
            "dy": described(dy), "gradients": {k: described(v) for k, v in gradients.items()}}


def main():
    x = lambda *sizes: {"x": normal(*sizes)}
    first_missing = np.array([[0, 1, 1, 1], [1, 1, 0, 0]], np.int32)
    all_missing = np.array([[0, 0, 0], [1, 0, 1]], np.int32)
    cases = [
        case("linear", linear, {**x(2, 3, 4), **linear_inputs(4, 5)}),
        case("relu", lambda p, x: jax.nn.relu(x), x(2, 3)),
        case("tanh", lambda p, x: jnp.tanh(x), x(2, 3)),
        case("sigmoid", lambda p, x: jax.nn.sigmoid(x), x(2, 3)),
        case("gelu", lambda p, x: jax.nn.gelu(x, approximate=False), x(2, 3)),
        case("gelu_tanh", lambda p, x: jax.nn.gelu(x, approximate=True), x(2, 3)),
        case("dropout", lambda p, x: dropout(p["uniform0"], x, 0.25), {**x(3, 4), "uniform0": uniform(3, 4)}),
        case("layer_norm", layer_norm, {**x(2, 3, 5), **norm_inputs(5)}),
        case("rms_norm", rms_norm, {**x(2, 3, 5), **norm_inputs(5)}),
        case("embedding", lambda p, x: p["table"][x], {"x": ids(7, 2, 3), "table": normal(7, 4)}),
        case("position_embedding", lambda p, x: x + p["table"], {**x(2, 3, 4), "table": normal(3, 4)}),
        case("attention", lambda p, x: attention(p, x, 3, False), {**x(2, 4, 6), **attention_inputs(6)}),
        case("attention_causal", lambda p, x: attention(p, x, 2, True), {**x(2, 4, 6), **attention_inputs(6)}),
        case("attention_padded", lambda p, x: attention(p, x, 2, False, all_missing),
             {**x(2, 3, 4), "padding": all_missing, **attention_inputs(4)}),
        case("attention_causal_padded", lambda p, x: attention(p, x, 2, True, first_missing),
             {**x(2, 4, 4), "padding": first_missing, **attention_inputs(4)}),
        case("attention_dropout", lambda p, x: attention(p, x, 2, False, rate=0.5),
             {**x(2, 3, 4), "uniform0": uniform(2, 2, 3, 3), **attention_inputs(4)}),
        case("residual", lambda p, x: x + linear(p, x), {**x(3, 4), **linear_inputs(4, 4)}),
        case("transformer_block", block, {**x(2, 3, 4), **block_inputs(4)}),
        case("sequence_cross_entropy", cross_entropy, {**x(2, 3, 5), "labels": ids(5, 2, 3)}),
    ]
    path = pathlib.Path(__file__).with_name("layers.json")
    text = json.dumps({"generator": "tests/goldens/make_layer_goldens.py", "cases": cases})
    path.write_text(text.replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
