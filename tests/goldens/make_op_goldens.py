"""Computes tests/goldens/ops.json: the right result of every op case.

    build/dev/tests/core_op_golden_test --describe | python3 tests/goldens/make_op_goldens.py

Needs numpy, ml_dtypes and mpmath. It reads what each case is (op, attributes, inputs) and knows
nothing of the library: elementary functions come from mpmath at 200 bits and are rounded once,
sums are exact (math.fsum) or sequential in f32 as core/README.md says, integers are Python's.
NumPy and JAX are not followed where they mean something else:
  integer x/0 = -1 (unsigned: all ones) and float to integer saturating, NaN to 0: NumPy has
    undefined results there;
  f64 to bf16 rounding once: ml_dtypes goes through f32 and rounds twice;
  sums and products of bf16 and f16 in f32, rounded once at the end: NumPy rounds every step;
  mean = sum rounded to the dtype, divided by the count rounded to the dtype: NumPy keeps the sum
    of 16-bit floats in f32;
  a sum that starts from its first element, so that sum([-0]) is -0; max(-0, +0) = +0.
"""
import itertools
import json
import math
import os
import sys

import ml_dtypes
import mpmath
import numpy as np

mpmath.mp.prec = 200
np.seterr(all="ignore")

NUMPY = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}
# dtype -> (significant bits, least exponent of a unit in the last place, largest exponent)
FORMAT = {"bf16": (8, -133, 128), "f16": (11, -24, 16), "f32": (24, -149, 128),
          "f64": (53, -1074, 1024)}
FLOATS = tuple(FORMAT)


# --- tensors -----------------------------------------------------------------------------------
class Tensor:
    def __init__(self, dtype, array):
        self.dtype, self.array = dtype, np.asarray(array, NUMPY[dtype])

    def wide(self):
        """Elements as exact Python numbers: float for floats, int for the others."""
        kind = float if self.dtype in FLOATS else int
        flat = [kind(v) for v in self.array.reshape(-1)]
        out = np.empty(len(flat), object)
        out[:] = flat
        return out.reshape(self.array.shape)


def parse_type(text):
    dtype, sizes = text.rstrip("]").split("[")
    return dtype, tuple(int(s) for s in sizes.split(",") if s)


def decode(text):
    head, data = text.split(":")
    dtype, shape = parse_type(head)
    return Tensor(dtype, np.frombuffer(bytes.fromhex(data), NUMPY[dtype]).reshape(shape))


def encode(tensor):
    sizes = ",".join(str(s) for s in tensor.array.shape)
    data = np.ascontiguousarray(tensor.array).tobytes().hex()
    return f"{tensor.dtype}[{sizes}]:{data}"


# --- rounding ----------------------------------------------------------------------------------
def round_scaled(dtype, negative, man, exp):
    """man * 2**exp, man >= 0, rounded once to nearest even; as a float."""
    digits, least, largest = FORMAT[dtype]
    sign = -1.0 if negative else 1.0
    if man == 0:
        return sign * 0.0
    top = exp + man.bit_length()  # the value lies in [2**(top-1), 2**top)
    if top > largest + 1:
        return sign * math.inf
    if top < least - 1:
        return sign * 0.0
    unit = max(top - digits, least)
    shift = unit - exp
    if shift <= 0:
        rounded = man << -shift
    else:
        rounded, rest = man >> shift, man & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        if rest > half or (rest == half and rounded & 1):
            rounded += 1
    if rounded.bit_length() + unit > largest:
        return sign * math.inf
    return sign * math.ldexp(rounded, unit)


def round_float(dtype, x):
    if math.isnan(x) or math.isinf(x) or dtype == "f64":
        return x
    mantissa, exponent = math.frexp(abs(x))
    negative = math.copysign(1, x) < 0
    return round_scaled(dtype, negative, int(math.ldexp(mantissa, 53)), exponent - 53)


def round_int(dtype, x):
    return round_scaled(dtype, x < 0, abs(x), 0)


def round_mp(dtype, x):
    sign, man, exp, _ = x._mpf_
    return round_scaled(dtype, bool(sign), int(man), int(exp))


def limits(dtype):
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(info.max)


def wrap(dtype, x):
    if dtype == "i1":
        return x & 1
    low, high = limits(dtype)
    return (x - low) % (high - low + 1) + low


def finish(dtype, x):
    """A result computed wide, rounded or wrapped to the dtype."""
    return round_float(dtype, x) if dtype in FLOATS else wrap(dtype, x)


# --- elementwise -------------------------------------------------------------------------------
def maximum(a, b):
    if a != a or b != b:
        return math.nan
    if a == b == 0 and isinstance(a, float):
        return b if math.copysign(1, a) < 0 else a
    return max(a, b)


def minimum(a, b):
    if a != a or b != b:
        return math.nan
    if a == b == 0 and isinstance(a, float):
        return a if math.copysign(1, a) < 0 else b
    return min(a, b)


def sign(x):
    if x != x or x == 0:
        return x
    return type(x)(1 if x > 0 else -1)


def float_divide(a, b):
    return float(np.float64(a) / np.float64(b))


def int_divide(dtype, a, b):
    if b == 0:
        return -1  # wraps to all ones
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def int_power(a, b, dtype):
    if b >= 0:
        return pow(a, b, 1 << 64) if a >= 0 else (-1) ** (b % 2) * pow(-a, b, 1 << 64)
    return 1 if a == 1 else (-1) ** (-b % 2) if a == -1 else 0


# Results at zeros, infinities and outside the domain; None: ask mpmath.
def special(name, x):
    if math.isnan(x):
        return math.nan
    table = {
        "Exponential": {math.inf: math.inf, -math.inf: 0.0},
        "ExponentialMinusOne": {math.inf: math.inf, -math.inf: -1.0, 0.0: x},
        "Log": {math.inf: math.inf, 0.0: -math.inf},
        "LogPlusOne": {math.inf: math.inf, 0.0: x, -1.0: -math.inf},
        "Sqrt": {math.inf: math.inf, 0.0: x},
        "Rsqrt": {math.inf: 0.0, 0.0: math.copysign(math.inf, x)},
        "Tanh": {math.inf: 1.0, -math.inf: -1.0, 0.0: x},
        "Logistic": {math.inf: 1.0, -math.inf: 0.0},
        "Sine": {math.inf: math.nan, -math.inf: math.nan, 0.0: x},
        "Cosine": {math.inf: math.nan, -math.inf: math.nan},
        "Erf": {math.inf: 1.0, -math.inf: -1.0, 0.0: x},
    }[name]
    if x in table:
        return table[x]
    lowest = {"Log": 0, "LogPlusOne": -1, "Sqrt": 0, "Rsqrt": 0}.get(name)
    return math.nan if lowest is not None and x < lowest else None


def logistic(x):
    # 1 / (1 + e^-x) keeps its 200 bits at either end.
    e = mpmath.exp(-abs(x))
    return 1 / (1 + e) if x >= 0 else e / (1 + e)


FUNCTIONS = {
    "Exponential": mpmath.exp, "ExponentialMinusOne": mpmath.expm1, "Log": mpmath.log,
    "LogPlusOne": mpmath.log1p, "Sqrt": mpmath.sqrt, "Rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "Tanh": mpmath.tanh, "Logistic": logistic, "Sine": mpmath.sin, "Cosine": mpmath.cos,
    "Erf": mpmath.erf,
}


def function(name, dtype, x):
    result = special(name, x)
    return round_mp(dtype, FUNCTIONS[name](mpmath.mpf(x))) if result is None else result


def float_power(dtype, a, b):
    # Where the result is exact: C99 annex F, which math.pow follows (NumPy takes pow(x, 0.5) for
    # sqrt(x), which is wrong at -inf and -0).
    if not (math.isfinite(a) and math.isfinite(b)) or b == 0 or (a == 0 and b > 0):
        return math.pow(a, b)
    if a == 0:
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    if a < 0 and b != math.floor(b):
        return math.nan
    magnitude = mpmath.power(mpmath.mpf(abs(a)), mpmath.mpf(b))
    rounded = round_mp(dtype, magnitude)
    return -rounded if a < 0 and b % 2 == 1 else rounded


def convert(source, target, x):
    if target == "i1":
        return int(x != 0)  # NaN is not 0
    if source in FLOATS:
        if target in FLOATS:
            return round_float(target, x)
        if math.isnan(x):
            return 0
        low, high = limits(target)
        return low if x <= low else high if x >= high else int(x)
    return round_int(target, x) if target in FLOATS else wrap(target, x)


COMPARE = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}
INTEGRAL = {"Floor": math.floor, "Ceil": math.ceil, "RoundNearestEven": round}


def integral(name, x):
    if not math.isfinite(x):
        return x
    return math.copysign(float(INTEGRAL[name](x)), x)


def elementwise(op, attributes, dtype, result):
    """The function of one element; `dtype` is that of the operands' values."""
    floating = dtype in FLOATS
    if op in FUNCTIONS:
        return lambda x: function(op, dtype, x)
    if op in INTEGRAL:
        return lambda x: integral(op, x)
    if op == "Convert":
        return lambda x: convert(dtype, result, x)
    if op == "Compare":
        return lambda a, b: int(COMPARE[attributes["direction"]](a, b))
    if op == "Divide":
        divide = float_divide if floating else lambda a, b: int_divide(dtype, a, b)
        return lambda a, b: finish(dtype, divide(a, b))
    if op == "Power":
        if floating:
            return lambda a, b: float_power(dtype, a, b)
        return lambda a, b: finish(dtype, int_power(a, b, dtype))
    simple = {
        "Negate": lambda x: -x,
        "Abs": abs,
        "Sign": sign,
        "Not": lambda x: ~x,
        "IsFinite": lambda x: int(math.isfinite(x)),
        "StopGradient": lambda x: x,
        "Add": lambda a, b: a + b,
        "Subtract": lambda a, b: a - b,
        "Multiply": lambda a, b: a * b,
        "Maximum": maximum,
        "Minimum": minimum,
        "And": lambda a, b: a & b,
        "Or": lambda a, b: a | b,
        "Select": lambda p, a, b: a if p else b,
        "Clamp": lambda low, x, high: minimum(maximum(x, low), high),
        "Square": lambda x: x * x,
    }[op]
    # f64 rounds as it goes; twice the digits and two more make a second rounding harmless.
    return lambda *x: finish(result, simple(*x))


# --- reductions and products -------------------------------------------------------------------
def total(dtype, terms):
    """The sum of terms (floats), in f32 for 16-bit dtypes, else exact; not yet rounded."""
    if dtype in ("bf16", "f16"):
        result = np.float32(terms[0])
        for term in terms[1:]:
            result = result + np.float32(term)
        return float(result)
    if all(math.isfinite(t) for t in terms):
        if all(t == 0 and math.copysign(1, t) < 0 for t in terms):
            return -0.0
        return math.fsum(terms)
    result = terms[0]
    for term in terms[1:]:
        result += term
    return result


def reduce_terms(kind, dtype, terms):
    kind = kind.removeprefix("stablehlo.")
    floating = dtype in FLOATS
    low, high = (-math.inf, math.inf) if floating else limits(dtype) if dtype != "i1" else (0, 1)
    identity = {"add": 0, "multiply": 1, "maximum": low, "minimum": high, "or": 0, "and": -1}[kind]
    if not terms:
        return float(identity) if floating else wrap(dtype, identity)
    if kind == "add" and floating:
        return round_float(dtype, total(dtype, terms))
    step = np.float32 if dtype in ("bf16", "f16") else np.float64
    result = terms[0]
    for term in terms[1:]:
        if kind == "add":
            result += term
        elif kind == "multiply":
            result = float(step(result) * step(term)) if floating else result * term
        elif kind == "maximum":
            result = maximum(result, term)
        elif kind == "minimum":
            result = minimum(result, term)
        else:
            result = result & term if kind == "and" else result | term
    return finish(dtype, result)


def reduced(tensor, axes, fold):
    """fold(list of the elements along the axes, row-major) for every kept index, in order."""
    wide = tensor.wide()
    kept = [a for a in range(wide.ndim) if a not in axes]
    moved = wide.transpose(kept + list(axes))
    shape = [wide.shape[a] for a in kept]
    count = math.prod(wide.shape[a] for a in axes)
    rows = moved.reshape(math.prod(shape), count)
    return [fold(list(row)) for row in rows]


def dot_general(lhs, rhs, batch, contracting, result):
    a, b = lhs.wide(), rhs.wide()
    free_a = [i for i in range(a.ndim) if i not in batch[0] + contracting[0]]
    free_b = [i for i in range(b.ndim) if i not in batch[1] + contracting[1]]
    sizes = lambda array, axes: [array.shape[i] for i in axes]
    outer = math.prod(sizes(a, batch[0]))
    inner = math.prod(sizes(a, contracting[0]))
    a3 = a.transpose(batch[0] + free_a + contracting[0]).reshape(
        outer, math.prod(sizes(a, free_a)), inner)
    b3 = b.transpose(batch[1] + free_b + contracting[1]).reshape(
        outer, math.prod(sizes(b, free_b)), inner)
    values = []
    for i, m, n in itertools.product(range(outer), range(a3.shape[1]), range(b3.shape[1])):
        terms = [x * y for x, y in zip(a3[i, m], b3[i, n])]
        if result in FLOATS:
            # A sum from 0, so no result is -0; an empty one is 0.
            accumulate = "f64" if result == "f64" else lhs.dtype
            values.append(round_float(result, total(accumulate, [0.0] + terms)))
        else:
            values.append(wrap(result, sum(terms)))
    return values


# --- one case ----------------------------------------------------------------------------------
def compute(case):
    op, attributes = case["op"], case["attributes"]
    operands = [decode(next(iter(o.values()))) for o in case["operands"]]
    dtype, shape = parse_type(case["result"])
    x = operands[0] if operands else None
    if op == "Fill":
        return Tensor(dtype, np.broadcast_to(decode(attributes["value"]).array, shape))
    if op == "Constant":
        return decode(attributes["value"])
    if op == "Iota":
        index = np.indices(shape)[attributes["dimension"]].reshape(-1)
        make = round_int if dtype in FLOATS else wrap
        return Tensor(dtype, np.array([make(dtype, int(i)) for i in index]).reshape(shape))
    if op == "Reshape":
        return Tensor(dtype, x.array.reshape(shape))
    if op == "Transpose":
        return Tensor(dtype, x.array.transpose(attributes["permutation"]))
    if op == "Slice":
        limits_of = zip(attributes["start"], attributes["limit"], attributes["stride"])
        return Tensor(dtype, x.array[tuple(slice(*s) for s in limits_of)])
    if op == "Concatenate":
        return Tensor(dtype, np.concatenate([o.array for o in operands], attributes["dimension"]))
    if op == "BroadcastInDim":
        dims = attributes["dims"]
        order = sorted(range(len(dims)), key=lambda i: dims[i])
        view = x.array.transpose(order)
        full = [1] * len(shape)
        for i in order:
            full[dims[i]] = x.array.shape[i]
        return Tensor(dtype, np.broadcast_to(view.reshape(full), shape))
    if op == "Pad":
        out = np.full(shape, operands[1].array, NUMPY[dtype])
        for index in np.ndindex(x.array.shape):
            to = tuple(low + i * (interior + 1) for i, low, interior in
                       zip(index, attributes["low"], attributes["interior"]))
            if all(0 <= t < size for t, size in zip(to, shape)):
                out[to] = x.array[index]
        return Tensor(dtype, out)
    if op == "Reduce":
        values = reduced(x, attributes["axes"],
                         lambda terms: reduce_terms(attributes["kind"], dtype, terms))
    elif op == "Mean":
        count = math.prod(x.array.shape[a] for a in attributes["axes"])
        divisor = round_int(dtype, count)
        values = reduced(x, attributes["axes"], lambda terms: round_float(
            dtype, float_divide(reduce_terms("add", dtype, terms), divisor)))
    elif op == "DotGeneral":
        values = dot_general(operands[0], operands[1], attributes["batch"],
                             attributes["contracting"], dtype)
    else:
        if op == "Custom":
            assert attributes["name"] == "test.square"
            op = "Square"
        wide = [np.broadcast_to(o.wide(), shape).reshape(-1) for o in operands]
        apply = elementwise(op, attributes, operands[-1].dtype, dtype)
        values = [apply(*element) for element in zip(*wide)]
    return Tensor(dtype, np.array(values, np.float64 if dtype in FLOATS else object).reshape(shape))


def main():
    lines = []
    for case in json.load(sys.stdin):
        golden = {
            "inputs": [o["input"] for o in case["operands"] if "input" in o],
            "output": encode(compute(case)),
        }
        lines.append(f'"{case["name"]}": {json.dumps(golden, separators=(",", ":"))}')
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.json")
    with open(path, "w", encoding="ascii") as out:
        out.write('{"generator": "tests/goldens/make_op_goldens.py", "cases": {\n')
        out.write(",\n".join(lines))
        out.write("\n}}\n")


if __name__ == "__main__":
    main()
