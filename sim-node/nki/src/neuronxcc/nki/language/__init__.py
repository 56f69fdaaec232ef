"""nki.language of neuronxcc: calls and operators that return tiles, indices, loops, grids."""

import functools
import operator

import numpy

from nki import isa as instructions, language, tensor
from nki._errors import Error, absent_names
from nki._views import NkiTensor
from nki.language import (bfloat16, ds, float8_e4m3, float8_e5m2, float16, float32, hbm, int8, int16, int32, par_dim,
                          private_hbm, psum, sbuf, shared_hbm, uint8, uint16, uint32)
from neuronxcc.nki import _tensor, isa
from neuronxcc.nki._indices import Index
from neuronxcc.nki._kernel import Cores
from neuronxcc.nki._tensor import (NOWHERE, Blocks, Tensor, as_tensor, assign, box_of, canonical, in_sbuf, joint, made, new,
                                   operand, part, program, settle, spread)
from neuronxcc.nki._types import find, promoted
from neuronxcc.nki.compiler import Allocation


class tile_size(language.tile_size):
    pass


class fp32:
    min = float(numpy.finfo(numpy.float32).min)
    max = -min


def finfo(dtype):
    """numpy's finfo."""
    dtype = find(dtype).dtype
    if dtype.kind == "f":
        return numpy.finfo(dtype)
    import ml_dtypes
    return ml_dtypes.finfo(dtype)


def ndarray(shape, dtype, *, buffer=None, name=""):
    """A tensor whose elements are not yet written; with dimensions before par_dim, tiles of their own."""
    region = sbuf if buffer is None else buffer.region if isinstance(buffer, Allocation) else buffer
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if region is shared_hbm:
        return _shared(shape, dtype, name)
    rows = next((at for at, size in enumerate(shape) if isinstance(size, language._Partitions)), 0)
    if region not in (sbuf, psum) or rows == 0:
        return new(shape, dtype, region)
    tiles = numpy.empty([int(size) for size in shape[:rows]], object)
    for at in numpy.ndindex(tiles.shape):
        tiles[at] = new(shape[rows:], dtype, region)
    return Blocks(tiles)


def _shared(shape, dtype, name):
    """The programs of a grid share these tensors: the first one makes them, the others name them in the same order."""
    running = program()
    running.made += 1
    if running.made > len(running.shared):
        running.shared.append(as_tensor(language.ndarray(shape, dtype, shared_hbm, name)))
    found = running.shared[running.made - 1]
    if (found.shape, found.dtype) != (tuple(map(int, shape)), find(dtype)):
        raise Error(f"a program of the grid makes a tensor of shared_hbm, {find(dtype)!r} {list(shape)}; the first "
                    f"program made {found!r}: expected the same in the same order")
    return found


def full(shape, fill_value, dtype, *, buffer=None, name="", lazy_initialization=None):
    settle()
    tensor = ndarray(shape, dtype, buffer=buffer, name=name)
    for tile in tensor.tiles.flat if isinstance(tensor, Blocks) else [tensor]:
        instructions.memset(tile, fill_value)
    return tensor


def zeros(shape, dtype, **options):
    return full(shape, 0, dtype, **options)


def ones(shape, dtype, **options):
    return full(shape, 1, dtype, **options)


def shared_constant(constant, dtype=None):
    return as_tensor(language.shared_constant(constant, dtype))


def load(src, *, mask=None, dtype=None, name=None):
    src = operand(src)
    return made(lambda dst, box: instructions.dma_copy(dst, part(src, box)), src.shape, find(dtype) or src.dtype,
                box_of(mask, src.shape), only=sbuf)


def store(dst, value, *, mask=None, name=None):
    settle()
    dst = canonical(dst)
    box = box_of(mask, dst.shape)
    if box is NOWHERE:
        return
    if not isinstance(value, NkiTensor):
        value = full(dst.shape, value, dst.dtype)
    instructions.dma_copy(part(dst, box), in_sbuf(part(_tensor.fitted(value, dst.shape), box)))


def load_transpose2d(src, *, mask=None, dtype=None, name=None):
    tile = isa.dma_transpose(src, mask=mask)
    return tile if find(dtype) in (None, tile.dtype) else copy(tile, dtype=dtype)


def copy(src, *, mask=None, dtype=None, name=None):
    return isa.tensor_copy(src, mask=mask, dtype=dtype)


def static_cast(value, dtype):
    """Also of an array outside of a kernel: an argument of the type."""
    if not isinstance(value, numpy.ndarray):
        return copy(value, dtype=dtype)
    native = find(dtype).native
    return tensor(value, dtype) if native is None else value.astype(native)


def transpose(x, *, dtype=None, mask=None, name=None):
    return isa.nc_transpose(x, dtype=dtype, mask=mask)


def matmul(x, y, *, transpose_x=False, mask=None, name=None):
    """The product of tiles, in PSUM."""
    return isa.nc_matmul(x if transpose_x else copy(transpose(x)), y, mask=mask)


def broadcast_to(src, *, shape, name=None):
    return src.broadcast_to(shape)


def _is_number(value):
    return not isinstance(value, (NkiTensor, Blocks))


def _two(op, x, y, dtype, mask):
    """x op y, where one may be a number, or have one element in each partition."""
    if _is_number(x) and _is_number(y):
        return getattr(numpy, op)(x, y)
    if dtype is None and op in COMPARISONS:
        dtype = uint8
    if _is_number(x) or _is_number(y):
        data, value = (y, x) if _is_number(x) else (x, y)
        return isa.tensor_scalar(data, op, value, reverse0=_is_number(x), dtype=dtype, mask=mask)
    x, y = operand(x), operand(y)
    result = find(dtype) or promoted(x.dtype, y.dtype)
    for data, value, swapped in ((x, y, False), (y, x, True)):
        if value.shape == (data.shape[0], 1) != data.shape:
            return isa.tensor_scalar(data, op, value, reverse0=swapped, dtype=result, mask=mask)
    return isa.tensor_tensor(x, y, op, dtype=result, mask=mask)


def _operator(op):
    def compute(x, y, *, dtype=None, mask=None, name=None):
        return _two(op, x, y, dtype, mask)
    compute.__name__ = op
    return compute


COMPARISONS = "equal not_equal greater greater_equal less less_equal logical_and logical_or logical_xor".split()
add, subtract, multiply, maximum, minimum, power, bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift = map(
    _operator, "add subtract multiply maximum minimum power bitwise_and bitwise_or bitwise_xor left_shift right_shift".split())
equal, not_equal, greater, greater_equal, less, less_equal, logical_and, logical_or, logical_xor = map(_operator, COMPARISONS)


def reciprocal(x, *, dtype=None, mask=None, name=None):
    return isa.reciprocal(x, dtype=dtype, mask=mask)


def divide(x, y, *, dtype=None, mask=None, name=None):
    """x times the reciprocal of y: the engines have no division."""
    if _is_number(y):
        whole = not _is_number(x) and "int" in x.dtype.name
        return _two("multiply", x, 1 / y, float32 if whole and dtype is None else dtype, mask)
    y = operand(y)
    if _is_number(x) and x == 1:
        return isa.reciprocal(y, dtype=dtype, mask=mask)
    whole = canonical(x).shape if not _is_number(x) else None
    inverse = isa.reciprocal(y, dtype=float32, mask=mask if whole in (None, y.shape) else None)
    return _two("multiply", x, inverse, dtype or (y.dtype if _is_number(x) else promoted(x.dtype, y.dtype)), mask)


def _function(op):
    def compute(x, *, dtype=None, mask=None, name=None):
        return isa.activation(op, x, dtype=dtype, mask=mask)
    compute.__name__ = op
    return compute


FUNCTIONS = """abs arctan erf erf_dx exp gelu gelu_apprx_sigmoid gelu_apprx_tanh gelu_dx log mish relu rsqrt sigmoid sign silu
    silu_dx sin softplus sqrt square tanh""".split()
(abs, arctan, erf, erf_dx, exp, gelu, gelu_apprx_sigmoid, gelu_apprx_tanh, gelu_dx, log, mish, relu, rsqrt, sigmoid, sign, silu,
 silu_dx, sin, softplus, sqrt, square, tanh) = map(_function, FUNCTIONS)


def negative(x, *, dtype=None, mask=None, name=None):
    return _two("multiply", x, -1.0, dtype, mask)


def _reduction(name, op):
    def compute(x, axis, *, dtype=None, mask=None, keepdims=False, name=None):
        return isa.tensor_reduce(op, x, axis, dtype=dtype, mask=mask, keepdims=keepdims)
    compute.__name__ = name
    return compute


max, min, sum, prod = map(_reduction, ("max", "min", "sum", "prod"), ("maximum", "minimum", "add", "multiply"))


def mean(x, axis, *, dtype=None, mask=None, keepdims=False, name=None):
    """The sum of what is not masked, by how many elements `axis` has."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    count = int(numpy.prod([x.shape[one] for one in axes]))
    return _two("multiply", sum(x, axis, dtype=dtype, mask=mask, keepdims=keepdims), 1 / count, dtype, None)


def where(condition, x, y, *, dtype=None, mask=None, name=None):
    condition = operand(condition)
    x, y = (one if _is_number(one) else operand(one) for one in (x, y))
    shape = joint(condition.shape, *(one.shape for one in (x, y) if not _is_number(one)))
    types = [one.dtype for one in (x, y) if not _is_number(one)] or [float32]
    result = find(dtype) or functools.reduce(promoted, types)
    condition = spread(condition if condition.dtype.name.startswith("uint") else _tensor.as_type(condition, uint8), shape)
    x, y = (one if _is_number(one) else spread(one, shape) for one in (x, y))

    def emit(dst, box):
        if _is_number(y):
            instructions.memset(dst, y)
        else:
            instructions.tensor_copy(dst, part(y, box))
        value = x if _is_number(x) else _tensor.as_type(part(x, box), dst.dtype)
        instructions.tensor_copy_predicated(dst, value, part(condition, box))

    return made(emit, shape, result, box_of(mask, shape), several=True)


def loop_reduce(value, op, loop_indices, *, dtype=None, mask=None, name=None):
    """What the tensor that gets it is after the loop: in its first pass `value`, then what was there op `value`."""
    value = operand(value)
    first = not any(loop_indices)

    def emit(dst, box):
        if first:
            instructions.tensor_copy(dst, part(value, box))
        else:
            instructions.tensor_tensor(dst, dst, part(value, box), op)

    return made(emit, value.shape, find(dtype) or value.dtype, box_of(mask, value.shape))


def arange(*bounds):
    return language.arange(*bounds).view(Index)


class _Indices(tuple):
    p, x, y, z, w = (property(operator.itemgetter(at)) for at in range(5))


class _Grid:
    """nl.mgrid[0:128, 0:512]: indices of each dimension, also as .p, .x, .y, .z and .w."""

    def __getitem__(self, ranges):
        return _Indices(array.view(Index) for array in language.mgrid[ranges])


mgrid = _Grid()


def affine_range(*bounds, **options):
    """A loop of Python's; options are for AWS's compiler."""
    return language.affine_range(*bounds)


sequential_range = static_range = affine_range


def program_id(axis):
    return program().ids[axis] if axis < len(program().ids) else 0


def num_programs(axes=None):
    """The size of an axis, sizes of several, or of all."""
    sizes = program().sizes
    if axes is None or isinstance(axes, (tuple, list)):
        return tuple(num_programs(axis) for axis in (range(len(sizes)) if axes is None else axes))
    return sizes[axes] if axes < len(sizes) else 1


def program_ndim():
    return len(program().sizes)


def nc(cores):
    """A grid's dimension of the cores of LNC 2."""
    return Cores(cores, cores)


def spmd_dim(programs, cores):
    return Cores(programs * cores.cores, cores.cores)


def _add_operators():
    for name, compute in {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "pow": power}.items():
        setattr(Tensor, f"__{name}__", lambda self, other, compute=compute: compute(self, other))
        setattr(Tensor, f"__r{name}__", lambda self, other, compute=compute: compute(other, self))
        setattr(Tensor, f"__i{name}__", functools.partialmethod(_in_place, compute))
    Tensor.__neg__ = negative


def _in_place(tensor, compute, other):
    if compute is not add or not _tensor.add_product(tensor, other):
        assign(tensor, compute(tensor, other))
    return tensor


_add_operators()

__getattr__ = absent_names(
    "neuronxcc.nki.language",
    """all bool_ tfloat32 ceil cos dropout floor gather_flattened invert logical_not mod rand random_seed rms_norm softmax expand_dims
    tan trunc var atomic_rmw device_print dynamic_range fori_loop while_loop gelu_apprx_sigmoid_dx""".split(), [])
