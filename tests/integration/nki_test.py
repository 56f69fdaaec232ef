#!/usr/bin/env python3
"""Runs kernels of NKI (sim-node/nki) with trn-run and compares numbers with numpy's.

    PATH=build/release/bin:$PATH tests/integration/nki_test.py

trn-run must reach a core: in a pod with a claim. Runs itself with the Python that `.ci/setup` made for it (`.ci/python`).
Status 77 (skipped) without one, or without trn-run and a core.
"""

import dataclasses
import importlib.util
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import nki_ground
from nki_ground import EPSILON, PACKAGE, ROOT, as_bf16

import nki
import nki.collectives as ncc
import nki.dtype
import nki.isa as nisa
import nki.language as nl
import numpy


def load(source, rows, columns):
    """A new tile in SBUF with a part of a tensor."""
    part = source[rows, columns]
    tile = nl.ndarray(part.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=part)
    return tile


def store(part, product):
    tile = nl.ndarray(part.shape, dtype=part.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=product)
    nisa.dma_copy(dst=part, src=tile)


@nki.jit
def basic(a, b):
    c = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(b.shape, b.dtype)
    product = nl.ndarray(c.shape, nl.float32, buffer=nl.psum)
    nisa.dma_copy(left, a)
    nisa.dma_copy(right, b)
    nisa.nc_matmul(product, left, right)
    tile = nl.ndarray(c.shape, nl.float32)
    nisa.tensor_copy(tile, product, engine=nisa.scalar_engine)
    nisa.dma_copy(c, tile)
    return c


@nki.jit
def tiled(a, b, tile=128, width=512):
    """Of any shape: the last tile of a dimension may be smaller."""
    (k, m), n = a.shape, b.shape[1]
    c = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    for y in nl.affine_range(0, m, tile):
        for x in nl.affine_range(0, n, width):
            part = c[y:min(y + tile, m), x:min(x + width, n)]
            product = nl.ndarray(part.shape, nl.float32, buffer=nl.psum)
            for z in nl.sequential_range(0, k, 128):
                rows = slice(z, min(z + 128, k))
                nisa.nc_matmul(dst=product, stationary=load(a, rows, slice(y, y + part.shape[0])),
                               moving=load(b, rows, slice(x, x + part.shape[1])))
            store(part, product)
    return c


@nki.jit
def hoisted(a, b):
    """The tiles of b are loaded once; the PSUM tile is made once, too, and begins anew after each copy."""
    (k, m), n = a.shape, b.shape[1]
    c = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    moving = [load(b, nl.ds(z * 128, 128), slice(None)) for z in nl.static_range(k // 128)]
    product = nl.ndarray((nl.par_dim(128), n), nl.float32, buffer=nl.psum)
    for y in nl.affine_range(m // 128):
        for z in nl.affine_range(k // 128):
            nisa.nc_matmul(dst=product, stationary=load(a, nl.ds(z * 128, 128), nl.ds(y * 128, 128)), moving=moving[z])
        store(c[nl.ds(y * 128, 128), :], product)
    return c


@nki.jit
def blocked(a, b):
    """Sums of 128 rows are added in SBUF, not in PSUM."""
    c = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.zeros(c.shape, nl.float32, buffer=nl.sbuf)
    for z in nl.sequential_range(a.shape[0] // 128):
        rows = nl.ds(z * 128, 128)
        product = nl.ndarray(c.shape, nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=load(a, rows, slice(None)), moving=load(b, rows, slice(None)))
        nisa.tensor_tensor(dst=sums, data1=sums, data2=product, op=nl.add)
    nisa.dma_copy(dst=c, src=sums)
    return c


@nki.jit
def combined(a, b, op, engine):
    """An operation on each element, beside a column of sevens."""
    c = nl.ndarray((a.shape[0], a.shape[1] + 1), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(c.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.memset(tile[:, a.shape[1]:], value=7, engine=engine)
    nisa.tensor_tensor(tile[:, :a.shape[1]], load(a, slice(None), slice(None)), load(b, slice(None), slice(None)), op=op,
                       engine=engine)
    nisa.dma_copy(c, tile)
    return c


@nki.jit
def reordered(a):
    """Rows of a in another order, and every other column."""
    c = nl.ndarray((2, 64, 8), dtype=a.dtype, buffer=nl.shared_hbm, name="c")
    d = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.shared_hbm, name="d")
    tile = load(a, slice(0, 128), slice(0, 16))
    nisa.dma_copy(dst=c[1], src=tile[0:64, 0:8])
    nisa.dma_copy(dst=c[0], src=tile[64:, 8:])
    nisa.dma_copy(dst=d, src=tile[:, ::2])
    return c, d


@nki.jit
def read_unwritten(a):
    c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, a.dtype)
    nisa.dma_copy(c, tile)  # this line
    return c


@nki.jit
def uneven(a):
    c = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
    left, right = load(a, slice(0, 128), slice(0, 64)), load(a, slice(0, 64), slice(0, 64))
    nisa.nc_matmul(product, left, right)  # this line
    store(c, product)
    return c


def line_of(kernel):
    """The number of the line with "this line" in a kernel, and the line."""
    lines, first = inspect.getsourcelines(kernel.__wrapped__)
    at = next(at for at, line in enumerate(lines) if "this line" in line)
    return first + at, lines[at].strip()


def tensors(*shapes):
    random = numpy.random.default_rng(3)
    return [random.standard_normal(shape, dtype=numpy.float32) for shape in shapes]


class ProductCase(unittest.TestCase):
    def assert_product(self, product, a, b, rounding=0.0):
        """`rounding` is the relative error of the product's own type."""
        a, b = a.astype(numpy.float64), b.astype(numpy.float64)
        sums = numpy.abs(a).T @ numpy.abs(b)
        self.assertEqual(product.shape, sums.shape)
        self.assertLess((numpy.abs(product - a.T @ b) / sums).max(), a.shape[0] * EPSILON + rounding)


class Numbers(ProductCase):
    def test_one_tile(self):
        a, b = tensors((128, 64), (128, 512))
        self.assert_product(basic(a, b), a, b)

    def test_tiles_of_each_type(self):
        a, b = tensors((256, 256), (256, 1024))
        self.assert_product(tiled(a, b), a, b)
        half = tiled(a.astype(numpy.float16), b.astype(numpy.float16))
        self.assertEqual(half.dtype, numpy.float16)
        self.assert_product(half, a.astype(numpy.float16), b.astype(numpy.float16), 2.0**-11)
        brain = tiled(nki.tensor(a, nl.bfloat16), nki.tensor(b, "bfloat16"))
        self.assertEqual(brain.dtype, numpy.float32)
        numpy.testing.assert_array_equal(brain, as_bf16(brain))
        self.assert_product(brain, as_bf16(a), as_bf16(b), 2.0**-8)

    def test_tfloat32_is_rounded_to_ten_bits_and_multiplied_exactly(self):
        a, b = tensors((128, 64), (128, 512))
        bits = a.view(numpy.uint32).astype(numpy.uint64)
        rounded = ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).astype(numpy.uint32).view(numpy.float32)
        numpy.testing.assert_array_equal(reordered(nki.tensor(a[:, :16], nl.tfloat32))[1], rounded[:, :16:2])
        numpy.testing.assert_array_equal(basic(nki.tensor(a, nl.tfloat32), b), basic(rounded, b))
        self.assertEqual(numpy.zeros(1, nl.tfloat32).dtype, numpy.float32)
        self.assertNotEqual(nl.tfloat32, nl.float32)

    def test_shapes_that_no_tile_divides(self):
        a, b = tensors((200, 150), (200, 700))
        self.assert_product(tiled(a, b), a, b)
        self.assert_product(tiled(a, b, tile=32, width=100), a, b)

    def test_a_psum_tile_that_is_used_again(self):
        a, b = tensors((256, 384), (256, 512))
        self.assert_product(hoisted(a, b), a, b)

    def test_several_results_and_strided_views(self):
        (a,) = tensors((128, 16))
        c, d = reordered(a)
        numpy.testing.assert_array_equal(c, numpy.stack([a[64:, 8:], a[:64, :8]]))
        numpy.testing.assert_array_equal(d, a[:, ::2])

    def test_zeros_of_a_psum_tile(self):
        def kernel(a, b):
            c = nl.ndarray((64, 512), nl.float32, buffer=nl.shared_hbm)
            product = nl.zeros((64, 512), nl.float32, buffer=nl.psum)
            for rows in (slice(0, 128), slice(128, 256)):
                nisa.nc_matmul(product, load(a, rows, slice(None)), load(b, rows, slice(None)))
            store(c, product)
            return c
        a, b = tensors((256, 64), (256, 512))
        self.assertNotIn("memset", nki.jit(kernel).program(a, b))
        self.assert_product(nki.jit(kernel)(a, b), a, b)

    def test_sums_in_sbuf(self):
        a, b = tensors((384, 128), (384, 512))
        self.assert_product(blocked(a, b), a, b)

    def test_operations_on_each_element(self):
        a, b = tensors((128, 16), (128, 16))
        for engine in (nisa.vector_engine, nisa.gpsimd_engine, nisa.unknown_engine):
            for name in ("add", "subtract", "multiply", "maximum", "minimum"):
                expected = numpy.hstack([getattr(numpy, name)(a, b), numpy.full((128, 1), 7, numpy.float32)])
                for op in (getattr(nl, name), getattr(numpy, name)):
                    numpy.testing.assert_array_equal(combined(a, b, op, engine), expected, name)

    def test_integers_come_back_as_they_are(self):
        a = numpy.arange(128 * 16, dtype=numpy.int32).reshape(128, 16) - 1000
        numpy.testing.assert_array_equal(reordered(a)[1], a[:, ::2])

    def test_numbers_of_another_type_are_converted(self):
        a, b = tensors((128, 64), (128, 512))
        wide = nki.tensor(a.astype(numpy.float64), nl.bfloat16)
        numpy.testing.assert_array_equal(basic(wide, nki.tensor(b, nl.bfloat16)), basic(as_bf16(a), as_bf16(b)))
        counts = numpy.arange(128 * 16).reshape(128, 16)
        numpy.testing.assert_array_equal(reordered(nki.tensor(counts, nl.int32))[1], counts[:, ::2])

    def test_a_result_has_the_shape_that_the_kernel_gives_it(self):
        a, b = tensors((128, 64), (128, 512))
        shaped = nki.jit(lambda a, b: [basic(a, b).reshape((8, 8, 512))])(a, b)
        numpy.testing.assert_array_equal(shaped[0], basic(a, b).reshape(8, 8, 512))
        self.assertIsInstance(shaped, tuple)

    def test_load_and_store_convert_and_obey_masks(self):
        def kernel(a):
            c = nl.ndarray(a.shape, nl.float16, buffer=nl.shared_hbm)
            column = nl.arange(64)[None, :]
            for row in (nl.arange(128)[:, None], nl.arange(128)[:, None] + 128):
                nl.store(c[row, column], nl.load(a[row, column], mask=row < a.shape[0]), mask=row < a.shape[0])
            return c
        (a,) = tensors((200, 64))
        numpy.testing.assert_array_equal(nki.jit(kernel)(a), a.astype(numpy.float16))

    def test_arrays_of_indices_are_those_of_numpy(self):
        def kernel(a):
            c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
            i = nl.mgrid[0:128, 0:64]
            row, outer, inner = nl.arange(128)[:, None, None], nl.arange(4)[None, :, None], nl.arange(16)[None, None, :]
            tile, other = nl.load(a[i.p, i.x]), nl.ndarray(a.shape, a.dtype)
            nisa.tensor_copy(other[row, inner * 4 + outer], tile[row, outer * 16 + inner])
            nl.store(c[i.p, i.x], nl.copy(other))
            return c
        (a,) = tensors((128, 64))
        expected = numpy.empty_like(a)
        row, outer, inner = numpy.ogrid[0:128, 0:4, 0:16]
        expected[row, inner * 4 + outer] = a[row, outer * 16 + inner]
        numpy.testing.assert_array_equal(nki.jit(kernel)(a), expected)

    def test_blocks_of_tiles_and_addresses(self):
        def kernel(a):
            c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
            blocks = nl.ndarray((2, nl.par_dim(128), 8), a.dtype)
            part = nl.ndarray((32, 8), a.dtype, address=(64, 4096))
            for at in range(2):
                nisa.dma_copy(blocks[at], a[nl.ds(128 * at, 128)])
            nisa.dma_copy(part, blocks[0, 0:32])
            nisa.dma_copy(c[0:128], blocks[1])
            nisa.dma_copy(c[128:224], blocks[0, 0:96, :])
            nisa.dma_copy(c[224:256], part)
            return c
        (a,) = tensors((256, 8))
        numpy.testing.assert_array_equal(nki.jit(kernel)(a), numpy.vstack([a[128:], a[0:96], a[0:32]]))

    def test_constants(self):
        def kernel(a):
            c = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
            product, tile = nl.zeros((64, 64), nl.float32, buffer=nl.psum), nl.load(a)
            for _ in range(2):
                nisa.nc_matmul(product, nl.shared_identity_matrix(128, nl.float32)[:, 0:64], tile)
            ones = nl.load(nl.shared_constant(file.name, dtype=nl.float32))
            nisa.tensor_tensor(ones, ones, product, op=nl.add)
            nl.store(c, ones)
            return c
        (a,) = tensors((128, 64))
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            numpy.save(file.name, numpy.ones((64, 64), numpy.int8))
            numpy.testing.assert_array_equal(nki.jit(kernel)(a), 2 * a[0:64] + 1)
            self.assertEqual(nki.jit(kernel).program(a).count("[128, 128] in"), 1)

    def test_an_input_that_is_written_as_a_whole_is_a_result(self):
        def kernel(a, c):
            nisa.dma_copy(c[0:64, :], a[64:128, :])
            nisa.dma_copy(c[64:128, :], a[0:64, :])
            return c
        (a,) = tensors((128, 8))
        numpy.testing.assert_array_equal(nki.jit(kernel)(a, nki.shape(a.shape, nl.float32)), numpy.roll(a, 64, axis=0))

    def test_lists_and_more_arguments_have_tensors(self):
        @nki.jit
        def kernel(*a, scales, **named):
            c = nl.ndarray(a[0].shape, a[0].dtype, buffer=nl.shared_hbm)
            total = nl.load(a[0])
            for tensor in (*a[1:], *scales[0], named["b"]):
                nisa.tensor_tensor(total, total, nl.load(tensor), op=named["op"])
            nl.store(c, total)
            return c
        a, b, c, d, e = tensors(*[(128, 8)] * 5)
        expected = a + b + c + d + e
        numpy.testing.assert_array_equal(kernel(a, b, scales=[(c, d), 2], op=nl.add, b=e), expected)
        self.assertIn("tensor scales.0.1 fp32", kernel.program(a, b, scales=[(c, d), 2], op=nl.add, b=e))

    def test_rows_of_column_major_arrays_are_those_of_numpy(self):
        a, b = tensors((64, 128), (512, 128))
        self.assert_product(basic(a.T, b.T), a.T, b.T)


@nki.jit
def halves(a, b):
    """Each core makes half of the rows of the product."""
    c = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[1] // nl.num_programs(0)
    mine = nl.ds(rows * nl.program_id(0), rows)
    moving = load(b, slice(None), slice(None))
    for y in nl.affine_range(0, rows, 128):
        product = nl.ndarray((128, b.shape[1]), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, load(a, slice(None), nl.ds(rows * nl.program_id(0) + y, 128)), moving)
        store(c[mine][nl.ds(y, 128)], product)
    return c


@nki.jit
def swapped(a):
    """Core 0 loads a and core 1 twos; each sends its tile to the other, and adds what it gets."""
    c = nl.ndarray((2, *a.shape), dtype=a.dtype, buffer=nl.shared_hbm)
    d = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    tile, other = nl.ndarray(a.shape, a.dtype), nl.ndarray(a.shape, a.dtype)
    if core == 0:
        nisa.dma_copy(tile, a)
    else:
        nisa.memset(tile, 2)
    nisa.sendrecv(src=tile, dst=other, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.tensor_tensor(tile, tile, other, op=nl.subtract)
    nisa.dma_copy(c[core], tile)
    nisa.core_barrier(c, cores=(0, 1))
    if core == 1:
        nisa.dma_copy(d, c[0])
    return c, d


@nki.jit
def appended(cache, row):
    """The cache is written in a part."""
    nisa.dma_copy(cache[5:6], row)
    return cache


class TwoCores(ProductCase):
    """kernel[2] on the two physical cores of LNC 2."""

    def test_halves_of_a_product_are_made_at_once(self):
        a, b = tensors((128, 2048), (128, 512))
        self.assert_product(halves(a, b), a, b)
        numpy.testing.assert_array_equal(halves[2](a, b), halves(a, b))
        one, two = halves.run(a, b, data=False), halves[2].run(a, b, data=False)
        self.assertLess(two.time_us, 0.7 * one.time_us)
        self.assertEqual(two.resources["NC 1 tensor"], two.resources["NC 0 tensor"])

    def test_tiles_are_exchanged_and_a_barrier_orders_the_cores(self):
        (a,) = tensors((128, 16))
        c, d = swapped[2](a)
        numpy.testing.assert_array_equal(c, [a - 2, 2 - a])
        numpy.testing.assert_array_equal(d, a - 2)

    def test_programs_that_do_not_fit_are_refused(self):
        def unlike(a):
            c = nl.ndarray((8 + nl.program_id(0), 8), a.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(c[:8], a)
            return c
        with self.assertRaisesRegex(nki.Error, r"program 1 makes a tensor of shared_hbm, .*\[9, 8\], that program 0 does not"):
            nki.jit(unlike)[2].program(nki.shape((8, 8), nl.float32))
        with self.assertRaisesRegex(nki.Error, "expected the other core of"):
            swapped.program(nki.shape((8, 8), nl.float32))

    def test_an_input_that_a_kernel_writes_is_its_result_too(self):
        cache, row = tensors((16, 64), (1, 64))
        expected = cache.copy()
        expected[5] = row
        numpy.testing.assert_array_equal(appended(cache, row), expected)
        self.assertIn("tensor cache fp32 [16, 64] inout", appended.program(cache, row))


class Times(unittest.TestCase):
    def test_time_needs_no_numbers(self):
        a, b = tensors((256, 256), (256, 512))
        with_data, without = tiled.run(a, b), tiled.run(a, b, data=False)
        shapes = tiled.run(nki.shape(a.shape, nl.float32), nki.shape(b.shape, "float32"), data=False)
        self.assertEqual(with_data.time_us, without.time_us)
        self.assertEqual(with_data.time_us, shapes.time_us)
        self.assertEqual((without.results, shapes.results), (None, None))

    def test_the_report_is_that_of_trn_run(self):
        run = basic.run(*tensors((128, 64), (128, 512)))
        self.assertEqual(run.resources["tensor"][1], 1)
        self.assertEqual(run.resources["scalar"][1], 2)  # a copy on chip, and the store
        self.assertEqual(run.resources[run.bound][0], run.bound_us)
        self.assertEqual(run.bound_us, max(busy for busy, _ in run.resources.values()))
        self.assertGreaterEqual(run.time_us, run.bound_us)

    def test_the_timeline_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "timeline.json")
            basic.run(*tensors((128, 64), (128, 512)), timeline=file)
            self.assertIn("traceEvents", file.read_text())

    def test_a_large_kernel_is_recorded_in_seconds(self):
        begin = time.process_time()
        text = tiled.program(nki.shape((8192, 4096), nl.float32), nki.shape((8192, 8192), nl.float32))
        self.assertLess(time.process_time() - begin, 10)
        self.assertLess(len(text), 16 << 20)
        self.assertEqual(text.count("nc_matmul"), 32 * 16 * 64)


class Programs(unittest.TestCase):
    """The text that a kernel becomes."""

    def instructions(self, function, *inputs):
        """Those of a kernel that returns nothing useful; recording needs a result."""
        def kernel(a):
            function(a)
            c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(c, a)
            return c
        text = nki.jit(kernel).program(*(inputs or [nki.shape((128, 64), nl.float32)]))
        return [line for line in text.splitlines() if line.split()[0] not in ("tensor", "sbuf", "psum")][:-1]

    def test_a_program_is_its_text(self):
        self.assertEqual(basic.program(nki.shape((128, 64), nl.bfloat16), nki.shape((128, 512), nl.bfloat16)), """\
tensor a bf16 [128, 64] in
tensor b bf16 [128, 512] in
sbuf s1 bf16 [128, 64]
dma_copy s1 <- a
sbuf s2 bf16 [128, 512]
dma_copy s2 <- b
psum p3 fp32 [64, 512]
nc_matmul p3 <- s1 s2
sbuf s4 fp32 [64, 512]
tensor_copy s4 <- p3 engine=scalar
tensor h0 fp32 [64, 512] out
dma_copy h0 <- s4 engine=scalar
""")

    def test_slices_are_those_of_numpy(self):
        def kernel(a):
            tile = nl.ndarray((128, 4, 16), nl.float32, name="t")
            for view in (tile[32:64], tile[..., 3], tile[:, 1, 4:8], tile[:, 1:3][:, 1][:, nl.ds(2, 2)], tile[-1],
                         tile[:, :, ::4], tile.reshape((128, 64)), tile[:, 1].reshape((128, 2, 8)),
                         tile.ap(pattern=[[64, 32], [1, 16], [16, 2]], offset=64 * 32 + 5)):
                nisa.memset(view, 0)
        self.assertEqual([line.split(" ", 1)[1].rsplit(" ", 1)[0] for line in self.instructions(kernel)], [
            "t[32:64, 0:4, 0:16]", "t[0:128, 0:4, 3]", "t[0:128, 1, 4:8]", "t[0:128, 2, 2:4]", "t[127, 0:4, 0:16]",
            "t.ap(partition=0, offset=0, rows=128x1, free=4x16 4x4)",
            "t.ap(partition=0, offset=0, rows=128x1, free=64x1)",
            "t.ap(partition=0, offset=16, rows=128x1, free=2x8 8x1)",
            "t.ap(partition=32, offset=5, rows=32x1, free=16x1 2x16)"])

    def test_slices_that_are_none(self):
        def refused(index, message):
            with self.assertRaisesRegex(nki.Error, message):
                self.instructions(lambda a: a[index])
        refused(slice(None, None, -1), "steps by -1")
        refused((slice(None), slice(0, 65)), "the slice 0:65 of dimension 1 of .*within 0:64")
        refused(slice(5, 5), "begin below end")
        refused(128, "index 128 of dimension 0 .*expected 0 to 127")
        refused((0, 0, 0), "3 indices")
        refused("x", "an index is 'x'")
        for function, message in ((lambda a: a.reshape((64, 64)), "cannot become"),
                                  (lambda a: a[:, :32].reshape((64, 64)), "not one beside the other"),
                                  (lambda a: a[:, :32].ap([[64, 2], [1, 2]]), "is a part")):
            with self.assertRaisesRegex(nki.Error, message):
                self.instructions(function)

    def test_a_view_of_many_dimensions_has_few_steps(self):
        def kernel(a):
            tile = nl.ndarray((128, 720), nl.float32, name="t")
            nisa.memset(tile.ap([[720, 128], [360, 2], [120, 3], [30, 4], [6, 5], [2, 3]]), 0)
            nisa.memset(tile.ap([[720, 128], [1, 1], [0, 1], [1, 1], [5, 1], [1, 720]], offset=0)[:, :, 0, 0], 0)
        self.assertEqual(self.instructions(kernel), ["memset t.ap(partition=0, offset=0, rows=128x1, free=360x2) value=0.0",
                                                     "memset t.ap(partition=0, offset=0, rows=128x1, free=1x1 1x5 720x1) value=0.0"])

    def test_arrays_of_indices_that_are_none(self):
        def refused(keys, message):
            with self.assertRaisesRegex(nki.Error, message):
                self.instructions(lambda a: nl.load(a[keys]))
        row, column = nl.arange(128)[:, None], nl.arange(64)[None, :]
        refused((row + 1, column), "the indices of dimension 0 of a are 1 to 128; expected 0 to 127")
        refused((row, column**2 % 64), "not evenly spaced")
        refused((row,), "2 dimensions; expected an index or an array of indices for each")
        refused((row, slice(0, 64)), "2 dimensions; expected an index or an array of indices for each")
        with self.assertRaisesRegex(nki.Error, "not a rectangle"):
            self.instructions(lambda a: nl.load(a[row, column], mask=row < column))
        with self.assertRaisesRegex(nki.Error, r"a mask has the shape \[64, 1\]"):
            self.instructions(lambda a: nl.load(a[row, column], mask=row[0:64] < 3))

    def test_new_tensors(self):
        def kernel(a):
            nl.full((8, 4), 2, nl.float32, name="t")
            like = nl.zeros_like(nl.ones((8, 4), nl.int8, buffer=nl.psum))
            self.assertEqual((like.shape, like.dtype, like.buffer), ((8, 4), nl.int8, nl.psum))
            self.assertEqual((a.buffer, nl.empty_like(a, dtype=nl.int8, buffer=nl.sbuf).dtype), (nl.shared_hbm, nl.int8))
            self.assertEqual((nl.program_id(0), nl.num_programs(), nl.num_programs(0), nl.num_programs([0, 1])), (0, 1, 1, (1, 1)))
        self.assertEqual([line.split()[-1] for line in self.instructions(kernel)], ["value=2.0", "value=1.0", "value=0.0"])

    def test_classes_of_kernels_take_the_attributes_that_a_call_names(self):
        @dataclasses.dataclass
        class Sizes(nl.NKIObject):
            rows: int
            columns: int
            steps: list = dataclasses.field(default_factory=list)
            width = None

            def __post_init__(self):
                self.all = self.rows * 2

        class Named(nl.NKIObject):
            rows: int

        class Made(Named):
            def __init__(self, rows):
                self.rows = rows + 1

        sizes = Sizes(3, width=7)
        self.assertEqual((sizes.rows, sizes.steps, sizes.width, sizes.all, Sizes(rows=1).width), (3, [], 7, 6, None))
        self.assertIsNot(sizes.steps, Sizes(3).steps)
        self.assertEqual((Named(rows=4).rows, Made(4).rows), (4, 5))
        for call in (lambda: Made(other=4), lambda: Named(row=4), lambda: Sizes(1, 2, [], 3)):
            self.assertRaises(TypeError, call)

    def test_numpy_takes_the_types_for_its_own(self):
        self.assertEqual(numpy.zeros(3, nl.float16).dtype, numpy.float16)
        self.assertEqual((str(nl.bfloat16), nki.dtype.int8), ("bfloat16", numpy.int8))

    def accumulations(self, *steps):
        """Whether each nc_matmul adds; a step is a part of [128, 512] of PSUM and accumulate, or an instruction."""
        def kernel(a):
            product = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
            left, right = nl.ndarray((128, 128), nl.float32), nl.ndarray((128, 512), nl.float32)
            for step in steps:
                if callable(step):
                    step(product)
                else:
                    columns, accumulate = step
                    nisa.nc_matmul(product[:, columns], left, right[:, columns], accumulate=accumulate)
        return ["accumulate" in line for line in self.instructions(kernel) if line.startswith("nc_matmul")]

    def test_the_first_matmul_of_a_group_overwrites(self):
        whole, left, right = slice(None), slice(0, 256), slice(256, 512)

        def read(product):
            nisa.tensor_copy(nl.ndarray((128, 8), nl.float32), product[:, 0:8])
        self.assertEqual(self.accumulations((whole, None), (whole, None), (left, None)), [False, True, True])
        self.assertEqual(self.accumulations((left, None), (right, None), (left, None)), [False, False, True])
        self.assertEqual(self.accumulations((whole, None), read, (whole, None)), [False, False])
        self.assertEqual(self.accumulations((right, None), read, (right, None)), [False, True])
        self.assertEqual(self.accumulations(lambda p: nisa.memset(p, 0.0), (whole, None)), [False])
        self.assertEqual(self.accumulations((whole, True), (whole, False), (whole, None)), [True, False, True])
        with self.assertRaisesRegex(nki.Error, "accumulate= must say"):
            self.accumulations((left, None), (whole, None))

    def test_engines_and_descriptors(self):
        def kernel(a):
            tile = nl.ndarray(a.shape, a.dtype, name="t")
            nisa.dma_copy(tile, a, dge_mode=nisa.dge_mode.swdge)
            nisa.dma_copy(tile, a, dge_mode=3)
            nisa.dma_copy(tile, a, engine=nisa.engine.scalar, dge_mode=nisa.dge_mode.hwdge, name="x")
            nisa.tensor_tensor(tile, tile, tile, op=nl.add)
            nisa.tensor_tensor(tile, tile, tile, numpy.maximum, engine=nisa.engine.gpsimd)
            nisa.memset(tile, value=1)
            nl.zeros((8,), nl.int32, name="z")
        self.assertEqual(self.instructions(kernel), [
            "dma_copy t <- a engine=gpsimd", "dma_copy t <- a", "dma_copy t <- a engine=scalar",
            "tensor_tensor t <- t t op=add", "tensor_tensor t <- t t op=maximum engine=gpsimd", "memset t value=1.0",
            "memset z value=0.0"])

    def test_stores_have_another_queue_than_loads(self):
        def kernel(a):
            tile = nl.ndarray(a.shape, a.dtype, name="t")
            c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm, name="c")
            nisa.dma_copy(tile, a, engine=None)
            nisa.dma_copy(c, tile)
            nisa.dma_copy(c, tile, dge_mode=nisa.dge_mode.hwdge)
            nisa.dma_copy(c, a)
            nisa.dma_copy(c, tile, dge_mode=nisa.dge_mode.swdge)
            nisa.dma_copy(c, tile, engine=nisa.engine.sync)
        self.assertEqual(self.instructions(kernel), [
            "dma_copy t <- a", "dma_copy c <- t engine=scalar", "dma_copy c <- t engine=scalar", "dma_copy c <- a engine=scalar",
            "dma_copy c <- t engine=gpsimd", "dma_copy c <- t engine=sync"])

    def zeros_kept(self, *steps, value=0):
        """How many memsets of [64, 512] of PSUM are left; the steps are called with the tile, and as in accumulations."""
        def kernel(a):
            tile = nl.ndarray((64, 512), nl.float32, buffer=nl.psum)
            left, right = nl.ndarray((128, 64), nl.float32), nl.ndarray((128, 512), nl.float32)
            for step in steps:
                if callable(step):
                    step(tile)
                elif step == "zeros":
                    nisa.memset(tile, value)
                else:
                    columns, accumulate = step
                    nisa.nc_matmul(tile[:, columns], left, right[:, columns], accumulate=accumulate)
        return sum(line.startswith("memset p") for line in self.instructions(kernel))

    def test_zeros_that_a_matmul_overwrites_are_left_out(self):
        whole, left, right = slice(None), slice(0, 256), slice(256, 512)
        self.assertEqual(self.zeros_kept("zeros", (whole, None)), 0)
        self.assertEqual(self.zeros_kept("zeros", (whole, False), "zeros", (whole, None), (whole, None)), 0)
        self.assertEqual(self.zeros_kept(lambda tile: nisa.memset(tile[:, left], 0), (right, None), (left, None)), 0)
        self.assertEqual(self.zeros_kept(lambda tile: nisa.memset(tile[:, 8:16], 0), (whole, None)), 0)

    def test_zeros_that_are_seen_stay(self):
        whole, left = slice(None), slice(0, 256)
        self.assertEqual(self.zeros_kept("zeros"), 1)
        self.assertEqual(self.zeros_kept("zeros", (whole, True)), 1)
        self.assertEqual(self.zeros_kept("zeros", (left, None), (left, None)), 1)
        self.assertEqual(self.zeros_kept("zeros", "zeros", (whole, None)), 1)
        self.assertEqual(self.zeros_kept("zeros", (whole, None), value=1), 1)
        for seen in (lambda tile: nisa.tensor_copy(nl.ndarray((64, 8), nl.float32), tile[:, 0:8]),
                     lambda tile: nisa.tensor_copy(tile[:, 0:8], nl.ndarray((64, 8), nl.float32))):
            self.assertEqual(self.zeros_kept("zeros", seen, (whole, None)), 1)
        self.assertEqual(self.instructions(lambda a: nl.zeros((64, 8), nl.float32, name="t")), ["memset t value=0.0"])

    def test_an_error_after_zeros_that_are_left_out_names_its_own_line(self):
        def kernel(a, b):
            nisa.memset(product := nl.ndarray((64, 512), nl.float32, buffer=nl.psum), 0)
            nisa.nc_matmul(product, load(a, slice(None), slice(None)), load(b, slice(None), slice(None)))
            nisa.dma_copy(c := nl.ndarray(product.shape, nl.float32, buffer=nl.shared_hbm), nl.ndarray(product.shape, nl.float32))
            return c
        with self.assertRaises(nki.Error) as raised:
            nki.jit(kernel)(*tensors((128, 64), (128, 512)))
        self.assertIn("nisa.dma_copy(c := nl", str(raised.exception))

    def test_an_index_drops_a_dimension(self):
        def kernel(a):
            tile = nl.ndarray((128, 4, 16), nl.float32, name="t")
            shapes = [view.shape for view in (tile[3], tile[:, 2], tile[..., 5], tile[0, 0, 0], tile[0, 0, 0][...])]
            self.assertEqual(shapes, [(4, 16), (128, 16), (128, 4), (), ()])
            self.assertEqual(tile[:, 2, 3][0:64, 0:1].shape, (64, 1))  # a kernel of AWS does so
            self.assertEqual((tile.dtype, tile.ndim), (numpy.float32, 3))
        self.instructions(kernel)

    def test_a_kernel_that_a_kernel_calls_is_a_part_of_it(self):
        inner = nki.jit(lambda a: nisa.dma_copy(nl.ndarray(a.shape, a.dtype, name="t"), a))
        self.assertEqual(self.instructions(lambda a: inner(a)), ["dma_copy t <- a"])


class Refusals(unittest.TestCase):
    def assert_refused(self, message, function, kind=nki.Error):
        with self.assertRaises(kind) as raised:
            function()
        self.assertIn(message, str(raised.exception))

    def in_kernel(self, function):
        """Runs a function as a kernel that has no arguments."""
        return lambda: nki.jit(function).program()

    def test_an_error_of_the_program_names_the_kernels_line(self):
        for kernel, message in ((uneven, "stationary has 128 partitions and moving 64"),
                                (read_unwritten, "nothing has written it")):
            line, source = line_of(kernel)
            with self.assertRaises(nki.Error) as raised:
                kernel(*tensors((128, 64)))
            first, place, shown = str(raised.exception).splitlines()
            self.assertIn(message, first)
            self.assertNotIn("line", first)
            self.assertEqual(place, f'  File "{__file__}", line {line}, in {kernel.__name__}')
            self.assertEqual(shown.strip(), source)

    def test_other_instructions_are_refused_by_name(self):
        self.assert_refused("nki.isa.dropout is not built yet (docs/tasks/kernels.md)",
                            self.in_kernel(lambda: nisa.dropout(1)), nki.NotBuilt)
        self.assert_refused("nki.language.matmul is not built yet", self.in_kernel(lambda: nl.matmul(1, 2)), nki.NotBuilt)
        self.assert_refused("nki.collectives.rank_id is not built yet", self.in_kernel(ncc.rank_id), nki.NotBuilt)
        self.assert_refused("nki.isa.nc_matmul_mx is of Trainium3", self.in_kernel(lambda: nisa.nc_matmul_mx()), nki.NotBuilt)
        self.assertFalse(hasattr(nisa, "nc_matmull"))
        from nki.isa import sendrecv  # a kernel's import succeeds
        self.assertTrue(callable(sendrecv))

    def test_options_are_refused_by_name(self):
        self.assert_refused("nki.isa.nc_matmul with perf_mode='double_column'", self.in_kernel(
            lambda: nisa.nc_matmul(1, 2, 3, perf_mode="double_column")), nki.NotBuilt)
        self.assert_refused("tensor_tensor with op='divide'", self.in_kernel(
            lambda: nisa.tensor_tensor(*[nl.ndarray((8, 8), nl.int8)] * 3, op=nl.divide)), nki.NotBuilt)
        self.assert_refused("nki.jit with extra=1", lambda: nki.jit(extra=1), nki.NotBuilt)
        self.assert_refused("platform_target='trn3'", lambda: nki.jit(basic.__wrapped__, platform_target="trn3"), nki.NotBuilt)
        self.assert_refused("a kernel on 3 cores; expected 1, or 2", lambda: basic[3])
        self.assertTrue(callable(nki.jit(mode="trace", platform_target="trn2")(basic.__wrapped__).run))
        self.assertIs(nki.simulate(basic), basic)
        self.assertIs(nki.simulate(basic.func).func, basic.func)

    def test_operands_and_tensors_that_are_none(self):
        self.assert_refused("dma_copy: dst is 1; expected a tensor", self.in_kernel(lambda: nisa.dma_copy(1, 2)))
        self.assert_refused("engine is 'vector'", self.in_kernel(
            lambda: nisa.memset(nl.ndarray((8, 8), nl.float32), 0, engine="vector")))
        self.assert_refused("there is no type int64", self.in_kernel(lambda: nl.ndarray((8, 8), numpy.int64)))
        self.assert_refused("in HBM with address=", self.in_kernel(
            lambda: nl.ndarray((8, 8), nl.int8, buffer=nl.hbm, address=(0, 0))), nki.NotBuilt)
        self.assert_refused("outside of a kernel", lambda: nl.ndarray((8, 8), nl.float32))

    def test_arguments_and_results_that_are_none(self):
        a, b = tensors((128, 64), (128, 512))
        self.assert_refused("a is a shape without numbers", lambda: basic(nki.shape(a.shape, nl.float32), b))
        self.assert_refused("there is no type float64", lambda: basic(a.astype(numpy.float64), b))
        self.assert_refused("returns its input a", lambda: nki.jit(lambda a: a)(a))
        self.assert_refused("expected tensors with buffer=nl.shared_hbm", lambda: nki.jit(lambda a: None)(a))
        self.assert_refused("which no instruction has written", self.in_kernel(
            lambda: nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)))

    def test_without_trn_run_the_message_says_where_it_is(self):
        a, b = tensors((128, 64), (128, 512))
        before = os.environ.get("TRN_RUN")
        os.environ["TRN_RUN"] = "/nonexistent/trn-run"
        try:
            self.assert_refused("there is no trn-run at TRN_RUN=/nonexistent/trn-run: run in a pod", lambda: basic(a, b))
        finally:
            del os.environ["TRN_RUN"]
            if before is not None:
                os.environ["TRN_RUN"] = before


class Package(unittest.TestCase):
    def test_the_example_runs_with_what_is_installed(self):
        if importlib.util.find_spec("setuptools") is None:
            raise unittest.SkipTest("this Python has no setuptools")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "source")
            shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
            # What pip does; pip itself would want an index, or the package wheel.
            done = subprocess.run([sys.executable, "-c", "import setuptools; setuptools.setup()", "build", "--build-lib",
                                   f"{folder}/site"], cwd=source, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = subprocess.run([sys.executable, str(ROOT / "examples/kernels/matmul_nki.py")], cwd=folder,
                                  capture_output=True, text=True, env={**os.environ, "PYTHONPATH": f"{folder}/site"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("2048 x 2048 x 2048, bf16", done.stdout)


if __name__ == "__main__":
    nki_ground.main()
