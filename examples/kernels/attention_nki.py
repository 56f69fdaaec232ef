#!/usr/bin/env python3
"""Attention of one head as a kernel of NKI (docs/tasks/kernels.md). In a pod with a claim, where trn-run is:

    pip install sim-node/nki
    examples/kernels/attention_nki.py

Compares numbers with numpy's at 1024 x 128, and prints the time of 4096 x 128 in bf16. The scores of 128 queries and 512 keys are made,
used and forgotten, as in flash attention: beside the sum of values stand the largest score so far and the sum of powers. Eight groups of
128 queries take turns, so that each engine has work while another one has a group's tile; the scalar engine takes some of the vector
engine's copies, because the vector engine has the most to do.
"""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy

ROWS, KEYS = nl.tile_size.pmax, nl.tile_size.psum_fmax  # 128 queries by 512 keys at once
WIDTH = 128  # of the head
TOGETHER = 8  # groups of 128 queries
ENGINES = nisa.engine.vector, nisa.engine.scalar  # which copy for every other group


def tile(shape, dtype, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def turned(*parts, engine=nisa.engine.vector):
    """Tiles [128, 128], each turned, beside each other: the tensor engine turns into PSUM, of which one copy takes all."""
    shape = (ROWS, ROWS * len(parts))
    in_psum, result = tile(shape, parts[0].dtype, nl.psum), tile(shape, parts[0].dtype)
    for at, part in enumerate(parts):
        nisa.nc_transpose(dst=in_psum[:, nl.ds(at * ROWS, ROWS)], data=part)
    nisa.tensor_copy(dst=result, src=in_psum, engine=engine)
    return result


@nki.jit
def attention(q, k, v):
    """softmax(q k^T / sqrt(128)) v, of q, k and v [n, 128], n a multiple of 512; keys and values stay in SBUF."""
    c = tile(q.shape, q.dtype, nl.shared_hbm)
    keys, values = [], []  # [128, 512] and four [128, 128], of 512 keys each
    for at in nl.affine_range(0, k.shape[0], KEYS):
        rows = [nl.ds(first, ROWS) for first in range(at, at + KEYS, ROWS)]
        keys.append(turned(*(nl.load(k[one, :]) for one in rows)))
        values.append([nl.load(v[one, :]) for one in rows])
    for at in nl.affine_range(0, q.shape[0], ROWS * TOGETHER):
        places = [nl.ds(first, ROWS) for first in range(at, min(at + ROWS * TOGETHER, q.shape[0]), ROWS)]
        groups = [Queries(turned(nl.load(q[place, :])), copies=ENGINES[at % len(ENGINES)]) for at, place in enumerate(places)]
        for at_keys, at_values in zip(keys, values):
            # Engines keep this order: each has the next group to work on while another engine has this one.
            for work in (Queries.score, Queries.weigh, Queries.turn, Queries.add):
                for group in groups:
                    work(group, at_keys, at_values)
        for place, group in zip(places, groups):
            result = tile((ROWS, WIDTH), c.dtype)
            nisa.reciprocal(dst=group.powers, data=group.powers)
            nisa.tensor_scalar(dst=result, data=group.sums, op0=nl.multiply, operand0=group.powers)
            nl.store(c[place, :], result)
    return c


class Queries:
    """128 queries: the sums of values so far, of powers, and minus the largest score, scaled."""

    def __init__(self, queries, copies):
        self.queries, self.copies, self.sums, self.powers, self.negative = queries, copies, None, None, None

    def score(self, keys, values):
        self.scores = tile((ROWS, KEYS), nl.float32, nl.psum)
        nisa.nc_matmul(dst=self.scores, stationary=self.queries, moving=keys)

    def weigh(self, keys, values):
        scale, before, self.negative = WIDTH**-0.5, self.negative, tile((ROWS, 1), nl.float32)
        nisa.tensor_reduce(dst=self.negative, op=nl.maximum, data=self.scores, axis=1, negate=True)
        nisa.tensor_scalar(dst=self.negative, data=self.negative, op0=nl.multiply, operand0=scale,
                           op1=None if before is None else nl.minimum, operand1=before)
        self.weights, self.total = tile((ROWS, KEYS), self.queries.dtype), tile((ROWS, 1), nl.float32)
        nisa.activation(dst=self.weights, op=nl.exp, data=self.scores, scale=scale, bias=self.negative, reduce_op=nl.add,
                        reduce_res=self.total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        if before is not None:  # what was summed below a smaller largest score counts less
            self.less = tile((ROWS, 1), nl.float32)
            nisa.tensor_tensor(dst=self.less, data1=self.negative, data2=before, op=nl.subtract, engine=nisa.engine.gpsimd)
            nisa.activation(dst=self.less, op=nl.exp, data=self.less)

    def turn(self, keys, values):
        self.turned = turned(*(self.weights[:, nl.ds(at * ROWS, ROWS)] for at in range(len(values))), engine=self.copies)

    def add(self, keys, values):
        product = tile((ROWS, WIDTH), nl.float32, nl.psum)
        for at, rows in enumerate(values):
            nisa.nc_matmul(dst=product, stationary=self.turned[:, nl.ds(at * ROWS, ROWS)], moving=rows)
        if self.sums is None:
            self.sums, self.powers = tile((ROWS, WIDTH), nl.float32), self.total
            nisa.tensor_copy(dst=self.sums, src=product)
            return
        for kept, more in ((self.sums, product), (self.powers, self.total)):
            nisa.scalar_tensor_tensor(dst=kept, data=kept, op0=nl.multiply, operand0=self.less, op1=nl.add, operand1=more)


def main():
    random = numpy.random.default_rng(2)
    q, k, v = (random.standard_normal((1024, WIDTH), dtype=numpy.float32) for _ in range(3))
    weights = numpy.exp(q @ k.T * WIDTH**-0.5)
    worst = numpy.abs(attention(q, k, v) - weights @ v / weights.sum(1, keepdims=True)).max()
    print(f"1024 x 128, fp32: the largest error is {worst:.1e}")

    matrix = nki.shape((4096, WIDTH), nl.bfloat16)
    run = attention.run(matrix, matrix, matrix, data=False)
    print(f"4096 x 128, bf16: {run.time_us:.1f} us; no order of its instructions takes less than {run.bound_us:.1f} us ({run.bound})")
    return 0 if worst < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
