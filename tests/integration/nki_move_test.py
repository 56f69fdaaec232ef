#!/usr/bin/env python3
"""Runs kernels of NKI that move elements to other places (sim-node/nki) and compares numbers with numpy's.

    PATH=build/release/bin:$PATH tests/integration/nki_move_test.py

As nki_test.py: trn-run must reach a core; runs itself with the Python of `.ci/setup`; status 77 is skipped.
"""

import unittest

import nki_ground
from nki_ground import load, stored

import nki
import nki.isa as nisa
import nki.language as nl
import numpy


@nki.jit
def transposed(a, engine):
    """By TensorE through PSUM, or by VectorE in SBUF."""
    rows, columns = a.shape
    by_vector = engine is nisa.vector_engine
    turned = nl.ndarray((columns, rows), a.dtype, buffer=nl.sbuf if by_vector else nl.psum)
    nisa.nc_transpose(turned, load(a), engine=engine)
    tile = nl.ndarray((columns, rows), a.dtype)
    nisa.tensor_copy(tile, turned)
    return stored(tile)


@nki.jit
def transposed_by_matmul(a, identity):
    turned = nl.ndarray((a.shape[1], a.shape[0]), a.dtype, buffer=nl.psum)
    nisa.nc_matmul(dst=turned, stationary=load(a), moving=load(identity), is_transpose=True)
    tile = nl.ndarray(turned.shape, a.dtype)
    nisa.tensor_copy(tile, turned)
    return stored(tile)


@nki.jit
def spread(ones, row):
    """A row on each partition by a product with ones, as AWS's kernels spread a bias."""
    product = nl.ndarray((ones.shape[1], row.shape[1]), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, load(ones), load(row), is_stationary_onezero=True)
    tile = nl.ndarray(product.shape, nl.float32)
    nisa.tensor_copy(tile, product)
    return stored(tile)


@nki.jit
def shuffled(a, mask):
    """All partitions of a copy of `a`, moved within each 32."""
    tile = load(a)
    nisa.nc_stream_shuffle(dst=tile, src=tile, shuffle_mask=mask)
    return stored(tile)


@nki.jit
def repeated(a):
    """A row on each partition, as AWS's kernels load a bias."""
    tile = nl.ndarray((128, a.shape[1]), a.dtype)
    nisa.dma_copy(tile[0:1], a)
    for at in range(4):
        nisa.nc_stream_shuffle(src=tile[0:1], dst=tile[at * 32:(at + 1) * 32], shuffle_mask=[0] * 32)
    return stored(tile)


@nki.jit
def transposed_by_dma(a, in_sbuf, mode):
    shape = (a.shape[-1], *a.shape[1:-1], a.shape[0])
    tile = nl.ndarray(shape, a.dtype)
    nisa.dma_transpose(dst=tile, src=load(a) if in_sbuf else a, dge_mode=mode)
    return stored(tile)


@nki.jit
def transposed_by_patterns(a):
    """Four dimensions of patterns, as AWS's kernels load queries and keys."""
    rows, columns = a.shape
    tile = nl.ndarray((columns, rows), a.dtype)
    nisa.dma_transpose(dst=tile.ap([[rows, columns], [1, 1], [1, 1], [1, rows]]),
                       src=a.ap([[columns, rows], [1, 1], [1, 1], [1, columns]]))
    return stored(tile)


@nki.jit
def counted(shape, dtype, pattern, offset, multiplier):
    tile = nl.ndarray(shape, dtype)
    nisa.iota(tile, pattern, offset=offset, channel_multiplier=multiplier)
    return stored(tile)


@nki.jit
def masked(a, cmp_op):
    """Keeps what the comparison of row and column leaves."""
    tile = load(a)
    nisa.affine_select(dst=tile, pattern=[[-1, a.shape[1]]], offset=3, channel_multiplier=1, cmp_op=cmp_op,
                       on_true_tile=tile, on_false_value=-1e30)
    return stored(tile)


@nki.jit
def gathered(a, indices):
    tile = nl.ndarray(indices.shape, a.dtype)
    nisa.nc_n_gather(dst=tile, data=load(a), indices=load(indices))
    return stored(tile)


@nki.jit
def gathered_by_groups(a, index, run, valid):
    tile = nl.ndarray((a.shape[0], run * (valid or 16 * index.shape[1])), a.dtype)
    nisa.local_gather(tile, load(a), load(index), run, valid)
    return stored(tile)


@nki.jit
def summed(a, b, c, d, count):
    sources = (a, b, c, d)[:count]
    tile = nl.ndarray(sources[0].shape, sources[0].dtype)
    nisa.dma_compute(tile, sources, scales=[1.0] * len(sources), reduce_op=nl.add)
    result = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_compute(result, srcs=[tile, sources[0]], reduce_op=nl.add)
    return result


def random(shape, dtype=numpy.float32):
    values = numpy.random.default_rng(7).standard_normal(shape) * 100
    return values.astype(dtype)


class Numbers(unittest.TestCase):
    def assert_same(self, found, expected):
        self.assertEqual(found.dtype, expected.dtype)
        numpy.testing.assert_array_equal(found, expected)

    def test_transposes_of_each_engine(self):
        for dtype in (numpy.float32, numpy.float16, numpy.int32):
            a = random((128, 64), dtype)
            self.assert_same(transposed(a, nisa.engine.unknown), a.T)
            self.assert_same(transposed(a, nisa.tensor_engine), a.T)
            self.assert_same(transposed(a[:32, :17].copy(), nisa.vector_engine), a[:32, :17].T)

    def test_transposes_by_nc_matmul(self):
        for dtype in (numpy.float32, numpy.float16):
            a, identity = random((128, 64), dtype), numpy.eye(128, dtype=dtype)
            a[3, 4], a[5, 6] = numpy.inf, numpy.nan
            self.assert_same(transposed_by_matmul(a, identity), a.T)
            self.assert_same(transposed_by_matmul(a, identity[::-1]), a[::-1].T)
        with self.assertRaisesRegex(nki.Error, "moving has 2.* in partition 0 of column 0; is_transpose"):
            transposed_by_matmul(a, identity * 2)

    def test_a_row_is_spread_by_a_product_with_ones(self):
        ones, row = numpy.ones((1, 128), numpy.float32), random((1, 512))
        self.assert_same(spread(ones, row), numpy.repeat(row, 128, axis=0))
        with self.assertRaisesRegex(nki.Error, "stationary has 2.*; is_stationary_onezero promises 0 and 1 only"):
            spread(ones * 2, row)

    def test_shuffles(self):
        a = random((128, 8))
        mask = [31 - i if i % 3 else 255 for i in range(32)]
        rows = [row if mask[row % 32] == 255 else row // 32 * 32 + mask[row % 32] for row in range(128)]
        self.assert_same(shuffled(a, mask), a[rows])
        self.assert_same(repeated(a[:1]), numpy.repeat(a[:1], 128, axis=0))

    def test_transposes_by_dma(self):
        for shape, axes in (((48, 100), (1, 0)), ((16, 5, 64), (2, 1, 0)), ((16, 2, 3, 128), (3, 1, 2, 0))):
            for dtype in (numpy.float16, numpy.float32):
                a = random(shape, dtype)
                for in_sbuf in (False, True):
                    self.assert_same(transposed_by_dma(a, in_sbuf, nisa.dge_mode.unknown), a.transpose(axes))
        a = random((16, 128), numpy.float16)
        self.assert_same(transposed_by_dma(a, False, nisa.dge_mode.hwdge), a.T)
        a = random((96, 128), numpy.float16)
        self.assert_same(transposed_by_patterns(a), a.T)

    def test_patterns(self):
        rows, columns = numpy.arange(64)[:, None], numpy.arange(24)[None]
        value = 5 - 3 * rows + 100 * (columns // 12) - 7 * (columns // 4 % 3) + columns % 4
        pattern = [[100, 2], [-7, 3], [1, 4]]
        for dtype in ("int32", "float32", "float16", "int16"):
            self.assert_same(counted((64, 24), dtype, pattern, 5, -3), value.astype(dtype))
            self.assert_same(counted((64, 2, 12), dtype, pattern, 5, -3), value.astype(dtype).reshape(64, 2, 12))
        large = counted((1, 3), "int32", [[1, 3]], 2**31 - 3, 0)
        self.assert_same(large, numpy.array([[2**31 - 3, 2**31 - 2, 2**31 - 1]], numpy.int32))

    def test_masks(self):
        a = random((128, 96))
        affine = 3 + numpy.arange(128)[:, None] - numpy.arange(96)[None]
        for name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
            keeps = getattr(numpy, name)
            self.assert_same(masked(a, keeps), numpy.where(keeps(affine, 0), a, numpy.float32(-1e30)))

    def test_gathers(self):
        a = random((128, 40))
        indices = numpy.random.default_rng(1).integers(0, 40, (128, 64)).astype(numpy.uint32)
        self.assert_same(gathered(a, indices), numpy.take_along_axis(a, indices.astype(numpy.int64), axis=1))
        for run, valid in ((1, None), (4, None), (2, 37)):
            index = numpy.random.default_rng(2).integers(0, 41 - run, (128, 3)).astype(numpy.uint16)
            expected = []
            for group in range(8):
                part = slice(16 * group, 16 * group + 16)
                named = index[part].flatten(order="F")[:valid].astype(int)
                expected.append(numpy.concatenate([a[part, i:i + run] for i in named], axis=1))
            self.assert_same(gathered_by_groups(a, index, run, valid), numpy.concatenate(expected))

    def test_sums_by_dma(self):
        sources = [random((128, 64)) + shift for shift in range(4)]
        for count in (2, 3, 4):
            expected = sources[0]
            for source in sources[1:count]:
                expected = expected + source
            self.assert_same(summed(*sources, count), expected + sources[0])

    def test_an_index_behind_the_last_element_is_an_error(self):
        indices = numpy.full((128, 4), 40, numpy.uint32)
        with self.assertRaisesRegex(nki.Error, "indices has 40 in partition 0"):
            gathered(random((128, 40)), indices)


class Programs(unittest.TestCase):
    def refused(self, message, function, kind=nki.Error):
        with self.assertRaisesRegex(kind, message):
            nki.jit(function).program(nki.shape((128, 64), nl.bfloat16))

    def test_an_engine_follows_from_the_memories(self):
        def kernel(a):
            tile, psum = nl.ndarray((32, 32), nl.float32, name="s"), nl.ndarray((32, 32), nl.float32, buffer=nl.psum, name="p")
            nisa.nc_transpose(psum, tile)
            nisa.nc_transpose(tile, psum)
            nisa.nc_transpose(psum, tile, engine=nisa.vector_engine)
            return stored(load(a))
        text = nki.jit(kernel).program(nki.shape((128, 64), nl.bfloat16))
        self.assertEqual([line for line in text.splitlines() if "transpose" in line],
                         ["nc_transpose p <- s engine=tensor", "nc_transpose s <- p engine=vector",
                          "nc_transpose p <- s engine=vector"])

    def test_what_is_not_there_is_refused_by_name(self):
        def tile(*shape, dtype=nl.bfloat16):
            return nl.ndarray(shape, dtype)
        self.refused("dma_transpose with dge_mode=1", lambda a: nisa.dma_transpose(tile(64, 128), a, dge_mode=1), nki.NotBuilt)
        self.refused("hwdge takes elements of 2 bytes", lambda a: nisa.dma_transpose(tile(64, 128), a, dge_mode=nisa.dge_mode.hwdge))
        self.refused("axes is .0, 1.; expected .1, 0.", lambda a: nisa.dma_transpose(tile(64, 128), a, axes=(0, 1)))
        self.refused("as many partitions as", lambda a: nisa.dma_transpose(tile(128, 64), a))
        self.refused("expected 2 to 4 dimensions", lambda a: nisa.dma_transpose(tile(128, 64), a[0]))
        self.refused("with 5 sources", lambda a: nisa.dma_compute(tile(128, 64), [a] * 5, nl.add), nki.NotBuilt)
        self.refused("with scales=", lambda a: nisa.dma_compute(tile(128, 64), [a] * 2, nl.add, scales=[1, 2]), nki.NotBuilt)
        self.refused("with reduce_op='maximum'", lambda a: nisa.dma_compute(tile(128, 64), [a] * 2, nl.maximum), nki.NotBuilt)
        self.refused("shuffle_mask is 'x'", lambda a: nisa.nc_stream_shuffle(tile(32, 8), tile(32, 8), "x"))
        self.refused("cmp_op is add", lambda a: nisa.affine_select(tile(8, 8), [[1, 8]], 0, 1, tile(8, 8), 0, nl.add))
        self.refused("expected 8 elements in a partition: 1 for each of 8", lambda a: nisa.local_gather(
            tile(16, 4), tile(16, 8), tile(16, 1, dtype=nl.uint16), num_valid_indices=8))


if __name__ == "__main__":
    nki_ground.main()
