"""nki.isa of neuronxcc: an instruction returns its result, nki.isa has the instructions."""

import numpy

from nki import isa
from nki._errors import Error, absent_names
from nki._views import NkiTensor, affine
from nki.isa import (dge_mode, engine, get_nc_version, gpsimd_engine, nc_version, oob_mode, reduce_cmd, scalar_engine,
                     tensor_engine, unknown_engine, vector_engine)
from nki.language import shared_identity_matrix
from neuronxcc.nki import _tensor
from neuronxcc.nki._indices import aligned
from neuronxcc.nki._tensor import (NOWHERE, as_type, box_of, canonical, in_sbuf, joint, made, new, operand, part, psum, sbuf,
                                   spread)
from neuronxcc.nki._types import find, promoted

fp32 = find("float32")


def _column(value, like):
    """An operand of one element in each partition, or a number."""
    if not isinstance(value, NkiTensor):
        return value
    value = canonical(value)
    return spread(value, (like.shape[0], *value.shape[1:])) if value.shape[0] == 1 else value


def _elementwise(emit, data, dtype, mask):
    return made(emit, data.shape, find(dtype) or data.dtype, box_of(mask, data.shape))


def tensor_copy(src, *, mask=None, dtype=None, engine=unknown_engine, name=None):
    src = operand(src)
    return _elementwise(lambda dst, box: _tensor.copy(dst, part(src, box), engine), src, dtype, mask)


def memset(shape, value, dtype, *, mask=None, engine=unknown_engine, name=None):
    return made(lambda dst, box: isa.memset(dst, value, engine), tuple(shape), find(dtype), box_of(mask, shape))


def activation(op, data, *, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle, mask=None,
               dtype=None, name=None):
    data = operand(data)
    bias, scale = _column(bias, data), _column(scale, data)
    result = None if reduce_res is None else canonical(reduce_res)

    def emit(dst, box):
        by = as_type(scale, fp32) if isinstance(scale, NkiTensor) else scale
        isa.activation(dst, op, part(data, box), part(bias, box), part(by, box), reduce_op, part(result, box), reduce_cmd)

    return _elementwise(emit, data, dtype, mask)


def activation_reduce(op, data, *, reduce_op=None, reduce_res=None, bias=None, scale=1.0, mask=None, dtype=None, name=None):
    return activation(op, data, bias=bias, scale=scale, reduce_op=reduce_op, reduce_res=reduce_res,
                      reduce_cmd=reduce_cmd.reset_reduce, mask=mask, dtype=dtype)


def reciprocal(data, *, dtype=None, mask=None, name=None):
    data = operand(data)
    return _elementwise(lambda dst, box: isa.reciprocal(dst, part(data, box)), data, dtype, mask)


def tensor_tensor(data1, data2, op, *, dtype=None, mask=None, engine=unknown_engine, name=None):
    one, other = operand(data1), operand(data2)
    shape = joint(one.shape, other.shape)
    one, other = spread(one, shape), spread(other, shape)

    def emit(dst, box):
        right = in_sbuf(part(other, box)) if one.buffer is psum else part(other, box)
        isa.tensor_tensor(dst, part(one, box), right, op, engine)

    return made(emit, shape, find(dtype) or promoted(one.dtype, other.dtype), box_of(mask, shape))


def tensor_scalar(data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, *, dtype=None, mask=None,
                  engine=unknown_engine, name=None):
    data = operand(data)
    first, second = _column(operand0, data), _column(operand1, data)
    return _elementwise(lambda dst, box: isa.tensor_scalar(dst, part(data, box), op0, part(first, box), reverse0, op1,
                                                           part(second, box), reverse1, engine), data, dtype, mask)


def tensor_scalar_reduce(*, data, op0, operand0, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None, name=None):
    data = operand(data)
    value, result = _column(operand0, data), canonical(reduce_res)
    return _elementwise(lambda dst, box: isa.tensor_scalar_reduce(dst, part(data, box), op0, part(value, box), reduce_op,
                                                                  part(result, box), reverse0), data, dtype, mask)


def scalar_tensor_tensor(*, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, dtype=None, mask=None,
                         name=None):
    data, other = operand(data), operand(operand1)
    value, other = _column(operand0, data), spread(other, data.shape)

    def emit(dst, box):
        right = in_sbuf(part(other, box)) if data.buffer is psum else part(other, box)
        isa.scalar_tensor_tensor(dst, part(data, box), op0, part(value, box), op1, right, reverse0, reverse1)

    return _elementwise(emit, data, dtype, mask)


def tensor_tensor_scan(data0, data1, initial, op0, op1, reverse0=False, reverse1=False, *, dtype=None, mask=None, name=None):
    data, other = operand(data0), operand(data1)
    first = _column(initial, data)
    return _elementwise(lambda dst, box: isa.tensor_tensor_scan(dst, part(data, box), part(other, box), part(first, box), op0,
                                                                op1, reverse0, reverse1), data, dtype, mask)


def tensor_copy_predicated(*, src, dst, predicate, mask=None, dtype=None, reverse_pred=False, name=None):
    """Writes dst where `predicate` is not 0."""
    src, condition = operand(src) if isinstance(src, NkiTensor) else src, operand(predicate)
    box = box_of(mask, condition.shape)
    if box is not NOWHERE:
        isa.tensor_copy_predicated(part(canonical(dst), box), part(src, box), part(condition, box), reverse_pred)


def tensor_reduce(op, data, axis, *, mask=None, dtype=None, negate=False, keepdims=False, name=None):
    """What is masked takes no part."""
    data = operand(data)
    axes = {one % data.ndim for one in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    box = box_of(mask, data.shape)
    kept = [1 if at in axes else size for at, size in enumerate(data.shape)]
    shape = tuple(kept if keepdims else [size for at, size in enumerate(kept) if at not in axes])
    shape = shape + (1,) * (2 - len(shape))
    inner = box or [slice(0, size) for size in data.shape]
    of_result = [slice(0, 1) if at in axes else one for at, one in enumerate(inner) if keepdims or at not in axes]
    of_result = (*of_result, *[slice(0, 1)] * (len(shape) - len(of_result)))
    whole = all(one == slice(0, size) for one, size in zip(of_result, shape))
    source = part(data, box or None)
    return made(lambda dst, _: isa.tensor_reduce(dst, op, source, tuple(axes), negate), shape, find(dtype) or data.dtype,
                NOWHERE if box is NOWHERE else None if whole else of_result)


def tensor_partition_reduce(op, data, *, mask=None, dtype=None, name=None):
    data = in_sbuf(operand(data))
    return made(lambda dst, _: isa.tensor_partition_reduce(dst, op, data), (1, *data.shape[1:]), find(dtype) or data.dtype,
                box_of(mask, (1, *data.shape[1:])), only=sbuf)


def bn_stats(data, *, mask=None, dtype=None, name=None):
    """Of what is not masked."""
    data = operand(data)
    data = part(data, box_of(mask, data.shape) or None)
    return made(lambda dst, _: isa.bn_stats(dst, data), (data.shape[0], 6), find(dtype) or data.dtype)


def bn_aggr(data, *, dtype=None, name=None):
    data = operand(data)
    return made(lambda dst, _: isa.bn_aggr(dst, data), (data.shape[0], 2), find(dtype) or data.dtype)


def _pattern(indices, shape):
    """(pattern, first, step of the partitions) of indices that are evenly spaced."""
    found = affine(numpy.broadcast_to(aligned(indices, shape), shape))
    if found is None:
        raise Error("an expression of indices is not evenly spaced")
    first, strides = found
    return [[stride, size] for stride, size in zip(strides[1:], shape[1:])] or [[1, 1]], first, strides[0]


def iota(expr, dtype, *, mask=None, name=None):
    shape = numpy.shape(expr)

    def emit(dst, box):
        pattern, first, step = _pattern(expr if box is None else numpy.broadcast_to(numpy.asarray(expr), shape)[box], dst.shape)
        isa.iota(dst, pattern, first, step)

    return made(emit, shape, find(dtype), box_of(mask, shape), only=sbuf)


def affine_select(pred, on_true_tile, on_false_value, *, mask=None, dtype=None, name=None):
    """`pred` is a comparison of indices."""
    data = operand(on_true_tile)
    difference, op = getattr(pred, "difference", None), getattr(pred, "op", None)
    if difference is None:
        raise Error(f"affine_select: pred is {pred!r}; expected a comparison of nl.arange's or nl.mgrid's indices")

    def emit(dst, box):
        indices = numpy.broadcast_to(aligned(difference, data.shape), data.shape)
        pattern, first, step = _pattern(indices if box is None else indices[box], dst.shape)
        isa.affine_select(dst, pattern, first, step, in_sbuf(part(data, box)), on_false_value, op)

    return made(emit, data.shape, find(dtype) or data.dtype, box_of(mask, data.shape), only=sbuf)


def _product(emit, shape, dtype, mask):
    """A tile of PSUM. emit(dst, accumulate)"""
    box = box_of(mask, shape)
    if box not in (None, NOWHERE):
        raise Error("nc_matmul: a mask leaves out a part; expected one that is true or false, or smaller operands")
    tile = made(lambda dst, _: emit(dst, False), shape, dtype, box, psum, only=psum)
    waiting = _tensor.program().waiting
    once = waiting.write

    def write(dst, *accumulate):
        if not accumulate or box is NOWHERE:
            once(dst)
        else:
            emit(_tensor.fitted(dst, shape), *accumulate)

    waiting.write, waiting.is_product = write, True
    return tile


def nc_matmul(stationary, moving, *, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False, tile_position=(),
              tile_size=(), perf_mode="none", mask=None, name=None):
    """Operands in PSUM are copied to SBUF."""
    stationary, moving = operand(stationary), operand(moving)
    mode = {"double_row_gen3": "double_row"}.get(perf_mode, perf_mode)
    doubled = mode == "double_row"

    def emit(dst, accumulate):
        isa.nc_matmul(dst, in_sbuf(stationary), in_sbuf(moving), is_stationary_onezero, is_moving_onezero, is_transpose,
                      None if is_transpose else accumulate, tile_position, tile_size, mode)

    shape = (int(numpy.prod(stationary.shape[1 + doubled:])), *moving.shape[1 + doubled:])
    return _product(emit, shape, stationary.dtype if is_transpose else fp32, mask)


def nc_transpose(data, *, mask=None, dtype=None, engine=unknown_engine, name=None):
    """By the tensor engine to PSUM. There another type than that of `data` is a product with the identity."""
    data = operand(data)
    shape = (data.shape[1], data.shape[0])
    if engine is vector_engine:
        return made(lambda dst, _: isa.nc_transpose(dst, data, engine), shape, data.dtype, box_of(mask, shape), same_type=True)

    def emit(dst, _):
        source = in_sbuf(data)
        if dst.dtype == data.dtype:
            isa.nc_transpose(dst, source, isa.tensor_engine)
        else:
            isa.nc_matmul(dst, source, shared_identity_matrix(data.shape[0], data.dtype), is_moving_onezero=True,
                          accumulate=False)

    return made(emit, shape, find(dtype) or data.dtype, box_of(mask, shape), psum, only=psum, make=_new_transposed)


def _new_transposed(shape, dtype, region):
    """The tensor engine writes elements of 8 bits to every second byte."""
    is_byte = dtype.name.endswith("int8") or dtype.name.startswith("float8")
    return new((*shape, 2), dtype, region)[:, :, 0] if is_byte else new(shape, dtype, region)


def dma_copy(*, dst, src, mask=None, dtype=None, name=None):
    to, source = canonical(dst), operand(src)
    box = box_of(mask, source.shape)
    if box is not NOWHERE:
        _tensor._fill(to, box)
        isa.dma_copy(part(to, box), in_sbuf(part(source, box)))


def dma_transpose(src, *, axes=None, mask=None, dtype=None, name=None):
    src = operand(src)
    shape = (src.shape[-1], *src.shape[1:-1], src.shape[0])
    return made(lambda dst, _: isa.dma_transpose(dst, src, axes), shape, src.dtype, box_of(mask, shape), only=sbuf,
                same_type=True)


__getattr__ = absent_names(
    "neuronxcc.nki.isa",
    """dropout range_select select_reduce sequence_bounds nc_stream_shuffle nc_n_gather local_gather nc_match_replace8 max8
    nc_find_index8 tensor_copy_dynamic_src tensor_copy_dynamic_dst select
    core_barrier builtin_custom_op""".split(), [])
