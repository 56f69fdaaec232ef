"""Instructions that move elements: transpositions, shuffles, gathers, patterns, sums by DMA."""

import math

from nki._errors import Error, not_built, refuse_options
from nki._views import index_of
from nki.isa import constants
from nki.isa._call import Call, named
from nki.isa.constants import dge_mode, engine, oob_mode

COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")


def _pattern(call, pattern, offset, channel_multiplier):
    """The option of [[step, count], …], the outermost first."""
    call.numbers("pattern", [offset, channel_multiplier, *(number for pair in pattern for number in pair)])


def nc_transpose(dst, data, engine=engine.unknown, name=None, mask=None):
    """dst[i, p] = data[p, i]. Without engine= TensorE from SBUF to PSUM, else VectorE, which takes 32 x 32."""
    refuse_options("nki.isa.nc_transpose", mask=(mask, [None]))
    call = Call("nc_transpose", ("data", data), dst=dst)
    if engine is None or engine is constants.engine.unknown:
        by_tensor = dst.storage.memory == "psum" and data.storage.memory == "sbuf"
        engine = constants.engine.tensor if by_tensor else constants.engine.vector
    call.record(engine)


def nc_stream_shuffle(dst, src, shuffle_mask, name=None, mask=None):
    """Partition i of each 32 of dst = partition shuffle_mask[i] of the same 32 of src; 255 keeps dst."""
    refuse_options("nki.isa.nc_stream_shuffle", mask=(mask, [None]))
    call = Call("nc_stream_shuffle", ("src", src), dst=dst)
    call.numbers("shuffle_mask", shuffle_mask)
    call.record()


def dma_transpose(dst, src, axes=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error, name=None, mask=None):
    """Swaps the first and the last dimension of src, of 2 to 4."""
    refuse_options("nki.isa.dma_transpose", oob_mode=(oob_mode, [constants.oob_mode.error]), mask=(mask, [None]),
                   dge_mode=(dge_mode, [one for one in constants.dge_mode if one is not constants.dge_mode.swdge]))
    call = Call("dma_transpose", ("src", src), dst=dst)
    expected = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}.get(src.ndim)
    if expected is None:
        raise Error(f"dma_transpose: src is {src!r}; expected 2 to 4 dimensions")
    if axes is not None and tuple(axes) != expected:
        raise Error(f"dma_transpose: axes is {tuple(axes)}; expected {expected}, for src of {src.ndim} dimensions")
    if dst.shape[:1] != src.shape[-1:]:
        raise Error(f"dma_transpose: dst is {dst!r} and src {src!r}; expected as many partitions as src has in its last "
                    "dimension")
    if dge_mode == constants.dge_mode.hwdge:
        first, columns = src.shape[0], src.shape[-2] if src.ndim > 2 else 1
        fits = first in (1, 2, 4, 8, 16) and first * columns % 16 == 0 if src.ndim > 2 else first == 16
        if not fits or src.dtype.name not in ("uint16", "int16", "float16", "bfloat16"):
            raise Error(f"dma_transpose: src is {src!r}; dge_mode.hwdge takes elements of 2 bytes and 16 rows, in 3 and 4 "
                        "dimensions 1, 2, 4, 8 or 16, times the last but one a multiple of 16")
    call.record()


def iota(dst, pattern, offset=0, channel_multiplier=0, name=None, mask=None):
    """dst[p, w, z, y, x] = offset + p channel_multiplier + w step_w + …; pattern is [[step_w, num_w], …]."""
    refuse_options("nki.isa.iota", mask=(mask, [None]))
    call = Call("iota", dst=dst)
    _pattern(call, pattern, offset, channel_multiplier)
    call.record()


def affine_select(dst, pattern, offset=0, channel_multiplier=0, on_true_tile=None, on_false_value=0.0, cmp_op="equal",
                  name=None, mask=None):
    """dst = on_true_tile where the pattern of iota compares with 0, else on_false_value."""
    refuse_options("nki.isa.affine_select", mask=(mask, [None]))
    call = Call("affine_select", ("on_true_tile", on_true_tile), dst=dst)
    _pattern(call, pattern, offset, channel_multiplier)
    if named(cmp_op) not in COMPARISONS:
        raise Error(f"affine_select: cmp_op is {named(cmp_op)}; expected {', '.join(COMPARISONS)}")
    call.op(cmp_op=cmp_op)
    call.options += f" on_false_value={float(on_false_value)!r}"
    call.record()


def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None, mask=None):
    """Elements of each partition by indices that 16 partitions share. dst has room for num_valid_indices of them."""
    refuse_options("nki.isa.local_gather", mask=(mask, [None]))
    call = Call("local_gather", ("src_buffer", src_buffer), ("index", index), dst=dst)
    taken = 16 * _free(index) if num_valid_indices is None else index_of(num_valid_indices)
    if _free(dst) != taken * index_of(num_elem_per_idx):
        raise Error(f"local_gather: dst is {dst!r}; expected {taken * num_elem_per_idx} elements in a partition: "
                    f"{num_elem_per_idx} for each of {taken} indices")
    call.numbers("num_elem_per_idx", [num_elem_per_idx])
    call.record()


def _free(tensor):
    return math.prod(tensor.shape[1:])


def nc_n_gather(dst, data, indices, name=None, mask=None):
    """dst[p, i] = data[p, indices[p, i]], free dimensions flattened."""
    refuse_options("nki.isa.nc_n_gather", mask=(mask, [None]))
    Call("nc_n_gather", ("data", data), ("indices", indices), dst=dst).record()


def dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, name=None, mask=None):
    """dst = the sum of 2 to 4 sources; AWS's takes 16, and no other operator or scale either."""
    refuse_options("nki.isa.dma_compute", mask=(mask, [None]), scales=(list(scales or []), [[], [1] * len(srcs)]),
                   reduce_op=(named(reduce_op), ["add"]))
    if not 2 <= len(srcs) <= 4:
        raise not_built(f"nki.isa.dma_compute with {len(srcs)} sources")
    call = Call("dma_compute", *((f"srcs[{at}]", view) for at, view in enumerate(srcs[:2])), dst=dst)
    for at in range(2, len(srcs)):
        call.tensor(f"src{at}", srcs[at])
    call.record()
