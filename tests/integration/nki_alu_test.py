#!/usr/bin/env python3
"""Runs each instruction of operators and selections (nki.isa) with trn-run, and compares numbers with numpy's.

    PATH=build/release/bin:$PATH tests/integration/nki_alu_test.py

As nki_test.py: trn-run must reach a core; status 77 (skipped) without one.
"""

import unittest

import nki_ground
from nki_ground import EPSILON, load, stored

import nki
import nki.isa as nisa
import nki.language as nl
import numpy

FP32 = numpy.float32
P, N = 128, 96


def run(function, *arrays, dtype=nl.float32, reduced=False):
    """Calls function(dst, tiles…) in a kernel; returns dst, or dst and a column."""
    def kernel(a, b=None, c=None):
        dst = nl.ndarray(a.shape, dtype=dtype, buffer=nl.sbuf)
        tiles = [load(source) for source in (a, b, c) if source is not None]
        if not reduced:
            function(dst, *tiles)
            return stored(dst)
        column = nl.ndarray((dst.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
        function(dst, column, *tiles)
        return stored(dst), stored(column)
    return nki.jit(kernel)(*arrays)


def recorded(function, array):
    """The instructions of such a kernel that are no DMA."""
    def kernel(a):
        dst = nl.ndarray(a.shape, a.dtype, name="d")
        function(dst, load(a))
        return stored(dst)
    lines = nki.jit(kernel).program(array).splitlines()
    return [line for line in lines if not line.startswith(("tensor ", "sbuf ", "psum ", "dma_copy "))]


def numbers(*shapes):
    random = numpy.random.default_rng(7)
    return [random.standard_normal(shape, dtype=FP32) for shape in shapes]


class Operators(unittest.TestCase):
    def test_tensor_tensor_of_numbers(self):
        a, b = numbers((P, N), (P, N))
        a[:, ::3], b[:, ::3] = 0, 0
        for name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or",
                     "logical_xor", "subtract"):
            op = getattr(numpy, name)
            expected = op(a, b).astype(FP32)
            numpy.testing.assert_array_equal(
                run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, op), a, b), expected, name)

    def test_tensor_tensor_of_power(self):
        a, b = numbers((P, N), (P, N))
        expected = numpy.abs(a).astype(numpy.float64) ** b
        numpy.testing.assert_allclose(run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, op=nl.power), numpy.abs(a), b),
                                      expected, rtol=EPSILON)

    def test_tensor_tensor_of_bits(self):
        random = numpy.random.default_rng(8)
        for native, dtype in ((numpy.int32, nl.int32), (numpy.uint16, nl.uint16), (numpy.uint8, nl.uint8)):
            bounds = numpy.iinfo(native)
            a, b = (random.integers(bounds.min, bounds.max, (P, N), native, endpoint=True) for _ in range(2))
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
                op = getattr(numpy, name)
                found = run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, op=op), a, b, dtype=dtype)
                numpy.testing.assert_array_equal(found, op(a, b))
                self.assertEqual(found.dtype, native)

    def test_tensor_tensor_of_wide_integers_is_exact(self):
        random = numpy.random.default_rng(9)
        a, b = (random.integers(-2**31, 2**31, (P, N)).astype(numpy.int32) for _ in range(2))
        for name in ("add", "subtract", "multiply", "maximum"):
            op = getattr(numpy, name)
            found = run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, op=op), a, b, dtype=nl.int32)
            with numpy.errstate(over="ignore"):
                numpy.testing.assert_array_equal(found, op(a, b))
        rounded = run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, op=nl.maximum, engine=nisa.vector_engine), a, b,
                      dtype=nl.int32)
        numpy.testing.assert_allclose(rounded, numpy.maximum(a, b), rtol=EPSILON)

    def test_tensor_scalar(self):
        a, column, other = numbers((P, N), (P, 1), (P, 1))
        cases = (
            (dict(op0=nl.multiply, operand0=0.5), a * FP32(0.5)),
            (dict(op0=nl.subtract, operand0="column"), a - column),
            (dict(op0=nl.subtract, operand0="column", reverse0=True, op1=numpy.multiply, operand1=-3), (column - a) * FP32(-3)),
            (dict(op0=nl.minimum, operand0=1.5, op1=nl.maximum, operand1=-1.5), numpy.clip(a, -1.5, 1.5)),
            (dict(op0=None, operand0=None, op1=nl.maximum, operand1=-1.5), numpy.maximum(a, FP32(-1.5))),
            (dict(op0=numpy.absolute, operand0=None, op1=nl.subtract, operand1="other", reverse1=True), other - numpy.abs(a)),
            (dict(op0=nl.less, operand0="column"), (a < column).astype(FP32)),
            (dict(op0=nl.multiply, operand0="column", op1=nl.add, operand1=2, engine=nisa.scalar_engine),
             a * column + FP32(2)),
        )
        for options, expected in cases:
            def call(dst, x, column, other):
                named = {"column": column, "other": other}
                return nisa.tensor_scalar(dst, x, **{
                    name: named[value] if isinstance(value, str) else value for name, value in options.items()})
            numpy.testing.assert_array_equal(run(call, a, column, other), expected, str(options))
        found = run(lambda dst, x: nisa.tensor_scalar(dst, x, nl.rsqrt, None, engine=nisa.gpsimd_engine), numpy.abs(a))
        numpy.testing.assert_allclose(found, 1 / numpy.sqrt(numpy.abs(a).astype(numpy.float64)), rtol=EPSILON)

    def test_tensor_scalar_of_bits(self):
        random = numpy.random.default_rng(10)
        a = random.integers(0, 2**32, (P, N)).astype(numpy.uint32)
        shift = random.integers(0, 32, (P, 1)).astype(numpy.int32)
        found = run(lambda dst, x, y: nisa.tensor_scalar(dst, x, numpy.right_shift, y, op1=numpy.bitwise_and,
                                                         operand1=0xFF00), a, shift, dtype=nl.uint32)
        numpy.testing.assert_array_equal(found, a >> shift.astype(numpy.uint32) & 0xFF00)
        found = run(lambda dst, x: nisa.tensor_scalar(dst, x, numpy.left_shift, 3), a, dtype=nl.uint32)
        numpy.testing.assert_array_equal(found, a << numpy.uint32(3))

    def test_scalar_tensor_tensor(self):
        a, b, column = numbers((P, N), (P, N), (P, 1))
        found = run(lambda dst, x, y, c: nisa.scalar_tensor_tensor(
            dst, data=x, op0=nl.multiply, operand0=c, op1=nl.subtract, operand1=y, reverse1=True), a, b, column)
        numpy.testing.assert_array_equal(found, b - a * column)
        found = run(lambda dst, x, y: nisa.scalar_tensor_tensor(dst, x, nl.add, -2.5, nl.maximum, y), a, b)
        numpy.testing.assert_array_equal(found, numpy.maximum(a - FP32(2.5), b))

    def test_tensor_scalar_reduce(self):
        (a,) = numbers((P, N))
        found, largest = run(lambda dst, column, x: nisa.tensor_scalar_reduce(
            dst, data=x, op0=nl.abs, operand0=0.0, reduce_op=nl.max, reduce_res=column[:, 0]), a, reduced=True)
        numpy.testing.assert_array_equal(found, numpy.abs(a))
        numpy.testing.assert_array_equal(largest, numpy.abs(a).max(axis=1, keepdims=True))
        found, sums = run(lambda dst, column, x: nisa.tensor_scalar_reduce(dst, x, nl.multiply, 3.0, nl.add, column), a,
                          reduced=True)
        exact = 3 * a.astype(numpy.float64)
        numpy.testing.assert_array_equal(found, a * FP32(3))
        self.assertLess((numpy.abs(sums[:, 0] - exact.sum(axis=1)) / numpy.abs(exact).sum(axis=1)).max(), N * EPSILON)


class Scans(unittest.TestCase):
    def test_a_scan_of_products_and_sums(self):
        a, b, initial = numbers((P, N), (P, N), (P, 1))
        a *= FP32(0.5)
        state, expected = initial[:, 0].astype(numpy.float64), numpy.empty((P, N))
        for at in range(N):
            state = a[:, at] * state + b[:, at]
            expected[:, at] = state
        found = run(lambda dst, x, y, first: nisa.tensor_tensor_scan(dst, x, y, first[:, 0:1], op0=nl.multiply, op1=nl.add),
                    a, b, initial)
        numpy.testing.assert_allclose(found, expected, atol=1e-5)

    def test_a_cumulative_sum_by_each_instruction(self):
        (a,) = numbers((P, N))
        expected = numpy.cumsum(a.astype(numpy.float64), axis=1)
        found = run(lambda dst, x, ones: nisa.tensor_tensor_scan(dst, ones, x, initial=0, op0=numpy.multiply, op1=numpy.add),
                    a, numpy.ones_like(a))
        numpy.testing.assert_allclose(found, expected, atol=1e-4)
        found = run(lambda dst, x: nisa.tensor_scalar_cumulative(dst=dst, src=x, op0=nl.multiply, imm0=1.0, op1=nl.add), a)
        numpy.testing.assert_allclose(found, expected, atol=1e-4)

    def test_a_cumulative_sum_goes_on(self):
        a, carry = numbers((P, N), (P, 1))
        found = run(lambda dst, x, first: nisa.tensor_scalar_cumulative(
            dst, x, nl.add, nl.maximum, 1, imm1=first, reduce_cmd=nisa.reduce_cmd.load_reduce), a, carry)
        numpy.testing.assert_array_equal(found, numpy.maximum.accumulate(numpy.hstack([carry, a + FP32(1)]), axis=1)[:, 1:])


class Selections(unittest.TestCase):
    def test_a_predicated_copy_leaves_the_others(self):
        a, b = numbers((P, N), (P, N))
        where = (a > 0).astype(numpy.uint8)

        def call(dst, x, y, predicate, **options):
            nisa.tensor_copy(dst, y)
            nisa.tensor_copy_predicated(src=options.pop("src", x), dst=dst, predicate=predicate, **options)
        numpy.testing.assert_array_equal(run(call, a, b, where), numpy.where(where, a, b))
        numpy.testing.assert_array_equal(run(lambda *tiles: call(*tiles, src=-7, reverse_pred=True), a, b, where),
                                         numpy.where(where, b, FP32(-7)))

    def test_a_range_of_indices(self):
        (a,) = numbers((P, N))
        low, high = (numpy.arange(P, dtype=FP32).reshape(P, 1) + offset for offset in (FP32(490), FP32(530)))
        found, largest = run(lambda dst, column, x, lo, hi: nisa.range_select(
            dst, on_true_tile=x, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=lo, bound1=hi, reduce_res=column,
            reduce_op=nl.maximum, reduce_cmd=nisa.reduce_cmd.reset_reduce, range_start=512,
            on_false_value=numpy.finfo(FP32).min), a, low, high, reduced=True)
        index = 512 + numpy.arange(N)
        expected = numpy.where((index >= low) & (index < high), a, numpy.finfo(FP32).min)
        numpy.testing.assert_array_equal(found, expected)
        numpy.testing.assert_array_equal(largest, expected.max(axis=1, keepdims=True))


class Recorded(unittest.TestCase):
    def test_the_engine_of_tensor_tensor(self):
        wide, a = nki.shape((P, N), nl.int32), nki.shape((P, N), nl.float32)

        def call(op, **options):
            return lambda dst, x: nisa.tensor_tensor(dst, x, x, op, **options)
        self.assertEqual(recorded(call(nl.add), wide), ["tensor_tensor d <- s0 s0 op=add engine=gpsimd"])
        self.assertEqual(recorded(call(nl.add), a), ["tensor_tensor d <- s0 s0 op=add"])
        self.assertEqual(recorded(call(nl.power), a), ["tensor_tensor d <- s0 s0 op=power engine=gpsimd"])
        self.assertEqual(recorded(call(numpy.bitwise_or), wide), ["tensor_tensor d <- s0 s0 op=bitwise_or"])
        self.assertEqual(recorded(call(nl.add, engine=nisa.vector_engine), wide),
                         ["tensor_tensor d <- s0 s0 op=add engine=vector"])

    def test_operands_that_are_numbers_or_columns(self):
        a = nki.shape((P, N), nl.float32)
        self.assertEqual(recorded(lambda dst, x: nisa.tensor_scalar(dst, x, nl.multiply, x[:, 3], op1=nl.add, operand1=0.1), a),
                         ["tensor_scalar d <- s0 operand0=s0[0:128, 3] op0=multiply op1=add operand1=0.1"])
        self.assertEqual(recorded(lambda dst, x: nisa.tensor_scalar(dst, x, nl.add, 1e-60, reverse0=True), a),
                         ["tensor_scalar d <- s0 op0=add operand0=0.0 reverse0"])

    def test_refusals_by_name(self):
        a = nki.shape((P, N), nl.float32)
        for message, kind, call in (
                ("op0='divide'", nki.NotBuilt, lambda d, x: nisa.tensor_scalar(d, x, nl.divide, 2)),
                ("there is the operand 3 without an operator", nki.Error,
                 lambda d, x: nisa.tensor_scalar(d, x, nl.add, 2, operand1=3)),
                ("op0 and op1 are None", nki.Error, lambda d, x: nisa.tensor_scalar(d, x, None, 2)),
                (r"operand0 is 1e\+39; expected a finite number", nki.Error, lambda d, x: nisa.tensor_scalar(d, x, nl.add, 1e39)),
                ("operand0 is 'x'; expected a number", nki.Error, lambda d, x: nisa.tensor_scalar(d, x, nl.add, "x")),
                ("operand0 is 2147483647, which fp32 does not hold", nki.Error,
                 lambda d, x: nisa.tensor_scalar(d, x, numpy.bitwise_and, 2**31 - 1)),
                ("reverse0=True", nki.NotBuilt,
                 lambda d, x: nisa.tensor_scalar_reduce(d, x, nl.add, 1, nl.add, x[:, 0], reverse0=True)),
                ("imm1=3", nki.NotBuilt, lambda d, x: nisa.tensor_scalar_cumulative(
                    d, x, nl.add, nl.add, 1, 3, nisa.reduce_cmd.load_reduce)),
                ("expected reduce_cmd=nki.isa.reduce_cmd.load_reduce", nki.Error,
                 lambda d, x: nisa.tensor_scalar_cumulative(d, x, nl.add, nl.add, 1, x[:, 0])),
                ("on_false_value is 0", nki.Error, lambda d, x: nisa.range_select(
                    d, x, nl.less, nl.less, x[:, 0], x[:, 0], on_false_value=0)),
                ("range_start is 0.1, which fp32", nki.Error, lambda d, x: nisa.range_select(
                    d, x, nl.less, nl.less, x[:, 0], x[:, 0], range_start=0.1))):
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                recorded(call, a)


if __name__ == "__main__":
    nki_ground.main()
