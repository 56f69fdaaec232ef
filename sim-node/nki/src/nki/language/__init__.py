"""nki.language: tensors, types and loops. Loops are Python's: a kernel is recorded instruction by instruction."""

import builtins
import dataclasses
import os

import numpy

from nki import _recorder
from nki._dtypes import BY_NAME, find
from nki._errors import Error, absent_names, not_built
from nki._views import MemoryRegion, NkiTensor, index_of, row_major
from nki.isa import dma_copy, memset, tensor_copy

(uint8, int8, uint16, int16, uint32, int32, float32, float16, bfloat16, float8_e3m4, float8_e4m3, float8_e5m2,
 tfloat32) = BY_NAME.values()

sbuf, psum, hbm, shared_hbm, private_hbm = MemoryRegion


class tile_size:
    pmax = 128
    psum_fmax = 512
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1
    total_available_sbuf_size = 224 << 10  # bytes of a partition


class _Fields(type):
    """Of a class without __init__ of its own, a call sets the attributes that it names, also those without an annotation,
    and may leave out others, dataclass or not: as AWS's compiler takes kernels' classes.
    """

    def __new__(cls, name, bases, members, **options):
        made = super().__new__(cls, name, bases, members, **options)
        made._initializes = "__init__" in members or any(getattr(base, "_initializes", False) for base in bases)
        return made

    def __call__(cls, *arguments, **named):
        if cls._initializes:
            return super().__call__(*arguments, **named)
        made = cls.__new__(cls)
        fields = [name for base in reversed(cls.__mro__) for name in vars(base).get("__annotations__", ())]
        defaults = {field.name: field.default_factory() for field in getattr(cls, "__dataclass_fields__", {}).values()
                    if field.default_factory is not dataclasses.MISSING}
        strangers = [name for name in named if name not in fields and not hasattr(cls, name)]
        if strangers or len(arguments) > len(fields):
            raise TypeError(f"{cls.__name__} takes {', '.join(fields) or 'nothing'}; not {', '.join(strangers) or arguments}")
        for name, value in (defaults | dict(zip(fields, arguments)) | named).items():
            object.__setattr__(made, name, value)
        getattr(made, "__post_init__", lambda: None)()
        return made


class NKIObject(metaclass=_Fields):
    """A base of kernels' own classes."""


class _Partitions(int):
    """The size that par_dim marks."""


def par_dim(size):
    return _Partitions(size)


def ndarray(shape, dtype, buffer=sbuf, name="", address=None):
    """A tensor whose elements are not yet written. On chip, dimensions before the one that par_dim marks are blocks: tiles
    in the same partitions. `address` is (first partition, byte of each partition).
    """
    region = sbuf if buffer is None or buffer is Ellipsis else buffer
    if not isinstance(region, MemoryRegion):
        raise Error(f"buffer is {buffer!r}; expected nl.sbuf, nl.psum, nl.shared_hbm, nl.private_hbm or nl.hbm")
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    rows = next((at for at, size in enumerate(shape) if isinstance(size, _Partitions)), 0)
    shape = tuple(map(index_of, shape))
    if region not in (sbuf, psum):
        if address is not None:
            raise not_built("nki.language.ndarray in HBM with address=")
        return NkiTensor.whole(_recorder.current().buffer(region, find(dtype), shape, name))
    first, byte = (0, None) if address is None else map(index_of, address)
    inner = shape[:rows] + shape[rows + 1:]
    storage = _recorder.current().buffer(
        region, find(dtype), (first + shape[rows], *inner) if shape else (), name, address=byte)
    if rows == 0:
        return NkiTensor.whole(storage)[first:] if first else NkiTensor.whole(storage)
    strides = row_major(inner)
    return NkiTensor(storage, shape, (*strides[:rows], storage.pitch, *strides[rows:]), first * storage.pitch, None, rows)


def full(shape, fill_value, dtype, buffer=sbuf, name=""):
    tensor = ndarray(shape, dtype, buffer, name)
    memset(tensor, fill_value)
    return tensor


def zeros(shape, dtype, buffer=sbuf, name=""):
    return full(shape, 0.0, dtype, buffer, name)


def ones(shape, dtype, buffer=sbuf, name=""):
    return full(shape, 1.0, dtype, buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    return ndarray(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def zeros_like(x, dtype=None, buffer=None, name=""):
    return zeros(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def shared_constant(constant, dtype=None):
    """A tensor in HBM with the numbers of an array, or of a file of numpy's."""
    array = numpy.load(constant) if isinstance(constant, (str, os.PathLike)) else numpy.asarray(constant)
    return _recorder.current().constant(array, find(array.dtype if dtype is None else dtype))


def shared_identity_matrix(n, dtype=uint8):
    """A tile in SBUF, one for all that ask for this one."""
    recorder, dtype = _recorder.current(), find(dtype)
    if (n, dtype) not in recorder.identities:
        tile = recorder.identities[n, dtype] = ndarray((n, n), dtype)
        dma_copy(tile, shared_constant(numpy.eye(n, dtype=numpy.float32), dtype))
    return recorder.identities[n, dtype]


def load(src, *, mask=None, dtype=None):
    """A new tile in SBUF with a part of a tensor; not written where a mask is false."""
    tile = ndarray(src.shape, src.dtype if dtype is None else dtype)
    dma_copy(_masked(tile, mask), _masked(src, mask))
    return tile


def store(dst, value, *, mask=None):
    """Writes a tile, which is converted to the type of `dst`."""
    if not isinstance(value, NkiTensor):
        value = full(dst.shape, value, dst.dtype)
    dma_copy(_masked(dst, mask), _masked(value, mask))


def copy(src, *, mask=None, dtype=None):
    """A new tile in SBUF with the numbers of another one."""
    tile = ndarray(src.shape, src.dtype if dtype is None else dtype)
    tensor_copy(_masked(tile, mask), _masked(src, mask))
    return tile


def _masked(tensor, mask):
    """The part of a tensor where a mask, an array of bools, is true."""
    return tensor if mask is None else tensor[box_of(mask, tensor.shape)]


def box_of(mask, shape):
    """The slices where a mask is true, which must be a rectangle."""
    try:
        mask = numpy.broadcast_to(mask, shape)
    except ValueError:
        raise Error(f"a mask has the shape {list(numpy.shape(mask))}; expected that of {list(shape)}") from None
    places = numpy.nonzero(mask)
    if not mask.any() or not mask[box := tuple(slice(int(at.min()), int(at.max()) + 1) for at in places)].all():
        raise Error("a mask is not a rectangle of 1 element or more")
    return box


def arange(*bounds):
    """An array of indices: tensor[nl.arange(128)[:, None], nl.arange(512)[None, :]]."""
    return numpy.arange(*map(index_of, bounds))


class _Grid:
    """nl.mgrid[0:128, 0:512]: indices of two dimensions, also as .p and .x."""

    def __getitem__(self, ranges):
        return _Indices(numpy.ogrid[ranges])


class _Indices(tuple):
    p = property(lambda self: self[0])
    x = property(lambda self: self[-1])
    y = property(lambda self: self[1])
    z = property(lambda self: self[2])


mgrid = _Grid()


def ds(start, size):
    """The slice of `size` elements from `start`."""
    return slice(start, start + size)


def _loop(*bounds):
    return builtins.range(*map(index_of, bounds))


affine_range = sequential_range = static_range = range = _loop


def dynamic_range(*bounds):
    """A loop whose bounds Python or a register knows (nisa.register_load)."""
    if any(isinstance(bound, NkiTensor) for bound in bounds):
        raise not_built("nki.language.dynamic_range with a tile as its bound, without a register,")
    return _loop(*bounds)


def program_id(axis=0):
    """0, or on the second core of kernel[2] 1."""
    return _recorder.current().core


def num_programs(axes=None):
    cores = _recorder.current().cores
    return cores if axes is None or isinstance(axes, int) else (cores,) * len(axes)


def program_ndim():
    return 0 if _recorder.current().cores == 1 else 1


# The functions are names of operations, too: nisa.tensor_tensor(…, op=nl.add).
__getattr__ = absent_names(
    "nki.language",
    """abs add bitwise_and bitwise_or bitwise_xor divide equal greater greater_equal invert left_shift less less_equal
    logical_and logical_not logical_or logical_xor maximum minimum mod multiply negative not_equal power reciprocal
    right_shift rsqrt subtract where all arctan ceil cos dropout erf erf_dx exp floor gelu gelu_apprx_sigmoid
    gelu_apprx_sigmoid_dx gelu_apprx_tanh gelu_dx gather_flattened log mish prod rand random_seed relu rms_norm sigmoid
    sign silu silu_dx sin softmax softplus sqrt square sum max min mean tan tanh trunc var
    atomic_rmw load_transpose2d transpose matmul broadcast_to expand_dims loop_reduce
    fori_loop while_loop spmd_dim nc static_cast bool_ device_print""".split(),
    "float8_e4m3fn float8_e4m3fn_x4 float8_e5m2_x4 float4_e2m1fn_x4 abs_max abs_min".split())
