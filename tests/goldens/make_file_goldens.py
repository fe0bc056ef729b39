#!/usr/bin/env python3
"""Writes the folder files beside itself: what NumPy and safetensors write.

Needs numpy and safetensors (written with numpy 2.4.6, safetensors 0.8.0).

The tensor of dtype d holds 0, 1, 2, ... as its elements, bool those numbers modulo 2.
"""

import pathlib

import numpy as np
import safetensors.numpy

OUT = pathlib.Path(__file__).parent / "files"
NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


def counting(dtype, shape):
    values = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
    return (values % 2 if dtype == "bool" else values).astype(dtype)


def main():
    OUT.mkdir(exist_ok=True)
    tensors = {name: counting(name, (2, 3)) for name in NAMES}
    tensors |= {"scalar": counting("float32", ()), "empty": counting("float32", (0, 3))}
    safetensors.numpy.save_file(tensors, OUT / "dtypes.safetensors", {"made by": "safetensors", "ä": "ö"})

    for order, name in (("<", "little"), (">", "big")):
        for fortran in (False, True):
            values = counting("float64", (2, 3, 4)).astype(f"{order}f8")
            values = np.asfortranarray(values) if fortran else values
            with open(OUT / f"{name}_{'fortran' if fortran else 'c'}.npy", "wb") as file:
                np.lib.format.write_array(file, values, version=(2, 0) if fortran else (1, 0))
    np.save(OUT / "vector.npy", counting("int16", (5,)))
    np.save(OUT / "scalar.npy", counting("bool", ()) + True)


main()
