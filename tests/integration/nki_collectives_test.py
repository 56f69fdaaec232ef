#!/usr/bin/env python3
"""Runs kernels of NKI with collectives on several cores and chips, and compares with numpy's numbers.

    PATH=build/release/bin:$PATH tests/integration/nki_collectives_test.py

As nki_test.py: trn-run must reach cores, here those of four chips with LNC 2; runs itself with the Python of `.ci/setup`; status 77
is skipped.
"""

import unittest

import nki_ground
from nki_ground import as_bf16, load, stored

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import numpy

FOUR_CHIPS = [(chip, 0) for chip in range(4)]
ONE_CHIP = [(0, core) for core in (0, 2, 1, 3)]
EIGHT = [(chip, core) for chip in range(4) for core in (1, 3)]


def everyone(ranks):
    return ncc.ReplicaGroup([range(ranks)])


def in_hbm(shape, dtype):
    return nl.ndarray(shape, dtype, buffer=nl.shared_hbm)


@nki.jit
def reduced(a, group, op):
    nisa.dma_copy(source := in_hbm(a.shape, a.dtype), a)
    ncc.all_reduce(srcs=[source], dsts=[result := in_hbm(a.shape, a.dtype)], replica_group=group, op=op)
    return result


@nki.jit
def gathered(a, b, group, dim):
    ranks = len(group.groups[0])
    results = [in_hbm((*one.shape[:dim], one.shape[dim] * ranks, *one.shape[dim + 1:]), one.dtype) for one in (a, b)]
    ncc.all_gather(srcs=[a, b], dsts=results, replica_group=group, collective_dim=dim)
    return tuple(results)


@nki.jit
def scattered(a, group, op):
    result = in_hbm((a.shape[0] // len(group.groups[0]), a.shape[1]), a.dtype)
    ncc.reduce_scatter(srcs=[a], dsts=[result], replica_group=group, collective_dim=0, op=op)
    return result


@nki.jit
def exchanged(a, group):
    ncc.all_to_all(srcs=[a], dsts=[result := in_hbm(a.shape, a.dtype)], replica_group=group, collective_dim=0)
    return result


@nki.jit
def beside(a, b, c, group, products):
    """A sum of c over the ranks, while the engines multiply a and b."""
    nisa.dma_copy(own := nl.ndarray(c.shape, c.dtype, buffer=nl.private_hbm), c)
    ncc.all_reduce([own], [total := in_hbm(c.shape, c.dtype)], group, nl.add)
    left, right = load(a), load(b)
    for _ in range(products):
        nisa.nc_matmul(product := nl.ndarray((128, 512), nl.float32, buffer=nl.psum), left, right)
        nisa.tensor_copy(tile := nl.ndarray((128, 512), nl.float32), product)
    return total, stored(tile)


def in_order(parts, op):
    """Reduced in fp32 from the first rank to the last, rounded once."""
    result = parts[0].astype(numpy.float32)
    for part in parts[1:]:
        result = op(result, part.astype(numpy.float32))
    return result


class Collectives(unittest.TestCase):
    def setUp(self):
        self.random = numpy.random.default_rng(11)

    def parts(self, ranks, shape, dtype=numpy.float32):
        """An array of each rank."""
        return [(self.random.standard_normal(shape) * 100).astype(dtype) for _ in range(ranks)]

    def test_all_ranks_get_what_the_parts_of_all_make(self):
        functions = ((nl.add, numpy.add), (nl.maximum, numpy.maximum), (nl.minimum, numpy.minimum))
        for ranks in (FOUR_CHIPS, ONE_CHIP, EIGHT):
            for op, function in functions:
                for dtype in (numpy.float32, numpy.float16):
                    parts = self.parts(len(ranks), (3, 77), dtype)
                    run = reduced.run(nki.each(parts), everyone(len(ranks)), op, ranks=ranks)
                    self.assertEqual(len(run.results), len(ranks))
                    for result in run.results:
                        numpy.testing.assert_array_equal(result, in_order(parts, function).astype(dtype))

    def test_sums_of_bf16_are_made_in_fp32(self):
        parts = [as_bf16(part) for part in self.parts(4, (128, 40))]
        run = reduced.run(nki.each(parts, nl.bfloat16), everyone(4), nl.add, ranks=FOUR_CHIPS)
        for result in run.results:
            numpy.testing.assert_array_equal(result, as_bf16(in_order(parts, numpy.add)))

    def test_groups_are_apart(self):
        parts = self.parts(8, (2, 9))
        for groups in ([[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]],
                       [[rank] for rank in range(8)]):
            results = reduced.run(nki.each(parts), ncc.ReplicaGroup(groups), nl.add, ranks=EIGHT).results
            for group in groups:
                for rank in group:
                    numpy.testing.assert_array_equal(results[rank], in_order([parts[one] for one in group], numpy.add))

    def test_parts_stand_one_after_the_other_on_all_ranks(self):
        one, other = self.parts(4, (5, 7)), self.parts(4, (2, 3, 4), numpy.int32)
        for result in gathered.run(nki.each(one), nki.each(other), everyone(4), 0, ranks=FOUR_CHIPS).results:
            numpy.testing.assert_array_equal(result[0], numpy.concatenate(one))
            numpy.testing.assert_array_equal(result[1], numpy.concatenate(other))
        one, other = self.parts(2, (1, 7)), self.parts(2, (1, 3, 4), numpy.int8)
        for result in gathered.run(nki.each(one), nki.each(other), everyone(2), 1, ranks=ONE_CHIP[:2]).results:
            numpy.testing.assert_array_equal(result[0], numpy.concatenate(one, axis=1))
            numpy.testing.assert_array_equal(result[1], numpy.concatenate(other, axis=1))

    def test_each_rank_gets_its_part_of_the_sum(self):
        parts = self.parts(8, (12, 6))
        groups = [[0, 2, 4, 6], [1, 3, 5, 7]]
        results = scattered.run(nki.each(parts), ncc.ReplicaGroup(groups), nl.maximum, ranks=EIGHT).results
        for group in groups:
            whole = in_order([parts[one] for one in group], numpy.maximum)
            for rank, expected in zip(group, numpy.split(whole, 4)):
                numpy.testing.assert_array_equal(results[rank], expected)

    def test_each_rank_gets_its_part_of_each_rank(self):
        parts = self.parts(4, (8, 5), numpy.int16)
        results = exchanged.run(nki.each(parts), everyone(4), ranks=ONE_CHIP).results
        for rank, result in enumerate(results):
            numpy.testing.assert_array_equal(result, numpy.concatenate([numpy.split(part, 4)[rank] for part in parts]))

    def test_an_array_is_for_all_ranks_and_one_core_needs_none(self):
        part = self.parts(1, (4, 6))[0]
        for result in reduced.run(part, everyone(4), nl.add, ranks=FOUR_CHIPS).results:
            numpy.testing.assert_array_equal(result, 4 * part)
        numpy.testing.assert_array_equal(reduced(part, everyone(1), nl.add), part)
        numpy.testing.assert_array_equal(exchanged.run(nki.each([part]), everyone(1), ranks=[(2, 3)]).results, [part])

    def test_the_engines_work_while_the_links_do(self):
        shapes = [nki.shape(shape, nl.bfloat16) for shape in ((128, 128), (128, 512), (128, 8192))]
        both = beside.run(*shapes, everyone(4), 100, ranks=FOUR_CHIPS, data=False)
        links = beside.run(*shapes, everyone(4), 1, ranks=FOUR_CHIPS, data=False).time_us
        engines = beside.run(*shapes, ncc.ReplicaGroup([[rank] for rank in range(4)]), 100, ranks=FOUR_CHIPS, data=False).time_us
        self.assertLess(both.time_us, links + engines - min(links, engines) / 2)
        self.assertGreaterEqual(both.time_us, max(links, engines) * 0.99)
        self.assertEqual(max(both.rank_times_us), both.time_us)
        self.assertEqual((len(both.rank_times_us), both.resources), (4, {}))
        self.assertLess(both.bound_us, both.time_us)

    def test_an_error_of_the_program_names_the_kernels_line(self):
        def short(a):
            ncc.all_gather([a], [result := in_hbm(a.shape, a.dtype)], everyone(2), 0)
            return result
        with self.assertRaises(nki.Error) as raised:
            nki.jit(short).run(self.parts(1, (4, 4))[0], ranks=FOUR_CHIPS[:2])
        self.assertIn("all_gather: dst has 16 elements and src 16 in groups of 2 ranks", str(raised.exception))
        self.assertIn("ncc.all_gather([a], [result :=", str(raised.exception))


class Programs(unittest.TestCase):
    """The text that a kernel becomes, and what is refused."""

    def lines(self, groups, *tensors, **options):
        def kernel(a):
            ncc.all_reduce([a] * 2, tensors or [in_hbm(a.shape, a.dtype) for _ in range(2)], groups, **({"op": nl.add} | options))
            nisa.dma_copy(result := in_hbm(a.shape, a.dtype), a)
            return result
        text = nki.jit(kernel).program(nki.shape((4, 8), nl.float32))
        return [line for line in text.splitlines() if line.startswith("all_reduce")]

    def test_a_list_is_an_instruction_for_each_tensor(self):
        self.assertEqual(self.lines(everyone(3)), ["all_reduce h0 <- a op=add ranks=3", "all_reduce h1 <- a op=add ranks=3"])
        self.assertEqual(self.lines(ncc.ReplicaGroup([[1, 3], [0, 2]]), op=numpy.maximum)[0],
                         "all_reduce h0 <- a op=maximum ranks=2,2")

    def test_lists_of_ranks_by_an_operation(self):
        of = ncc.ReplicaGroup.from_partition_op
        for op, operand, expected in (("bitwise_and", 0, (8, 1)), ("bitwise_and", 1, (4, 2)), ("div", 4, (4, 1)), ("mod", 4, (2, 4))):
            self.assertEqual(of(8, ncc.rg_partition_op[op], operand).size_and_stride(), expected)

    def assert_refused(self, message, function, kind=nki.Error):
        with self.assertRaises(kind) as raised:
            function()
        self.assertIn(message, str(raised.exception))

    def test_groups_that_no_program_can_say_are_refused(self):
        for groups in ([[0, 1], [2]], [[1, 0]], [[0, 3], [1, 2]], [[0, 1, 3, 4], [2, 5, 6, 7]], [[], [0]]):
            self.assert_refused("lists that are not of as many ranks, as far apart, is not built yet",
                                lambda: self.lines(ncc.ReplicaGroup(groups)), nki.NotBuilt)
        for groups in ([], [[0, 2]], [[0, 1], [1, 2]], [[-1, 0]]):
            self.assert_refused("has not each rank from 0 once", lambda: ncc.ReplicaGroup(groups))
        self.assert_refused("replica_group is [[0]]; expected a ReplicaGroup", lambda: self.lines([[0]]))

    def test_operands_and_options_that_are_none(self):
        one = everyone(1)
        self.assert_refused("nki.collectives.all_reduce with op='multiply' is not built yet", lambda: self.lines(one, op=nl.multiply),
                            nki.NotBuilt)
        self.assert_refused("nki.collectives.all_reduce with priority=1", lambda: self.lines(one, priority=1), nki.NotBuilt)
        self.assert_refused("expected lists of as many tensors", lambda: self.lines(one, 1))
        self.assert_refused("dst is 1; expected a tensor", lambda: self.lines(one, 1, 2))
        tiles = lambda: nl.ndarray((4, 8), nl.float32)
        self.assert_refused("nki.collectives.all_to_all with srcs in sbuf is not built yet", nki.jit(
            lambda: ncc.all_to_all([tiles()], [tiles()], one, 0)).program, nki.NotBuilt)
        self.assert_refused("nki.collectives.all_to_all with collective_dim=1 of a", lambda: nki.jit(
            lambda a: ncc.all_to_all([a], [in_hbm(a.shape, a.dtype)], one, 1)).program(nki.shape((4, 8), nl.float32)), nki.NotBuilt)
        self.assert_refused("nki.collectives.all_reduce in kernel[2] is not built yet",
                            lambda: reduced[2].program(nki.shape((4, 8), nl.float32), one, nl.add), nki.NotBuilt)
        self.assert_refused("nki.collectives.rank_id is not built yet", nki.jit(ncc.rank_id).program, nki.NotBuilt)

    def test_ranks_and_arguments_that_do_not_suit_each_other(self):
        a = numpy.ones((4, 8), numpy.float32)
        self.assert_refused("reduced has collectives of 2 ranks and runs on 1", lambda: reduced(a, everyone(2), nl.add))
        self.assert_refused("has collectives of 2 ranks and runs on 4", lambda: reduced.run(a, everyone(2), nl.add, ranks=FOUR_CHIPS))
        self.assert_refused("a is an nki.each of 3 arrays; reduced runs on 2 ranks",
                            lambda: reduced.run(nki.each([a] * 3), everyone(2), nl.add, ranks=FOUR_CHIPS[:2]))
        self.assert_refused("a is an nki.each of 1 arrays; reduced runs on no ranks=", lambda: reduced(nki.each([a]), everyone(1), nl.add))
        for ranks in ([], [(0, 0), (1, 1)], [(0, 0), (0, 0)], [(0, 0), (1, 0), (0, 1), (1, 1)]):
            self.assert_refused("expected (chip, core) of some chips", lambda: reduced.run(a, everyone(1), nl.add, ranks=ranks))
        self.assert_refused("nki.each has arrays of [3, 8], [4, 8]; expected one of each rank", lambda: nki.each([a, a[1:]]))


if __name__ == "__main__":
    nki_ground.main()
