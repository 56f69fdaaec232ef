"""Copies, products, fills, and the meetings of two cores."""

from nki._errors import Error, refuse_options
from nki._recorder import adds, current, end_groups
from nki.isa import constants
from nki.isa._call import Call
from nki.isa.constants import dge_mode, dma_engine, engine, matmul_perf_mode, oob_mode


def _queue(dst, mode):
    """The engine whose queue takes a DMA for which the kernel names none: GpSimd makes descriptors in software. Loads and
    stores have a queue each, as times that AWS measured ask for: a store waits for its tile, a load need not.
    """
    if mode == constants.dge_mode.swdge:
        return constants.engine.gpsimd
    return constants.engine.unknown if dst.storage.on_chip else constants.engine.scalar


def dma_copy(dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, engine=engine.unknown,
             name=None, dst_rmw_op=None, unique_indices=True, mask=None):
    """Copies between HBM and SBUF (_queue)."""
    refuse_options("nki.isa.dma_copy", priority=(priority, [None]), dst_rmw_op=(dst_rmw_op, [None]), mask=(mask, [None]))
    call = Call("dma_copy", ("src", src), dst=dst)
    chosen = engine is not None and engine is not constants.engine.unknown
    call.record(engine if chosen else _queue(call.dst, dge_mode))


def nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              accumulate=None, tile_position=(), tile_size=(), perf_mode=matmul_perf_mode.none, name=None, mask=None):
    """dst = stationary^T x moving, or adds it to dst (nki._recorder.adds). is_transpose passes bits on, and adds none."""
    refuse_options("nki.isa.nc_matmul", tile_position=(tile_position, [(), None, (0, 0)]),
                   tile_size=(tile_size, [(), None, (128, 128)]), perf_mode=(perf_mode, [matmul_perf_mode.none, None]),
                   mask=(mask, [None]))
    call = Call("nc_matmul", ("stationary", stationary), ("moving", moving), dst=dst)
    if is_transpose:
        end_groups(call.dst)
    else:
        accumulate = call.dst.storage.memory == "psum" and adds(call.dst, accumulate)
    call.words(accumulate=accumulate, is_transpose=is_transpose, is_stationary_onezero=is_stationary_onezero,
               is_moving_onezero=is_moving_onezero)
    call.record()


def tensor_copy(dst, src, engine=engine.unknown, dtype=None, name=None, mask=None):
    """Copies on chip and rounds to the type of `dst`; `dtype`, which older kernels name, changes nothing."""
    refuse_options("nki.isa.tensor_copy", mask=(mask, [None]))
    Call("tensor_copy", ("src", src), dst=dst).record(engine)


def memset(dst, value, engine=engine.unknown, name=None, mask=None):
    refuse_options("nki.isa.memset", mask=(mask, [None]))
    call = Call("memset", dst=dst)
    call.options = f" value={float(value)!r}"
    call.on(engine)
    if value == 0:
        current().zeros(call.dst, call.options)
    else:
        call.record()


def core_barrier(data, cores, engine=engine.unknown, name=None):
    """Both cores wait here for each other; what each wrote to `data` before, both read behind."""
    if current().cores == 2 and set(cores if hasattr(cores, "__iter__") else [cores]) == {0, 1}:
        Call("core_barrier", dst=data).record(engine)


def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id=0, dma_engine=dma_engine.dma, name=None):
    """dst of each core gets the other core's src."""
    other = 1 - current().core
    if current().cores != 2 or (send_to_rank, recv_from_rank) != (other, other):
        raise Error(f"sendrecv: sends to {send_to_rank} and takes from {recv_from_rank}; expected the other core of kernel[2], "
                    f"{other}")
    by_gpsimd = dma_engine == constants.dma_engine.gpsimd_dma
    Call("sendrecv", ("src", src), dst=dst).record(constants.engine.gpsimd if by_gpsimd else None)
