#!/usr/bin/env python3
"""Runs kernels of NKI with functions, reductions, statistics and the largest elements, and compares with numpy.

    PATH=build/release/bin:$PATH tests/integration/nki_activation_test.py

trn-run must reach a core: in a pod with a claim. Runs itself with the Python that `.ci/setup` made for it
(`.ci/python`). Status 77 (skipped) without one, or without trn-run and a core.
"""

import math
import unittest

import nki_ground
from nki_ground import EPSILON, load, stored

import nki
import nki.isa as nisa
import nki.language as nl
import numpy


def named(name):
    """A function of nki.language that need not be there yet."""
    def function():
        raise AssertionError(name)
    function.__name__ = name
    return function


def sbuf(shape, dtype=nl.float32, name=""):
    return nl.ndarray(shape, dtype, buffer=nl.sbuf, name=name)


@nki.jit
def function_of(a, op, scale=1.0, bias=None):
    tile = load(a)
    nisa.activation(tile, op, tile, scale=scale, bias=bias)
    return stored(tile)


@nki.jit
def softmax(a):
    tile, rows = load(a), a.shape[0]
    largest, sums, inverse = sbuf((rows, 1)), sbuf((rows, 2)), sbuf((rows, 1))
    nisa.tensor_reduce(dst=largest, op=nl.max, data=tile, axis=1, negate=True)
    nisa.activation(dst=tile, op=nl.exp, data=tile, bias=largest, scale=1.0, reduce_op=nl.add, reduce_res=sums[:, 1],
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.reciprocal(dst=inverse, data=sums[:, 1:2])
    nisa.activation(dst=tile, op=nl.copy, data=tile, scale=inverse)
    return stored(tile)


@nki.jit
def rms_norm(a, epsilon):
    tile, rows = load(a), a.shape[0]
    unread, scale, bias = sbuf((rows, 1)), sbuf((rows, 1)), sbuf((rows, 1))
    nisa.memset(bias, epsilon)
    squares = unread.ap(pattern=[[1, rows], [0, a.shape[1]]])
    nisa.activation_reduce(squares, numpy.square, tile, reduce_op=numpy.add, reduce_res=scale)
    nisa.activation(dst=scale, op=nl.rsqrt, data=scale, scale=1 / a.shape[1], bias=bias)
    nisa.activation(dst=tile, op=nl.copy, data=tile, scale=scale)
    return stored(tile)


@nki.jit
def layer_norm(a, epsilon):
    """512 elements at a time, as AWS's kernels do."""
    tile, rows = load(a), a.shape[0]
    parts = -(-a.shape[1] // 512)
    stats, moments, shift = sbuf((rows, 6 * parts)), sbuf((rows, 2)), sbuf((rows, 1))
    for part in nl.affine_range(parts):
        nisa.bn_stats(dst=stats[:, nl.ds(6 * part, 6)], data=tile[:, part * 512:min(part * 512 + 512, a.shape[1])])
    nisa.bn_aggr(dst=moments, data=stats)
    nisa.activation(dst=moments[:, 1:2], op=nl.rsqrt, data=moments[:, 1:2], bias=epsilon)
    nisa.tensor_tensor(shift, moments[:, 0:1], moments[:, 1:2], op=nl.multiply)
    nisa.activation(dst=shift, op=nl.copy, data=shift, scale=-1.0)
    nisa.activation(dst=tile, op=nl.copy, data=tile, scale=moments[:, 1:2], bias=shift)
    return stored(tile)


@nki.jit
def largest(a, eights):
    """The 8 * eights largest of each row, and where they are."""
    tile = load(a)
    values, places = sbuf((a.shape[0], 8 * eights)), sbuf((a.shape[0], 8 * eights), nl.uint32)
    for turn in nl.sequential_range(eights):
        part = slice(8 * turn, 8 * turn + 8)
        nisa.max8(dst=values[:, part], src=tile)
        nisa.nc_match_replace8(dst=tile, data=tile, vals=values[:, part], imm=float("-inf"), dst_idx=places[:, part])
    return stored(values), stored(places)


@nki.jit
def places_of(a, values):
    found = sbuf(values.shape, nl.uint16)
    nisa.nc_find_index8(dst=found, data=load(a), vals=load(values))
    return stored(found)


@nki.jit
def reduced(a, op, axis, shape, negate=False):
    result = sbuf(shape, a.dtype)
    nisa.tensor_reduce(result, op, load(a), axis, negate=negate)
    return stored(result)


@nki.jit
def partition_reduced(a, op):
    result = sbuf((1, *a.shape[1:]), a.dtype)
    nisa.tensor_partition_reduce(result, op, load(a))
    return stored(result)


def tensors(*shapes):
    random = numpy.random.default_rng(5)
    return [random.standard_normal(shape, dtype=numpy.float32) for shape in shapes]


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def below(x):
    """The normal distribution."""
    return numpy.vectorize(lambda one: math.erfc(-one / math.sqrt(2)) / 2)(x)


def softplus(x):
    return numpy.log1p(numpy.exp(x))


FUNCTIONS = {
    "copy": lambda x: x, "square": numpy.square, "sigmoid": sigmoid, "relu": lambda x: numpy.maximum(x, 0),
    "gelu": lambda x: x * below(x), "gelu_dx": lambda x: below(x) + x * numpy.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": lambda x: x / 2 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x), "silu": lambda x: x * sigmoid(x),
    "gelu_apprx_sigmoid_dx": lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
    "silu_dx": lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), "tanh": numpy.tanh, "softplus": softplus,
    "mish": lambda x: x * numpy.tanh(softplus(x)), "erf": numpy.vectorize(math.erf),
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * numpy.exp(-x * x), "exp": numpy.exp, "log": numpy.log, "sin": numpy.sin,
    "arctan": numpy.arctan, "sqrt": numpy.sqrt, "rsqrt": lambda x: 1 / numpy.sqrt(x), "reciprocal": lambda x: 1 / x,
    "sign": numpy.sign, "abs": numpy.abs}


class Numbers(unittest.TestCase):
    def assert_close(self, found, expected, steps=4):
        """Within so many steps of fp32 of the largest."""
        self.assertEqual(found.shape, expected.shape)
        self.assertLess(numpy.abs(found - expected).max(), steps * EPSILON * max(1, numpy.abs(expected).max()))

    def test_each_function(self):
        self.assertEqual(set(FUNCTIONS), set(nisa._functions.FUNCTIONS))
        a = numpy.clip(tensors((128, 64))[0], -3, 3)
        for name, function in FUNCTIONS.items():
            x = numpy.abs(a) + numpy.float32(0.125) if name in ("log", "sqrt", "rsqrt", "reciprocal") else a
            with self.subTest(name):
                self.assert_close(function_of(x, named(name)), function(x.astype(numpy.float64)))

    def test_functions_of_numpy_and_of_nki_have_the_same_names(self):
        (a,) = tensors((32, 8))
        for op in (nl.exp, numpy.exp):
            self.assert_close(function_of(a, op, scale=-0.5, bias=0.25), numpy.exp(a.astype(numpy.float64) * -0.5 + 0.25))
        numpy.testing.assert_array_equal(function_of(a, numpy.absolute), numpy.abs(a))

    def test_softmax(self):
        (a,) = tensors((128, 300))
        wide = numpy.exp(a.astype(numpy.float64))
        self.assert_close(softmax(a), wide / wide.sum(axis=1, keepdims=True), 2)

    def test_rms_norm(self):
        (a,) = tensors((128, 512))
        wide = a.astype(numpy.float64)
        self.assert_close(rms_norm(a, 1e-5), wide / numpy.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5), 8)

    def test_layer_norm(self):
        for columns in (100, 512, 1300):
            a = tensors((128, columns))[0] * 3 + 5
            wide = a.astype(numpy.float64)
            expected = (wide - wide.mean(axis=1, keepdims=True)) / numpy.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
            self.assert_close(layer_norm(a, 1e-5), expected, 8)

    def test_the_largest_and_their_places(self):
        (a,) = tensors((128, 1000))
        values, places = largest(a, 3)
        order = numpy.argsort(-a, axis=1)[:, :24]
        numpy.testing.assert_array_equal(places, order)
        numpy.testing.assert_array_equal(values, numpy.take_along_axis(a, order, axis=1))

    def test_places_of_values(self):
        a = numpy.tile(numpy.arange(64, dtype=numpy.float32), (32, 2))
        values = numpy.tile(numpy.array([5, 5, 7, 0, 63, 5, 100, 1], numpy.float32), (32, 1))
        numpy.testing.assert_array_equal(places_of(a, values)[0], [5, 69, 7, 0, 63, 65535, 65535, 1])

    def test_reductions_of_any_free_axes(self):
        (a,) = tensors((128, 4, 3, 5))
        for axis, shape in ((3, (128, 4, 3)), ((2, 3), (128, 4)), ([1, 2, 3], (128, 1)), (1, (128, 3, 5)),
                            ((1, 3), (128, 3)), (-2, (128, 4, 5))):
            axes = tuple(axis) if isinstance(axis, list) else axis
            for op, function in ((nl.max, numpy.max), (nl.minimum, numpy.min), (numpy.max, numpy.max)):
                numpy.testing.assert_array_equal(reduced(a, op, axis, shape), function(a, axis=axes).reshape(shape))
            for op, function in ((nl.add, numpy.sum), (numpy.sum, numpy.sum), (nl.multiply, numpy.prod)):
                self.assert_close(reduced(a, op, axis, shape, negate=True),
                                  -function(a.astype(numpy.float64), axis=axes).reshape(shape), 60)

    def test_reductions_of_partitions(self):
        (a,) = tensors((128, 6, 4))
        numpy.testing.assert_array_equal(partition_reduced(a, nl.max)[0], a.max(axis=0))
        self.assert_close(partition_reduced(a, nl.add)[0], a.astype(numpy.float64).sum(axis=0), 128)


class Programs(unittest.TestCase):
    def instructions(self, function):
        def kernel(a):
            function(sbuf((128, 64), name="t"), sbuf((128, 1), name="c"))
            return stored(load(a))
        lines = nki.jit(kernel).program(nki.shape((128, 64), nl.float32)).splitlines()
        return [line for line in lines if line.split()[0] not in ("tensor", "sbuf", "psum", "dma_copy")]

    def test_options_that_say_nothing_are_left_out(self):
        def kernel(t, c):
            nisa.activation(t, nl.exp, t)
            nisa.activation(t, op=nl.exp, data=t, bias=None, scale=1.0, reduce_cmd=nisa.reduce_cmd.idle)
            nisa.activation(t, nl.exp, t, c, 2, nl.add, c[:, 0], nisa.reduce_cmd.reset_reduce, nisa.scalar_engine, "x")
            nisa.activation_reduce(t, nl.square, t, nl.add, c, scale=c)
            nisa.tensor_reduce(c, nl.max, t, axis=(1,), keepdims=True)
            nisa.nc_match_replace8(t, t, t[:, 0:8], float("-inf"))
        self.assertEqual(self.instructions(kernel), [
            "activation t <- t op=exp", "activation t <- t op=exp",
            "activation t <- t bias=c reduce_res=c[0:128, 0] op=exp scale=2.0 engine=scalar",
            "activation t <- t scale=c reduce_res=c op=square", "tensor_reduce c <- t op=maximum",
            "nc_match_replace8 t <- t t[0:128, 0:8] imm=-inf"])

    def test_what_is_not_built_is_refused_by_name(self):
        add, reset = nl.add, nisa.reduce_cmd.reset_reduce
        for message, call in (
                ("nki.isa.activation with op='prelu'", lambda t, c: nisa.activation(t, named("prelu"), t)),
                ("nki.isa.activation with reduce_op='maximum'",
                 lambda t, c: nisa.activation(t, nl.exp, t, reduce_op=nl.max, reduce_res=c, reduce_cmd=reset)),
                ("reduce_cmd.idle", lambda t, c: nisa.activation(t, nl.exp, t, reduce_op=add, reduce_res=c)),
                ("nki.isa.tensor_reduce with op='bitwise_or'", lambda t, c: nisa.tensor_reduce(c, named("bitwise_or"), t, 1)),
                ("nki.isa.tensor_partition_reduce with op='mean'",
                 lambda t, c: nisa.tensor_partition_reduce(t[0:1], nl.mean, t))):
            with self.assertRaisesRegex(nki.NotBuilt, message):
                self.instructions(call)

    def test_mistakes_are_told(self):
        for message, call in (
                ("scale is 'a'; expected a number or a tensor", lambda t, c: nisa.activation(t, nl.exp, t, scale="a")),
                ("axis is 0; expected some of 1, each", lambda t, c: nisa.tensor_reduce(c, nl.add, t, 0)),
                (r"axis is \(1, 1\)", lambda t, c: nisa.tensor_reduce(c, nl.add, t, (1, 1))),
                ("reduce_res is None; expected a tensor", lambda t, c: nisa.activation_reduce(t, nl.exp, t, nl.add, None))):
            with self.assertRaisesRegex(nki.Error, message):
                self.instructions(call)


if __name__ == "__main__":
    nki_ground.main()
