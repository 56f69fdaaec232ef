#!/usr/bin/env python3
"""A tensor-parallel MLP as a kernel of NKI (docs/tasks/kernels.md). In a pod with a claim of as many chips, where trn-run is:

    pip install sim-node/nki
    examples/kernels/mlp_nki.py --ranks 4

y = gelu(x W1) W2 of 128 tokens. Each rank, a core of a chip of its own, has a part of the columns of W1 and the same part of the rows
of W2, so its product is a part of each sum of y; an all_reduce adds the parts. y is made in blocks of 1024 columns: the links add one
block while the engines make the next. Compares numbers with those of one core and with numpy's, and prints the time of a large one.
"""

import argparse
import sys

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import numpy

ROWS, COLUMNS = nl.tile_size.pmax, nl.tile_size.psum_fmax  # 128 and 512, of a product
BLOCK = 2 * COLUMNS  # of y, and of weights that are loaded at once


def tile(shape, dtype, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def tiles_of(size, step=ROWS):
    return [nl.ds(first, step) for first in range(0, size, step)]


@nki.jit
def mlp(x, w1, w2, group, function):
    """function(x^T w1) w2, added up over the ranks, of x [h, 128], w1 [h, f] and w2 [f, h]; h is a multiple of 1024, and f too or smaller."""
    y = tile((ROWS, w2.shape[1]), x.dtype, nl.shared_hbm)
    hidden = hidden_of(x, w1, function)
    sums = []
    for columns in tiles_of(w2.shape[1], BLOCK):
        product = tile((ROWS, BLOCK), nl.float32, nl.psum)
        for rows, part in zip(tiles_of(w2.shape[0]), hidden):
            weights = nl.load(w2[rows, columns])
            for half in tiles_of(BLOCK, COLUMNS):
                nisa.nc_matmul(dst=product[:, half], stationary=part, moving=weights[:, half])
        in_sbuf = tile(product.shape, y.dtype)
        nisa.tensor_copy(dst=in_sbuf, src=product)
        own, sum_of_all = (tile(product.shape, y.dtype, nl.private_hbm) for _ in range(2))
        nl.store(own, in_sbuf)
        ncc.all_reduce(dsts=[sum_of_all], srcs=[own], replica_group=group, op=nl.add)
        sums.append((columns, sum_of_all))
    # An engine takes nothing behind a copy that waits for the links, so these copies come last.
    for columns, sum_of_all in sums:
        nisa.dma_copy(dst=y[:, columns], src=sum_of_all)
    return y


def hidden_of(x, w1, function):
    """function(w1^T x), [f, 128], as tiles [128, 128]."""
    inputs = [nl.load(x[rows, :]) for rows in tiles_of(x.shape[0])]
    hidden = []
    block = min(BLOCK, w1.shape[1])
    for columns in tiles_of(w1.shape[1], block):
        weights = [nl.load(w1[rows, columns]) for rows in tiles_of(w1.shape[0])]
        for part in tiles_of(block):
            product, result = tile((ROWS, ROWS), nl.float32, nl.psum), tile((ROWS, ROWS), x.dtype)
            for left, right in zip(weights, inputs):
                nisa.nc_matmul(dst=product, stationary=left[:, part], moving=right)
            nisa.activation(dst=result, op=function, data=product)
            hidden.append(result)
    return hidden


def gelu(x):
    """nl.gelu_apprx_tanh."""
    return 0.5 * x * (1 + numpy.tanh((2 / numpy.pi) ** 0.5 * (x + 0.044715 * x**3)))


def check(ranks, hidden_size, inner_size):
    """Whether y is, on all ranks, the sum of what one core makes of each part, bit for bit; and the largest error of numpy's."""
    random = numpy.random.default_rng(3)
    shapes = ((ROWS, hidden_size), (hidden_size, inner_size), (inner_size, hidden_size))
    x, w1, w2 = (random.standard_normal(shape, dtype=numpy.float32) / shape[-1] ** 0.5 for shape in shapes)
    parts = list(zip(numpy.split(w1, len(ranks), axis=1), numpy.split(w2, len(ranks), axis=0)))
    alone = ncc.ReplicaGroup([[0]])
    expected = numpy.zeros((ROWS, hidden_size), numpy.float32)
    for left, right in parts:  # in the order of the ranks
        expected += mlp.run(x.T, left, right, alone, nl.gelu_apprx_tanh).results
    run = mlp.run(x.T, nki.each([left for left, _ in parts]), nki.each([right for _, right in parts]), everyone(ranks),
                  nl.gelu_apprx_tanh, ranks=ranks)
    same = all(numpy.array_equal(result, expected) for result in run.results)
    exact = gelu(x.astype(numpy.float64) @ w1) @ w2
    return same, numpy.abs(run.results[0] - exact).max() / numpy.abs(exact).max()


def everyone(ranks):
    return ncc.ReplicaGroup([list(range(len(ranks)))])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2, choices=(1, 2, 4, 8, 16), help="chips, of which each has a rank")
    ranks = [(chip, 0) for chip in range(parser.parse_args().ranks)]
    size, inner = 2 * BLOCK, 2 * ROWS * len(ranks)
    same, worst = check(ranks, size, inner)
    print(f"{size} x {inner} on {len(ranks)} ranks, fp32: {'the same as' if same else 'other numbers than'} on one core; "
          f"the largest error is {worst:.1e} of the largest number")

    size, inner = 4096, 16384
    shapes = [nki.shape(shape, nl.bfloat16) for shape in ((size, ROWS), (size, inner // len(ranks)), (inner // len(ranks), size))]
    run = mlp.run(*shapes, everyone(ranks), nl.gelu_apprx_tanh, ranks=ranks, data=False)
    print(f"{size} x {inner} on {len(ranks)} ranks, bf16: {run.time_us:.1f} us; no order of its instructions takes less than "
          f"{run.bound_us:.1f} us ({run.bound})")
    return 0 if same and worst < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
