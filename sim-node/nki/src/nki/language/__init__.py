"""nki.language: tensors, types and loops. Loops are Python's: a kernel is recorded instruction by instruction."""

import builtins
import enum

from nki import _recorder
from nki._dtypes import BY_NAME, find
from nki._errors import Error, absent_names, not_built
from nki._views import NkiTensor as NkiTensor, index_of
from nki.isa import memset

uint8, int8, uint16, int16, uint32, int32, float32, float16, bfloat16, float8_e3m4, float8_e4m3, float8_e5m2 = (
    BY_NAME.values())

MemoryRegion = enum.Enum("MemoryRegion", "sbuf psum hbm shared_hbm private_hbm")
sbuf, psum, hbm, shared_hbm, private_hbm = MemoryRegion


class tile_size:
    pmax = 128
    psum_fmax = 512
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512


class NKIObject:
    """A base of kernels' own classes."""


class _Partitions(int):
    """The size that par_dim marks."""


def par_dim(size):
    return _Partitions(size)


def ndarray(shape, dtype, buffer=sbuf, name="", address=None):
    """A tensor whose elements are not yet written."""
    if address is not None:
        raise not_built("nki.language.ndarray with address=")
    region = sbuf if buffer is None or buffer is Ellipsis else buffer
    if not isinstance(region, MemoryRegion):
        raise Error(f"buffer is {buffer!r}; expected nl.sbuf, nl.psum, nl.shared_hbm, nl.private_hbm or nl.hbm")
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(size, _Partitions) for size in shape[1:]):
        raise Error(f"the shape {list(shape)} has its partitions in another dimension than the first")
    memory = region.name if region in (sbuf, psum) else "tensor"
    return _recorder.current().buffer(memory, find(dtype), tuple(map(index_of, shape)), name)


def zeros(shape, dtype, buffer=sbuf, name=""):
    tensor = ndarray(shape, dtype, buffer, name)
    memset(tensor, 0.0)
    return tensor


def ds(start, size):
    """The slice of `size` elements from `start`."""
    return slice(start, start + size)


def _loop(*bounds):
    return builtins.range(*map(index_of, bounds))


affine_range = sequential_range = static_range = range = _loop

# The functions are names of operations, too: nisa.tensor_tensor(…, op=nl.add).
__getattr__ = absent_names(
    "nki.language",
    """add subtract multiply maximum minimum divide power abs negative reciprocal less greater equal less_equal
    greater_equal logical_and logical_or where load store load_transpose2d copy transpose matmul arange broadcast_to
    expand_dims full ones zeros_like empty_like dynamic_range fori_loop while_loop program_id num_programs program_ndim
    exp rsqrt sqrt square silu gelu sigmoid tanh log sin floor sum max min mean softmax rms_norm tfloat32
    shared_constant shared_identity_matrix device_print""".split(),
    "float8_e4m3fn float8_e4m3fn_x4 float8_e5m2_x4 float4_e2m1fn_x4 abs_max abs_min".split())
