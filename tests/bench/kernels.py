#!/usr/bin/env python3
"""Our own kernels of operations that AWS has timed on a Trainium2: prints what a row of docs/performance.md says of them.

    $(.ci/python) tests/bench/kernels.py ROW

The loops, the shapes and what stands in SBUF are those of AWS's kernels; chip 0's first core of a sim-node runs them.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "sim-node/nki/src"), str(ROOT / "tests/nki"), str(ROOT / "examples/kernels")]

import attention_nki
import nki
import nki.isa as nisa
import nki.language as nl
import node

ROWS, COLUMNS = 128, 512  # of the largest product


def at(index, size):
    return nl.ds(index * size, size)


def loaded(source):
    tile = nl.ndarray(source.shape, source.dtype)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def turned(source):
    tile = nl.ndarray(source.shape[::-1], source.dtype)
    nisa.dma_transpose(dst=tile, src=source)
    return tile


def product(lefts, rights, down=slice(None), across=slice(None)):
    """The sum of products of tiles, in PSUM."""
    left, right = lefts[0][:, down], rights[0][:, across]
    result = nl.ndarray((left.shape[1], right.shape[1]), nl.float32, buffer=nl.psum)
    for left, right in zip(lefts, rights, strict=True):
        nisa.nc_matmul(dst=result, stationary=left[:, down], moving=right[:, across])
    return result


def store(part, result):
    tile = nl.ndarray(part.shape, part.dtype)
    nisa.tensor_copy(dst=tile, src=result)
    nisa.dma_copy(dst=part, src=tile)


def output(a, b):
    return nl.ndarray((a.shape[1], b.shape[1]), a.dtype, buffer=nl.shared_hbm)


@nki.jit
def tiled(a, b):
    """Each product loads both of its tiles."""
    c = output(a, b)
    for y in range(a.shape[1] // ROWS):
        for x in range(b.shape[1] // COLUMNS):
            result = nl.ndarray((ROWS, COLUMNS), nl.float32, buffer=nl.psum)
            for z in range(a.shape[0] // ROWS):
                nisa.nc_matmul(dst=result, stationary=loaded(a[at(z, ROWS), at(y, ROWS)]),
                               moving=loaded(b[at(z, ROWS), at(x, COLUMNS)]))
            store(c[at(y, ROWS), at(x, COLUMNS)], result)
    return c


@nki.jit
def hoisted(a, b):
    """A row of results loads its tiles of `a` once."""
    c = output(a, b)
    depth = range(a.shape[0] // ROWS)
    for y in range(a.shape[1] // ROWS):
        lefts = [loaded(a[at(z, ROWS), at(y, ROWS)]) for z in depth]
        for x in range(b.shape[1] // COLUMNS):
            rights = [loaded(b[at(z, ROWS), at(x, COLUMNS)]) for z in depth]
            store(c[at(y, ROWS), at(x, COLUMNS)], product(lefts, rights))
    return c


@nki.jit
def blocked(a, b):
    """Blocks of 16 x 2 x 8 tiles, whose sums stand in SBUF: with the blocks of `a` and `b` all of its 224 KiB."""
    c = output(a, b)
    high, wide, deep = 16 * ROWS, 2 * COLUMNS, 8
    for x in range(b.shape[1] // wide):
        sums = [[nl.zeros((ROWS, COLUMNS), a.dtype) for _ in range(2)] for _ in range(a.shape[1] // ROWS)]
        for z in range(a.shape[0] // (deep * ROWS)):
            depth = range(z * deep, (z + 1) * deep)
            rights = [loaded(b[at(one, ROWS), at(x, wide)]) for one in depth]
            for y in range(a.shape[1] // high):
                lefts = [loaded(a[at(one, ROWS), at(y, high)]) for one in depth]
                for across in range(2):
                    for down in range(16):
                        total = sums[y * 16 + down][across]
                        nisa.tensor_tensor(dst=total, data1=total, op=nl.add,
                                           data2=product(lefts, rights, at(down, ROWS), at(across, COLUMNS)))
        for y, row in enumerate(sums):
            packed = nl.ndarray((ROWS, wide), c.dtype)
            for across, total in enumerate(row):
                nisa.tensor_copy(dst=packed[:, at(across, COLUMNS)], src=total)
            nisa.dma_copy(dst=c[at(y, ROWS), at(x, wide)], src=packed)
    return c


def add_product(total, lefts, rights, down):
    copy = nl.ndarray(total.shape, total.dtype)
    nisa.tensor_copy(dst=copy, src=product(lefts, rights, down))
    nisa.tensor_tensor(dst=total, data1=total, data2=copy, op=nl.add)


@nki.jit
def bf16_hand(a, b):
    """The order of loads of nki-autotune's best kernel: `a` [k, m] again for each 512 columns."""
    c = output(a, b)
    for x in range(b.shape[1] // COLUMNS):
        sums = [nl.zeros((ROWS, COLUMNS), a.dtype) for _ in range(a.shape[1] // ROWS)]
        for z in range(a.shape[0] // 1024):
            depth = range(z * 8, (z + 1) * 8)
            rights = [loaded(b[at(one, ROWS), at(x, COLUMNS)]) for one in depth]
            for y in range(a.shape[1] // 512):
                lefts = [loaded(a[at(one, ROWS), at(y, 512)]) for one in depth]
                for down in range(4):
                    add_product(sums[y * 4 + down], lefts, rights, at(down, ROWS))
        for y, total in enumerate(sums):
            nisa.dma_copy(dst=c[at(y, ROWS), at(x, COLUMNS)], src=total)
    return c


@nki.jit
def bf16_dma_transpose(a, b):
    """`a` is [m, k]; DMA turns it while it loads."""
    c = nl.ndarray((a.shape[0], b.shape[1]), a.dtype, buffer=nl.shared_hbm)
    for y in range(a.shape[0] // 1024):
        sums = [nl.zeros((ROWS, b.shape[1]), a.dtype) for _ in range(8)]
        for x in range(b.shape[1] // COLUMNS):
            for z in range(a.shape[1] // 1024):
                depth = range(z * 8, (z + 1) * 8)
                lefts = [turned(a[at(y, 1024), at(one, ROWS)]) for one in depth]
                rights = [loaded(b[at(one, ROWS), at(x, COLUMNS)]) for one in depth]
                for down in range(8):
                    add_product(sums[down][:, at(x, COLUMNS)], lefts, rights, at(down, ROWS))
            for down in range(8):
                nisa.dma_copy(dst=c[at(y * 8 + down, ROWS), at(x, COLUMNS)], src=sums[down][:, at(x, COLUMNS)])
    return c


@nki.jit
def norm_and_projection(x, weights):
    """RMSNorm of each row of x, then the product with weights, which are loaded first and stay in SBUF."""
    (rows, hidden), heads = x.shape, weights.shape[1]
    c = nl.ndarray((rows, heads), x.dtype, buffer=nl.shared_hbm)
    rights = [loaded(weights[at(z, ROWS), :]) for z in range(hidden // ROWS)]
    for y in range(rows // ROWS):
        tile = loaded(x[at(y, ROWS), :])
        squares, norm = nl.ndarray(tile.shape, nl.float32), nl.ndarray((ROWS, 1), nl.float32)
        nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=norm)
        nisa.tensor_scalar(dst=norm, data=norm, op0=nl.multiply, operand0=1 / hidden, op1=nl.add, operand1=1e-6)
        nisa.activation(dst=norm, op=nl.rsqrt, data=norm)
        lefts = []
        for z in range(hidden // COLUMNS):
            scaled = nl.ndarray((ROWS, COLUMNS), x.dtype)
            nisa.tensor_scalar(dst=scaled, data=tile[:, at(z, COLUMNS)], op0=nl.multiply, operand0=norm)
            four = attention_nki.turned(*(scaled[:, at(one, ROWS)] for one in range(4)))
            lefts += [four[:, at(one, ROWS)] for one in range(4)]
        store(c[at(y, ROWS), :], product(lefts, rights))
    return c


@nki.jit
def double_rows(a, b):
    """a^T b in fp8: a [k, 2, m] and b [k, 2, n] have two rows of the sum in each. All results are in PSUM meanwhile."""
    c = nl.ndarray((a.shape[2], b.shape[2]), nl.float32, buffer=nl.shared_hbm)
    results = {(y, x): nl.ndarray((ROWS, COLUMNS), nl.float32, buffer=nl.psum)
               for y in range(a.shape[2] // ROWS) for x in range(b.shape[2] // COLUMNS)}
    for z in range(a.shape[0] // ROWS):
        left, right = loaded(a[at(z, ROWS)]), loaded(b[at(z, ROWS)])
        for (y, x), result in results.items():
            nisa.nc_matmul(dst=result, stationary=left[:, :, at(y, ROWS)], moving=right[:, :, at(x, COLUMNS)],
                           perf_mode=nisa.matmul_perf_mode.double_row)
    for (y, x), result in results.items():
        store(c[at(y, ROWS), at(x, COLUMNS)], result)
    return c


def time_us(kernel, dtype, *shapes):
    return kernel.run(*(nki.shape(shape, dtype) for shape in shapes), data=False).time_us


def limits():
    """(AWS's limit in us, the time here) of each operation (nki-samples, test/unit)."""
    return [(25, time_us(norm_and_projection, nl.float16, (128, 512), (512, 512))),
            (40, time_us(norm_and_projection, nl.bfloat16, (512, 1024), (1024, 384))),
            (28, time_us(norm_and_projection, nl.bfloat16, (128, 1024), (1024, 512))),
            (380, time_us(attention_nki.attention, nl.bfloat16, *[(4096, 128)] * 3)),
            (320, time_us(double_rows, nl.float8_e4m3, (8192, 2, 512), (8192, 2, 1024)))]


def limits_kept():
    """How many limits are kept by a time that is not below a third of the limit, which no real core reaches."""
    found = limits()
    print(*(f"{here:.1f} us, limit {limit} us" for limit, here in found), sep="\n", file=sys.stderr)
    return sum(limit / 3 <= here <= limit for limit, here in found)


# The instructions that public kernels use, by how many use them.
USED = """dma_copy tensor_copy tensor_tensor nc_matmul memset activation tensor_scalar nc_transpose tensor_reduce nc_stream_shuffle
    dma_transpose get_nc_version reciprocal scalar_tensor_tensor activation_reduce iota sendrecv core_barrier tensor_scalar_reduce
    tensor_tensor_scan affine_select max8 nc_match_replace8 nc_find_index8 range_select dma_compute register_load register_alloc
    tensor_partition_reduce tensor_copy_predicated bn_stats bn_aggr tensor_scalar_cumulative local_gather nc_n_gather""".split()

LARGE, SQUARE = [(8192, 4096), (8192, 8192)], [(2048, 2048)] * 2
MEASURED = {"tiled": (tiled, nl.float32, LARGE, 39890), "hoisted": (hoisted, nl.float32, LARGE, 28200),
            "blocked": (blocked, nl.float32, LARGE, 28300), "bf16_hand": (bf16_hand, nl.bfloat16, SQUARE, 240.3),
            "bf16_dma_transpose": (bf16_dma_transpose, nl.bfloat16, SQUARE, 244.8)}


def over_measured(name):
    kernel, dtype, shapes, measured = MEASURED[name]
    ratio = time_us(kernel, dtype, *shapes) / measured
    print(f"{ratio:.3f} times the measured time", file=sys.stderr)
    return max(ratio, 1 / ratio)


def value(row):
    if row == "nki_isa_entries_done":  # absent names are not in the module, but made by __getattr__
        return sum(name in vars(nisa) for name in USED)
    if row == "nki_public_limits_kept":
        return limits_kept()
    return over_measured(row.removeprefix("nki_matmul_").removesuffix("_over_measured"))


if __name__ == "__main__":
    with node.core() as environment:
        os.environ.update(environment)
        print(value(sys.argv[1]))
