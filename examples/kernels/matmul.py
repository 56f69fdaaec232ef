#!/usr/bin/env python3
"""The arrays of matmul.trn, and whether numpy agrees with the product. Needs numpy.

    matmul.py make FOLDER     writes a.npy and b.npy
    matmul.py check FOLDER    compares c.npy with the product that numpy computes; status 1 when they differ
"""

import pathlib
import sys

import numpy

# Each of 128 sums in fp32 may be off by half a unit in the last place of what has been summed so far.
BOUND = 128 * numpy.finfo(numpy.float32).eps


def as_bf16(array):
    """Rounded to the nearest bf16, ties to even, as float32."""
    bits = array.view(numpy.uint32).astype(numpy.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


def make(folder):
    random = numpy.random.default_rng(2)
    for name, columns in (("a", 128), ("b", 512)):
        numpy.save(folder / f"{name}.npy", random.standard_normal((128, columns), dtype=numpy.float32))
    return 0


def check(folder):
    a, b = (as_bf16(numpy.load(folder / f"{name}.npy")).astype(numpy.float64) for name in "ab")
    product = numpy.load(folder / "c.npy")
    error = numpy.abs(product - a.T @ b)
    worst = (error / (numpy.abs(a).T @ numpy.abs(b))).max()
    print(f"{product.shape[0]} x {product.shape[1]} of {product.dtype}: the largest error is {worst:.1e} of the sum of "
          f"what was added; fp32 allows {BOUND:.1e}")
    return 0 if product.shape == (128, 512) and worst <= BOUND else 1


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("make", "check"):
        sys.exit(__doc__)
    sys.exit({"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2])))
