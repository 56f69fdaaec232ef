#!/usr/bin/env python3
"""Runs kernels of NKI whose copies read places from memory, and products of two rows a partition (sim-node/nki); compares
with numpy's numbers.

    PATH=build/release/bin:$PATH tests/integration/nki_indirect_test.py

As nki_test.py: trn-run must reach a core; runs itself with the Python of `.ci/setup`; status 77 is skipped. NKI_LIBRARY may name
a checkout of aws-neuron/nki-library.
"""

import math
import sys
import types
import unittest
import unittest.mock

import nki_ground
from nki_ground import AwsLibrary, load

import nki
import nki.isa as nisa
import nki.language as nl
import numpy


SKIP = nisa.oob_mode.skip


@nki.jit
def gathered(table, rows, mode=nisa.oob_mode.error):
    """Rows of a table of any dimensions, of which zeros stay where a row is not there."""
    shape = (rows.shape[0], *table.shape[1:])
    tile, size = nl.ndarray(shape, table.dtype), math.prod(shape[1:])
    nisa.memset(tile, 0)
    nisa.dma_copy(dst=tile.reshape((shape[0], size)),
                  src=table.ap(pattern=[[size, shape[0]], [1, size]], vector_offset=load(rows), indirect_dim=0), oob_mode=mode)
    result = nl.ndarray(shape, table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(result, tile)
    return result


@nki.jit
def scattered(table, rows, values):
    """Rows of a part of each row of the table, from another column on."""
    columns = table.shape[1]
    nisa.dma_copy(table.ap([[columns - 3, values.shape[0]], [1, values.shape[1]]], offset=2, vector_offset=load(rows)),
                  load(values), oob_mode=SKIP)
    return table


@nki.jit
def pages(cache, page, step):
    """Two steps of a page, along the cache's second dimension, as attention reads a cache of keys."""
    _, length, width = cache.shape
    result = nl.ndarray((2, width), cache.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((2, width), cache.dtype)
    nisa.dma_copy(tile, cache.ap([[width, 2], [1, width]], offset=step * length * width, scalar_offset=load(page),
                                 indirect_dim=1), dge_mode=nisa.dge_mode.hwdge)
    nisa.dma_copy(result, tile)
    return result


@nki.jit
def updated(cache, position, values):
    """A cache with new columns at a position, along its last dimension."""
    rows, length = cache.shape
    nisa.dma_copy(cache.ap([[length, rows], [1, values.shape[1]]], scalar_offset=load(position), indirect_dim=1), load(values))
    return cache


@nki.jit
def of_double_rows(left, right, double):
    """left and right: [K, 2, columns]. With `double` one product, else two that are added."""
    product = nl.ndarray((left.shape[2], right.shape[2]), nl.float32, buffer=nl.psum)
    stationary, moving = load(left), load(right)
    if double:
        nisa.nc_matmul(product, stationary, moving, perf_mode=nisa.matmul_perf_mode.double_row)
    else:
        for row in range(2):
            nisa.nc_matmul(product, stationary[:, row], moving[:, row])
    tile = nl.ndarray(product.shape, nl.float32)
    nisa.tensor_copy(tile, product)
    result = nl.ndarray(product.shape, nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(result, tile)
    return result


@nki.jit
def in_column_tiles(left, right):
    """Four products of 32 columns, each to partitions of its own."""
    product = nl.ndarray((128, right.shape[1]), nl.float32, buffer=nl.psum)
    stationary, moving = load(left), load(right)
    for column in range(0, 128, 32):
        nisa.nc_matmul(product[column:column + 32], stationary[:, column:column + 32], moving, tile_position=(0, column),
                       tile_size=(128, 32))
    tile = nl.ndarray(product.shape, nl.float32)
    nisa.tensor_copy(tile, product)
    result = nl.ndarray(product.shape, nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(result, tile)
    return result


@nki.jit
def first_tiles(table, tiles):
    """As many tiles of 128 rows as a tensor says, one after the other added up."""
    columns = table.shape[1]
    register, start = nisa.register_alloc(), nl.ndarray((1, 1), nl.int32)
    nisa.register_load(register, load(tiles))
    nisa.memset(start, 0)
    total = nl.ndarray((128, columns), table.dtype)
    nisa.memset(total, 0)
    for _ in nl.dynamic_range(0, register, 1):
        rows = nl.ndarray((128, columns), table.dtype)
        nisa.dma_copy(rows, table.ap([[columns, 128], [1, columns]], scalar_offset=start, indirect_dim=0))
        nisa.tensor_tensor(total, total, rows, op=nl.add)
        nisa.tensor_scalar(start, start, op0=nl.add, operand0=128)
    result = nl.ndarray(total.shape, table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(result, total)
    return result


@nki.jit
def halvings(number):
    """How often a whole number is halved until nothing is left: a loop whose end each turn decides."""
    left, count = load(number), nl.ndarray((1, 1), nl.int32)
    nisa.memset(count, 0)
    register = nisa.register_alloc(left)
    while register:
        nisa.tensor_scalar(left, left, op0=nl.right_shift, operand0=1)
        nisa.tensor_scalar(count, count, op0=nl.add, operand0=1)
        nisa.register_load(register, left)
    result = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
    nisa.dma_copy(result, count)
    return result


def column(*numbers, dtype=numpy.int32):
    return numpy.array(numbers, dtype).reshape(-1, 1)


class Numbers(unittest.TestCase):
    def setUp(self):
        self.random = numpy.random.default_rng(5)

    def test_rows_are_gathered(self):
        table = self.random.standard_normal((500, 3, 16)).astype(numpy.float32)
        for rows in (self.random.integers(0, 500, (128, 1)), self.random.integers(0, 500, (5, 1)), column(7)):
            for dtype in (numpy.int32, numpy.uint32):
                numpy.testing.assert_array_equal(gathered(table, rows.astype(dtype)), table[rows[:, 0]])

    def test_rows_that_are_not_there_are_left_out(self):
        table = self.random.standard_normal((20, 8)).astype(numpy.float32)
        expected = table[[3, 0, 0, 19, 0]]
        expected[[1, 2, 4]] = 0
        numpy.testing.assert_array_equal(gathered(table, column(3, 20, -1, 19, -1000000), SKIP), expected)
        with self.assertRaisesRegex(nki.Error, "offsets has 20 in partition 1 of the operand, from where src leaves table"):
            gathered(table, column(3, 20, -1, 19, 0))

    def test_rows_are_scattered(self):
        table = self.random.standard_normal((40, 10)).astype(numpy.float32)
        values = self.random.standard_normal((6, 5)).astype(numpy.float32)
        rows = column(4, 39, 0, 17, 99, 8)
        expected = table.copy()
        for at, row in enumerate(rows[:, 0]):
            if row < 40:
                expected[row, 2:7] = values[at]
        numpy.testing.assert_array_equal(scattered(table, rows, values), expected)

    def test_one_offset_moves_all_of_a_pattern(self):
        cache = self.random.standard_normal((3, 12, 8)).astype(numpy.float32)
        for step in range(3):
            numpy.testing.assert_array_equal(pages(cache, column(9, dtype=numpy.uint32), step), cache[step, 9:11])
        with self.assertRaisesRegex(nki.Error, "from where src leaves cache, which has 288 elements"):
            pages(cache, column(11, dtype=numpy.uint32), 2)
        cache = self.random.standard_normal((64, 100)).astype(numpy.float32)
        values = self.random.standard_normal((64, 4)).astype(numpy.float32)
        expected = cache.copy()
        expected[:, 33:37] = values
        numpy.testing.assert_array_equal(updated(cache, column(33), values), expected)

    def test_a_register_says_how_often_a_loop_runs(self):
        table = self.random.integers(-99, 99, (512, 16)).astype(numpy.float32)
        for tiles in (0, 1, 3):
            numpy.testing.assert_array_equal(first_tiles(table, column(tiles)), table[:128 * tiles].reshape(-1, 128, 16).sum(0))

    def test_a_register_ends_a_loop(self):
        for number, expected in ((0, 0), (1, 1), (9, 4)):
            self.assertEqual(int(halvings(column(number))[0, 0]), expected)

    def test_a_register_needs_numbers(self):
        with self.assertRaisesRegex(nki.NotBuilt, "while number is without numbers: a program has no jumps"):
            halvings.run(nki.shape((1, 1), nl.int32), data=False)

    def test_double_rows_are_the_sum_of_two_products_in_half_the_time(self):
        left = nki.tensor(self.random.integers(-4, 5, (128, 2, 64)).astype(numpy.float32), nl.float8_e4m3)
        right = nki.tensor(self.random.integers(-4, 5, (128, 2, 512)).astype(numpy.float32), nl.float8_e5m2)
        once, twice = of_double_rows.run(left, right, True), of_double_rows.run(left, right, False)
        numpy.testing.assert_array_equal(once.results, twice.results)
        self.assertAlmostEqual(2 * once.resources["tensor"][0], twice.resources["tensor"][0], places=2)

    def test_products_in_column_tiles(self):
        left, right = (self.random.integers(-4, 5, (128, size)).astype(numpy.float32) for size in (128, 200))
        numpy.testing.assert_array_equal(in_column_tiles(left, right), left.T @ right)


class Library(AwsLibrary):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.default_rng(7)

    def test_losses_read_the_logits_of_their_targets(self):
        from nkilib_src.nkilib.experimental.loss.cross_entropy import cross_entropy_forward
        logits = self.random.standard_normal((8, 96)).astype(numpy.float32)
        targets = self.random.integers(0, 96, 8).astype(numpy.int32)
        sums = numpy.log(numpy.exp(logits.astype(numpy.float64)).sum(axis=1))
        loss, state = cross_entropy_forward[2](logits, targets, positions_per_batch=4, chunk_size=32, dtype=nl.float32)
        numpy.testing.assert_allclose(state, sums, rtol=1e-6)
        numpy.testing.assert_allclose(loss, sums - logits[range(8), targets], rtol=1e-6, atol=1e-6)

    def test_rows_go_to_offsets_and_those_outside_are_left_out(self):
        from nkilib_src.nkilib.core.subkernels.indexed_flatten import indexed_flatten
        rows, offsets = self.random.integers(0, 1000, (4, 256)).astype(numpy.int32), numpy.array([5, 40, 90, -1000], numpy.int32)
        expected = numpy.full((128, 8), -1)
        for row, offset in zip(rows[:3], offsets):
            expected[offset:offset + 32] = row.reshape(32, 8)
        numpy.testing.assert_array_equal(indexed_flatten[2](rows, 8, 1024, offsets), expected.flatten())

    def test_affinities_of_chosen_experts_are_scattered(self):
        typing = types.ModuleType("neuronxcc.nki.typing")
        typing.mutable_tensor = object  # of annotations alone
        modules = {"neuronxcc": types.ModuleType("neuronxcc"), "neuronxcc.nki": types.ModuleType("neuronxcc.nki"),
                   "neuronxcc.nki.typing": typing}
        with unittest.mock.patch.dict(sys.modules, modules):
            modules["neuronxcc"].nki, modules["neuronxcc.nki"].typing = modules["neuronxcc.nki"], typing
            from nkilib_src.nkilib.core.router_topk.router_topk import router_topk
            from nkilib_src.nkilib.core.utils.common_types import RouterActFnType
        x = self.random.standard_normal((32, 512)).astype(numpy.float32)
        weight = (self.random.standard_normal((512, 64)) / 20).astype(numpy.float32)
        logits = x.astype(numpy.float64) @ weight
        chosen = numpy.argsort(-logits)[:, :2]
        kept = numpy.exp(numpy.take_along_axis(logits, chosen, 1))
        expected = numpy.zeros((32, 64))
        numpy.put_along_axis(expected, chosen, kept / kept.sum(axis=1, keepdims=True), 1)
        empty = numpy.zeros((32, 64), numpy.float32)
        for scatter, tiles in ((True, False), (True, True), (False, True)):
            found, indices, affinities = nki.jit(router_topk)(
                x, weight, None, empty, empty, numpy.zeros((32, 2), numpy.uint32), RouterActFnType.SOFTMAX, 2, 1, 2,
                norm_topk_prob=True, use_column_tiling=tiles, use_indirect_dma_scatter=scatter)
            numpy.testing.assert_allclose(found, logits, rtol=1e-4, atol=1e-4)
            numpy.testing.assert_array_equal(indices, chosen)
            numpy.testing.assert_allclose(affinities, expected, rtol=1e-4, atol=1e-5)


class Programs(unittest.TestCase):
    def refused(self, message, function, kind=nki.Error):
        with self.assertRaisesRegex(kind, message):
            nki.jit(function).program(nki.shape((128, 64), nl.float32))

    def test_the_engine_of_a_copy(self):
        def kernel(a):
            tile, rows = nl.ndarray((128, 64), a.dtype, name="t"), nl.ndarray((128, 1), nl.int32, name="i")
            nisa.dma_copy(rows, a[:, 0:1])
            nisa.dma_copy(tile, a.ap([[64, 128], [1, 64]], vector_offset=rows), oob_mode=SKIP)
            nisa.dma_copy(tile, a.ap([[64, 128], [1, 64]], scalar_offset=rows[5], indirect_dim=1))
            nisa.dma_copy(a.ap([[64, 128], [1, 64]], scalar_offset=rows[5]), tile)
            nisa.dma_copy(tile[0:64, 0:1], a.ap([[7, 64]], vector_offset=rows[0:64], offset=3, indirect_dim=1))
            nisa.dma_copy(tile, a.ap([[64, 128], [1, 32]], scalar_offset=1, indirect_dim=1), engine=nisa.engine.gpsimd)
            return a
        lines = [line for line in nki.jit(kernel).program(nki.shape((128, 64), nl.float32)).splitlines() if "copy" in line]
        self.assertEqual(lines[1:], [
            "dma_copy_indirect t <- a.ap(offset=0, rows=128x0, free=64x1) i step=64 skip engine=gpsimd",
            "dma_copy_indirect t <- a.ap(offset=0, rows=128x64, free=64x1) i[5, 0:1] step=1 engine=sync",
            "dma_copy_indirect a.ap(offset=0, rows=128x64, free=64x1) <- t i[5, 0:1] step=64 scatter engine=scalar",
            "dma_copy_indirect t[0:64, 0:1] <- a.ap(offset=3, rows=64x0, free=1x1) i[0:64, 0:1] step=1 engine=gpsimd",
            "dma_copy t <- a.ap(offset=1, rows=128x64, free=32x1) engine=gpsimd"])

    def test_what_is_not_there_is_refused_by_name(self):
        def tile(*shape, dtype=nl.float32, **options):
            return nl.ndarray(shape, dtype, **options)

        def rows(a, count=128, **options):
            return a.ap([[64, 128], [1, 64]], vector_offset=tile(count, 1, dtype=nl.int32), **options)
        self.refused("nki.isa.dma_compute with an offset that is read from memory",
                     lambda a: nisa.dma_compute(tile(128, 64), [rows(a), rows(a)], nl.add), nki.NotBuilt)
        self.refused("dma_copy with offsets on both sides", lambda a: nisa.dma_copy(rows(a), rows(a)), nki.NotBuilt)
        self.refused("with 128 of them", lambda a: rows(a, 64))
        self.refused("dge_mode is .*it reads no offset of each row", lambda a: nisa.dma_copy(
            tile(128, 64), rows(a), dge_mode=nisa.dge_mode.hwdge))
        self.refused("at most one of both", lambda a: rows(a, scalar_offset=tile(1, 1, dtype=nl.int32)))
        self.refused("whose place is read from memory", lambda a: rows(a)[0:64])
        self.refused("whose place is read from memory", lambda a: rows(a).reshape((64, 128)))
        self.refused("indirect_dim 2; expected 0 to 1", lambda a: a.ap([[1, 1]], scalar_offset=0, indirect_dim=2))
        self.refused("ap of a tile with an offset", lambda a: rows(tile(128, 64)), nki.NotBuilt)
        self.refused("dynamic_range with a tile as its bound, without a register",
                     lambda a: nl.dynamic_range(tile(1, 1, dtype=nl.int32)), nki.NotBuilt)
        self.assertEqual(list(nl.dynamic_range(1, 7, 3)), [1, 4])
        eight, p = dict(dtype=nl.float8_e4m3), dict(buffer=nl.psum)
        self.refused("expected .partitions, 2, columns., for double_row", lambda a: nisa.nc_matmul(
            tile(128, 128, **p), tile(128, 256, **eight), tile(128, 2, 128, **eight), perf_mode="double_row"))
        self.refused("with perf_mode='double_column'", lambda a: nisa.nc_matmul(
            tile(128, 128, **p), tile(128, 128), tile(128, 128), perf_mode="double_column"), nki.NotBuilt)
        self.refused("expected columns of 32, 64 or 128", lambda a: nisa.nc_matmul(
            tile(32, 64, **p), tile(128, 32), tile(128, 64), tile_position=(0, 16), tile_size=(128, 32)))
        self.refused("the product needs 64 columns", lambda a: nisa.nc_matmul(
            tile(64, 64, **p), tile(128, 64), tile(128, 64), tile_position=(0, 0), tile_size=(128, 32)))
        self.refused("begin at partitions .0, 0.: expected the same", lambda a: nisa.nc_matmul(
            tile(32, 64, **p), tile(128, 32), tile(128, 64), tile_position=(0, 32), tile_size=(128, 32)))


if __name__ == "__main__":
    nki_ground.main()
