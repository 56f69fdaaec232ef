#!/usr/bin/env python3
"""A product of matrices as a kernel of NKI (docs/tasks/kernels.md). In a pod with a claim, where trn-run is:

    pip install sim-node/nki
    examples/kernels/matmul_nki.py

Compares numbers with numpy's at 256 x 256 x 512, and prints the time of 2048 x 2048 x 2048 in bf16.
"""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy


@nki.jit
def matmul(a, b):
    """a^T b, of a [k, m] and b [k, n]; both fit into SBUF: 2,048 rows of 2,048 bf16 are 64 KiB of each partition."""
    (k, m), n = a.shape, b.shape[1]
    rows, width = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    c = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary, moving = [], []
    for i in nl.affine_range(k // rows):
        for matrix, tiles in ((a, stationary), (b, moving)):
            tile = nl.ndarray((rows, matrix.shape[1]), dtype=matrix.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=matrix[nl.ds(i * rows, rows), :])
            tiles.append(tile)
    for y in nl.affine_range(m // rows):
        for x in nl.affine_range(n // width):
            down, across = nl.ds(y * rows, rows), nl.ds(x * width, width)
            product = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.psum)
            for i in nl.affine_range(k // rows):
                nisa.nc_matmul(dst=product, stationary=stationary[i][:, down], moving=moving[i][:, across])
            tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=product)
            nisa.dma_copy(dst=c[down, across], src=tile)
    return c


def main():
    random = numpy.random.default_rng(2)
    a = random.standard_normal((256, 256), dtype=numpy.float32)
    b = random.standard_normal((256, 512), dtype=numpy.float32)
    worst = (numpy.abs(matmul(a, b) - a.T @ b) / (numpy.abs(a).T @ numpy.abs(b))).max()
    print(f"256 x 256 x 512, fp32: the largest error is {worst:.1e} of the sum of what was added")

    square = nki.shape((2048, 2048), nl.bfloat16)
    run = matmul.run(square, square, data=False)
    print(f"2048 x 2048 x 2048, bf16: {run.time_us:.1f} us; no order of its instructions takes less than {run.bound_us:.1f} us "
          f"({run.bound})")
    return 0 if worst < 256 * numpy.finfo(numpy.float32).eps else 1


if __name__ == "__main__":
    sys.exit(main())
