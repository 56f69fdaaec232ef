"""Arrays of indices whose comparisons are masks, and remember what they compare for affine_select."""

import numpy


class Mask(numpy.ndarray):
    difference = None  # of the sides that are compared
    op = None


class Index(numpy.ndarray):
    def _compared(self, other, op):
        if not isinstance(other, (int, float, numpy.number, numpy.ndarray)):
            return NotImplemented
        one, other = numpy.asarray(self), numpy.asarray(other)
        mask = numpy.asarray(getattr(numpy, op)(one, other)).view(Mask)
        mask.difference, mask.op = one - other, op
        return mask


def _comparison(op):
    return lambda self, other: self._compared(other, op)


OPERATORS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
for _name, _op in OPERATORS.items():
    setattr(Index, f"__{_name}__", _comparison(_op))


def used_axes(shape, count):
    """The axes that are left when, behind the first, those of size 1 are left out until there are `count`."""
    kept = list(range(len(shape)))
    for at in reversed(kept[1:]):
        if len(kept) > count and shape[at] == 1:
            kept.remove(at)
    return kept


def aligned(array, shape):
    """The array with axes that go with those of `shape`: of nl.mgrid's indices without axes that are not used."""
    array = numpy.asarray(array)
    array = array.reshape([array.shape[at] for at in used_axes(array.shape, len(shape))])
    while array.ndim > 1 and array.shape[-1] == 1 and not _goes_with(array.shape, shape):
        array = array[..., 0]
    return array


def _goes_with(one, other):
    return all(size in (1, wanted) for size, wanted in zip(reversed(one), reversed(other)))
