#!/usr/bin/env python3
"""Attention of one head as a kernel of NKI (docs/tasks/kernels.md). In a pod with a claim, where trn-run is:

    pip install sim-node/nki
    examples/kernels/attention_nki.py

Compares numbers with numpy's at 1024 x 128, and prints the time of 4096 x 128 in bf16. The scores of 128 queries and 512 keys are made,
used and forgotten, as in flash attention: beside the sum of values stand the largest score so far and the sum of powers.
"""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy

ROWS, KEYS = nl.tile_size.pmax, nl.tile_size.psum_fmax  # 128 queries by 512 keys at once
WIDTH = 128  # of the head


def tile(shape, dtype, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def turned(part):
    """A tile [128, columns] as [columns, 128]: the tensor engine turns it into PSUM."""
    columns = part.shape[1]
    in_psum, result = tile((columns, ROWS), part.dtype, nl.psum), tile((columns, ROWS), part.dtype)
    nisa.nc_transpose(dst=in_psum, data=part)
    nisa.tensor_copy(dst=result, src=in_psum)
    return result


@nki.jit
def attention(q, k, v):
    """softmax(q k^T / sqrt(128)) v, of q, k and v [n, 128], n a multiple of 512."""
    c = tile(q.shape, q.dtype, nl.shared_hbm)
    keys, values = [], []  # [128, 512] and four [128, 128], of 512 keys each
    for at in nl.affine_range(0, k.shape[0], KEYS):
        together = tile((WIDTH, KEYS), k.dtype)
        for inner in nl.affine_range(0, KEYS, ROWS):
            nisa.tensor_copy(dst=together[:, nl.ds(inner, ROWS)], src=turned(nl.load(k[nl.ds(at + inner, ROWS), :])))
        keys.append(together)
        values.append([nl.load(v[nl.ds(at + inner, ROWS), :]) for inner in nl.affine_range(0, KEYS, ROWS)])
    for at in nl.affine_range(0, q.shape[0], ROWS):
        queries = turned(nl.load(q[nl.ds(at, ROWS), :]))
        sums = of_queries(queries, keys, values)
        result = tile((ROWS, WIDTH), c.dtype)
        nisa.tensor_copy(dst=result, src=sums)
        nl.store(c[nl.ds(at, ROWS), :], result)
    return c


def of_queries(queries, keys, values):
    """Of 128 queries, over all keys; [128, 128] in fp32."""
    scale = WIDTH**-0.5
    sums, powers, least = tile((ROWS, WIDTH), nl.float32), tile((ROWS, 1), nl.float32), None
    for at in nl.sequential_range(len(keys)):
        scores = tile((ROWS, KEYS), nl.float32, nl.psum)
        nisa.nc_matmul(dst=scores, stationary=queries, moving=keys[at])
        negative = tile((ROWS, 1), nl.float32)  # minus the largest score; scaled, and not above the one before
        nisa.tensor_reduce(dst=negative, op=nl.maximum, data=scores, axis=1, negate=True)
        nisa.tensor_scalar(dst=negative, data=negative, op0=nl.multiply, operand0=scale,
                           op1=None if at == 0 else nl.minimum, operand1=least)
        weights, total = tile((ROWS, KEYS), queries.dtype), tile((ROWS, 1), nl.float32)
        nisa.activation(dst=weights, op=nl.exp, data=scores, scale=scale, bias=negative, reduce_op=nl.add, reduce_res=total,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)
        product = tile((ROWS, WIDTH), nl.float32, nl.psum)
        for inner, rows in enumerate(values[at]):
            nisa.nc_matmul(dst=product, stationary=turned(weights[:, nl.ds(inner * ROWS, ROWS)]), moving=rows)
        if at == 0:
            nisa.tensor_copy(dst=sums, src=product)
            powers = total
        else:  # what was summed below a smaller largest score counts less
            less = tile((ROWS, 1), nl.float32)
            nisa.tensor_tensor(dst=less, data1=negative, data2=least, op=nl.subtract)
            nisa.activation(dst=less, op=nl.exp, data=less)
            nisa.scalar_tensor_tensor(dst=sums, data=sums, op0=nl.multiply, operand0=less, op1=nl.add, operand1=product)
            nisa.scalar_tensor_tensor(dst=powers, data=powers, op0=nl.multiply, operand0=less, op1=nl.add, operand1=total)
        least = negative
    share = tile((ROWS, 1), nl.float32)
    nisa.reciprocal(dst=share, data=powers)
    nisa.tensor_scalar(dst=sums, data=sums, op0=nl.multiply, operand0=share)
    return sums


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
