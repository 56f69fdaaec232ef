#!/usr/bin/env python3
"""Runs kernels of the older namespace neuronxcc.nki (sim-node/nki) and compares numbers with numpy's.

    NKI_SAMPLES=…/nki-samples PATH=build/release/bin:$PATH tests/integration/nki_old_test.py

The variable names a checkout of aws-neuron/nki-samples, whose kernels run unchanged; without it they are skipped. As
nki_test.py: trn-run must reach a core; runs itself with the Python of `.ci/setup`; status 77 is skipped.
"""

import importlib.util
import math
import os
import pathlib
import sys
import unittest

import nki_ground
from nki_ground import as_bf16

import numpy
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc import nki
from neuronxcc.nki.language import par_dim


def stored(tile):
    """A new tensor that a kernel may return, with the numbers of a tile."""
    result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(result, value=tile)
    return result


@nki.jit
def softmax(a):
    rows, columns = a.shape
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    row, column = nl.arange(128)[:, None], nl.arange(columns)[None, :]
    for at in nl.affine_range(math.ceil(rows / 128)):
        inside = at * 128 + row < rows
        tile = nl.load(a[at * 128 + row, column], mask=inside)
        powers = nl.exp(nl.subtract(tile, nl.max(tile, axis=[1], keepdims=True, mask=inside), mask=inside))
        nl.store(result[at * 128 + row, column], value=powers / nl.sum(powers, axis=[1]), mask=inside)
    return result


@nki.jit
def product(a, b, blocks):
    """a^T b by sums over the loop of blocks."""
    depth, rows = a.shape
    columns = b.shape[1]
    result = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    sums = nl.zeros((rows // 128, par_dim(128), columns), dtype=nl.float32)
    for block in nl.sequential_range(blocks):
        left = nl.ndarray((depth // blocks // 128, par_dim(128), rows), dtype=a.dtype)
        right = nl.ndarray((depth // blocks // 128, par_dim(128), columns), dtype=b.dtype)
        for at in nl.affine_range(left.shape[0]):
            part = nl.ds(block * depth // blocks + at * 128, 128)
            left[at] = nl.load(a[part, :])
            right[at] = nl.load(b[part, :])
        for row in nl.affine_range(rows // 128):
            tile = nl.zeros((128, columns), dtype=nl.float32, buffer=nl.psum)
            for at in nl.affine_range(left.shape[0]):
                tile += nisa.nc_matmul(left[at, :, nl.ds(row * 128, 128)], right[at])
            sums[row] = nl.loop_reduce(tile, op=numpy.add, loop_indices=[block], dtype=nl.float32)
    for row in nl.affine_range(rows // 128):
        nl.store(result[nl.ds(row * 128, 128), :], value=sums[row])
    return result


@nki.jit
def layer_norm(a, gamma):
    """Rows and columns of nl.mgrid with an index that few views use."""
    rows, columns = a.shape
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    p, f, once = nl.mgrid[0:128, 0:columns, 0:1]
    spread = nl.load(gamma.reshape((1, columns))[once, f]).broadcast_to((128, columns))
    for at in nl.affine_range(math.ceil(rows / 128)):
        tile = nl.load(a[at * 128 + p, f], mask=at * 128 + p < rows)
        moved = tile - nl.mean(tile, axis=1)
        variance = nl.mean(nl.square(moved), axis=1)
        moved[...] = nl.multiply(moved, nl.rsqrt(variance + 1e-5), mask=at * 128 + p < rows)
        nl.store(result[at * 128 + p, f], value=moved * spread, mask=at * 128 + p < rows)
    return result


@nki.jit
def statistics(a):
    p, f, s = nl.mgrid[0:128, 0:512, 0:6]
    groups = math.ceil(a.shape[1] / 512)
    tile, found = nl.load(a), nl.ndarray((128, 6 * groups), dtype=nl.float32)
    for at in nl.affine_range(groups):
        part = nl.arange(512)[None, :] + at * 512
        found[:, nl.ds(6 * at, 6)] = nisa.bn_stats(tile[nl.arange(128)[:, None], part], mask=part < a.shape[1])
    return stored(nisa.bn_aggr(found))


@nki.jit
def transposes(a):
    tile = nl.load(a)
    wide = nl.ndarray((a.shape[1], a.shape[0]), dtype=nl.float32, buffer=nl.psum)
    wide[...] = nisa.nc_transpose(tile)
    return tuple(map(stored, (nl.transpose(tile), nl.copy(wide), nl.load_transpose2d(a, dtype=nl.float32))))


@nki.jit
def matmul_of_rows(a, b):
    return stored(nl.matmul(nl.load(a), nl.load(b)))


@nki.jit
def causal(a):
    p, f = nl.mgrid[0:128, 0:a.shape[1]]
    tile = nl.load(a)
    kept = nisa.affine_select(pred=p + 3 >= f, on_true_tile=tile, on_false_value=-1.0)
    counted = nisa.iota(5 * p + f, dtype=nl.int32)
    return stored(kept), stored(counted), stored(nl.where(nl.greater(tile, 0.5), tile, counted, dtype=nl.float32))


@nki.jit
def pooled(a):
    """The largest of windows of 3 x 3 that overlap."""
    p, y, x, i, j = nl.mgrid[0:a.shape[0], 0:a.shape[1] // 2 - 1, 0:a.shape[2] // 2 - 1, 0:3, 0:3]
    tile = nl.load(a)
    return stored(nl.max(tile[p, 2 * y + i, 2 * x + j], axis=[3, 4]))


@nki.jit
def mixed(a):
    """Six free dimensions, more than an instruction has."""
    p, u, v, w, x, y, z = nl.mgrid[0:a.shape[0], 0:2, 0:2, 0:2, 0:3, 0:3, 0:3]
    tile, result = nl.load(a), nl.ndarray(a.shape, dtype=a.dtype)
    result[p, 2 * x + u, 2 * y + v, 2 * z + w] = 2 * tile[p, 2 * x + 1 - u, 2 * y + 1 - v, 2 * z + 1 - w]
    return stored(result)


@nki.jit
def kept(a):
    """A tile that is assigned and named still, while the tensor changes."""
    tile, other = nl.load(a), nl.ndarray(a.shape, dtype=a.dtype)
    doubled = tile * 2
    other[...] = doubled
    other[...] = other + 1
    other[:, 0:4] += tile[:, 4:8]
    tile[...] = nl.where(nl.greater(tile, 0), tile, -1.0)
    return stored(doubled), stored(other), stored(-other / 4 - 1 / (doubled * doubled + 1)), stored(tile)


@nki.jit
def resumed(a, b):
    """A sum in PSUM that goes on after it was read."""
    left, right = nl.load(a), nl.load(b)
    tile = nl.zeros((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.psum)
    tile[...] += nisa.nc_matmul(left, right)
    once = nl.copy(tile)
    tile[...] += nisa.nc_matmul(left, right)
    return stored(once), stored(nl.copy(tile))


@nki.jit
def added(a, b):
    row = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    column = nl.program_id(1) * 64 + nl.arange(64)[None, :]
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(result[row, column], value=nl.load(a[row, column]) + nl.load(b[row, column]))
    return result


def random(*shape):
    return as_bf16(numpy.random.default_rng(5).standard_normal(shape, dtype=numpy.float32))


class Compared(unittest.TestCase):
    def assert_near(self, found, expected, error=1e-5):
        self.assertEqual(found.shape, expected.shape)
        self.assertLess(numpy.abs(found - expected).max(), error * expected.std())


class Numbers(Compared):
    def test_softmax_with_a_mask_on_the_last_rows(self):
        a = random(200, 96)
        powers = numpy.exp(a - a.max(1, keepdims=True), dtype=numpy.float64)
        self.assert_near(softmax(a), powers / powers.sum(1, keepdims=True), 1e-4)

    def test_products_by_loops(self):
        a, b = random(512, 256), random(512, 64)
        for blocks in (1, 2):
            self.assert_near(product(a, b, blocks), a.T.astype(numpy.float64) @ b)
        self.assert_near(matmul_of_rows(a[:64, :128], b[:128]), a[:64, :128].astype(numpy.float64) @ b[:128])
        for found, times in zip(resumed(a[:128, :32].copy(), b[:128].copy()), (1, 2)):
            self.assert_near(found, times * (a[:128, :32].T.astype(numpy.float64) @ b[:128]))

    def test_norms(self):
        a, gamma = random(200, 80) + 1, random(80)
        centered = a - a.mean(1, keepdims=True, dtype=numpy.float64)
        self.assert_near(layer_norm(a, gamma), centered / numpy.sqrt(centered.var(1, keepdims=True) + 1e-5) * gamma)
        a = random(128, 700)
        self.assert_near(statistics(a), numpy.stack([a.mean(1), a.var(1)], 1), 1e-4)

    def test_transposes(self):
        a = random(96, 64)
        for found in transposes(nki.tensor(a, nl.bfloat16)):
            numpy.testing.assert_array_equal(found, a.T)

    def test_comparisons_of_indices(self):
        a, (p, f) = random(128, 160), numpy.ogrid[0:128, 0:160]
        kept_elements, counted, chosen = causal(a)
        numpy.testing.assert_array_equal(kept_elements, numpy.where(p + 3 >= f, a, -1))
        numpy.testing.assert_array_equal(counted, 5 * p + f)
        numpy.testing.assert_array_equal(chosen, numpy.where(a > 0.5, a, 5 * p + f))

    def test_windows(self):
        a = random(32, 12, 16)
        windows = numpy.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2))[:, :-1:2, :-1:2]
        numpy.testing.assert_array_equal(pooled(a), windows[:, :5, :7].max((3, 4)))

    def test_more_free_dimensions_than_an_instruction_has(self):
        a = random(4, 6, 6, 6)
        turned = a.reshape(4, 3, 2, 3, 2, 3, 2)[:, :, ::-1, :, ::-1, :, ::-1].reshape(a.shape)
        numpy.testing.assert_array_equal(mixed(a), 2 * turned)

    def test_a_tile_keeps_its_numbers_when_it_was_assigned(self):
        a = random(16, 8)
        doubled, other, divided, chosen = kept(a)
        numpy.testing.assert_array_equal(doubled, 2 * a)
        numpy.testing.assert_array_equal(other, 2 * a + 1 + numpy.pad(a[:, 4:], ((0, 0), (0, 4))))
        self.assert_near(divided, -other / 4 - 1 / (4 * a * a + 1))
        numpy.testing.assert_array_equal(chosen, numpy.where(a > 0, a, -1))

    def test_a_benchmark_gives_the_emulated_time(self):
        bench = nki.benchmark(warmup=5, iters=10)(transposes)[1]
        bench(nl.static_cast(random(96, 64), nl.bfloat16))
        self.assertGreater(bench.benchmark_result.nc_latency.get_latency_percentile(99), 1)

    def test_grids(self):
        a, b = random(512, 128), random(512, 128)
        numpy.testing.assert_array_equal(added[4, 2](a, b), a + b)
        numpy.testing.assert_array_equal(added[nl.spmd_dim(2, nl.nc(2)), 2](a, b), a + b)
        a, b = a[:256].copy(), b[:256].copy()
        numpy.testing.assert_array_equal(added[nl.nc(2), 2](a, b), a + b)


class Programs(unittest.TestCase):
    def lines(self, function, shape=(128, 64), dtype=nl.bfloat16):
        text = nki.jit(function).program(nki.shape(shape, dtype))
        return [line for line in text.splitlines() if line.split()[0] not in ("tensor", "sbuf", "psum")]

    def refused(self, message, function, kind=nki.Error):
        with self.assertRaisesRegex(kind, message):
            self.lines(function)

    def test_an_instruction_writes_where_its_result_is_assigned(self):
        def kernel(a):
            both = nl.ndarray((128, 128), dtype=a.dtype)
            for at in range(2):
                both[:, nl.ds(at * 64, 64)] = nl.load(a)
                both[:, nl.ds(at * 64, 64)] = nl.exp(both[:, nl.ds(at * 64, 64)])
            return stored(both)
        self.assertEqual([line.split()[:2] for line in self.lines(kernel)][:-1],
                         [["dma_copy", "s0[0:128,"], ["activation", "s0[0:128,"]] * 2)

    def test_a_mask_that_is_false_records_nothing(self):
        def kernel(a):
            tile = nl.load(a)
            other = nl.exp(tile, mask=a.shape[0] > 128)
            tile[...] = nl.square(tile, mask=False)
            nl.store(a, value=tile, mask=False)
            return stored(tile)
        self.assertEqual([line.split()[0] for line in self.lines(kernel)], ["dma_copy", "dma_copy"])

    def test_what_is_not_there_is_refused_by_name(self):
        p, f = nl.mgrid[0:128, 0:64]
        self.refused("a mask is not a rectangle", lambda a: nl.load(a[p, f], mask=p < f))
        self.refused("expected a comparison of nl.arange's", lambda a: nisa.affine_select(True, nl.load(a), 0.0))
        self.refused("neuronxcc.nki.language.dropout is not built", lambda a: nl.dropout(nl.load(a), 0.1), nki.NotBuilt)
        self.refused("neuronxcc.nki.isa.select_reduce is not built", lambda a: nisa.select_reduce(a), nki.NotBuilt)
        self.refused("view with another dtype is not built yet", lambda a: nl.load(a).view(nl.uint8), nki.NotBuilt)
        self.refused(r"operands have the shapes \[128, 64\], \[64, 64\]", lambda a: nl.load(a) + nl.load(a[0:64]))
        self.refused("an index of the blocks .2. before par_dim is", lambda a: nl.zeros((2, par_dim(8), 4), dtype=a.dtype)[:])
        with self.assertRaisesRegex(nki.Error, "outside of a kernel"):
            nl.zeros((128, 1), dtype=nl.float32)
        with self.assertRaisesRegex(nki.Error, "expected sizes of 1 or more, and nl.nc in one dimension"):
            added[0]


class Samples(Compared):
    """Kernels of AWS's checkout, unchanged."""

    @classmethod
    def setUpClass(cls):
        cls.folder = os.environ.get("NKI_SAMPLES")
        if not cls.folder:
            raise unittest.SkipTest("NKI_SAMPLES names no checkout of aws-neuron/nki-samples")

    def module(self, path):
        file = pathlib.Path(self.folder, path)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def tutorial(self, name, file=None):
        return self.module(f"src/nki_samples/tutorials/{name}/{file or f'{name}_nki_kernels'}.py")

    def test_additions(self):
        a, b = random(512, 1024), random(512, 1024)
        sys.path.insert(0, str(pathlib.Path(self.folder, "src/nki_samples/tutorials/tensor_addition")))
        self.addCleanup(sys.path.pop, 0)
        two_cores = self.tutorial("tensor_addition", "spmd_multiple_nc_tensor_addition_nki_kernels")
        for kernel in (self.tutorial("tensor_addition").nki_tensor_add, two_cores.nki_tensor_add_nc2):
            numpy.testing.assert_array_equal(kernel(a, b), a + b)

    def test_pools_and_transposes(self):
        a = random(4, 12, 12)
        module = self.tutorial("average_pool2d")
        self.assert_near(module.tensor_avgpool_kernel(a, 2), module.np_average_pool_2D(a, 2))
        a = a.reshape(4, 144)
        found = self.tutorial("transpose2d").tensor_transpose2D_kernel_(a, (9, 16))
        numpy.testing.assert_array_equal(found, a.reshape(4, 9, 16).swapaxes(1, 2).reshape(4, 144))

    def test_attention_of_each_step_of_the_tutorial(self):
        module = self.tutorial("attention_fwd_performance", "attention_kernels")
        for version in range(1, 12):
            q, k, v = (x * 0.25 for x in random(3, 128, 128 if version < 3 else 512))
            scores = numpy.exp(q.T.astype(numpy.float64) @ k)
            expected = scores / scores.sum(1, keepdims=True) @ v.T
            self.assert_near(getattr(module, f"attn_fwd_v{version}")(q, k, v), expected, 1e-4 if version < 7 else 0.1)

    def test_scans_of_mamba(self):
        module = self.tutorial("fused_mamba", "mamba_nki_kernels")
        channels, length, states = 128, 512, 3
        delta, u = numpy.abs(random(2, 1, channels, length)) * 0.1
        a, b, c = -numpy.abs(random(channels, states)), random(1, states, length), random(1, states, length)[:, ::-1].copy()
        state, expected = numpy.zeros((channels, states)), numpy.zeros((1, channels, length))
        for at in range(length):
            step = delta[0, :, at, None].astype(numpy.float64)
            state = state * numpy.exp(step * a) + step * u[0, :, at, None] * b[0, :, at]
            expected[0, :, at] = state @ c[0, :, at]
        for kernel in (module.mamba_v1, module.mamba_v2, module.mamba_v3):
            self.assert_near(kernel(delta, u, a, b, c), expected, 1e-4)


if __name__ == "__main__":
    nki_ground.main()
