"""Copies, products, fills, and the meetings of two cores."""

from nki._errors import Error, not_built, refuse_options
from nki._recorder import INDIRECT, adds, current, end_groups
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
    """Copies between HBM and SBUF (_queue). One of both may be .ap with offsets that are read from memory."""
    refuse_options("nki.isa.dma_copy", priority=(priority, [None]), dst_rmw_op=(dst_rmw_op, [None]), mask=(mask, [None]))
    if any(getattr(view, "indirect", None) for view in (dst, src)):
        _dma_copy_indirect(dst, src, oob_mode, dge_mode, engine)
        return
    call = Call("dma_copy", ("src", src), dst=dst)
    chosen = engine is not None and engine is not constants.engine.unknown
    call.record(engine if chosen else _queue(call.dst, dge_mode))


def _dma_copy_indirect(dst, src, oob_mode, dge_mode, engine):
    if getattr(dst, "indirect", None) and getattr(src, "indirect", None):
        raise not_built("nki.isa.dma_copy with offsets on both sides")
    scatter = bool(getattr(dst, "indirect", None))
    offsets, step = (dst if scatter else src).indirect
    call = Call(INDIRECT, ("src", src), ("offsets", offsets), dst=dst)
    one = len(offsets.shape) == 0 or offsets.shape[0] == 1
    modes = constants.dge_mode
    if dge_mode in ([modes.none] if one else [modes.none, modes.hwdge]):
        raise Error(f"dma_copy: dge_mode is {modes(dge_mode)!r}; it reads {'no offset' if one else 'no offset of each row'} "
                    "from memory: expected dge_mode.swdge or unknown")
    call.numbers("step", [step])
    call.words(scatter=scatter, skip=oob_mode is constants.oob_mode.skip)
    if engine is None or engine is constants.engine.unknown:
        engine = constants.engine.gpsimd if not one else _queue(call.dst, dge_mode)
        engine = constants.engine.sync if engine is constants.engine.unknown else engine
    call.record(engine)


def _check_tile(call, position, size):
    """A tile of the array of TensorE is a place for a small product; products in other tiles are not faster here."""
    start, extent = tuple(position or (0, 0)), tuple(size or (128, 128))
    if start == (0, 0) and extent == (128, 128):
        return
    first, last, *_ = call.read[0].region()
    needs = (last - first + 1, call.dst.region()[1] - call.dst.region()[0] + 1)
    for at, name in enumerate(("rows", "columns")):
        if extent[at] not in (32, 64, 128) or start[at] % extent[at] or not 0 <= start[at] <= 128 - extent[at]:
            raise Error(f"nc_matmul: tile_position is {start} and tile_size {extent}; expected {name} of 32, 64 or 128 from a "
                        "multiple of them")
        if needs[at] > extent[at]:
            raise Error(f"nc_matmul: tile_size is {extent}; the product needs {needs[at]} {name}")
    begin = (first, call.dst.region()[0])
    if position and begin != start:
        raise Error(f"nc_matmul: tile_position is {start}; stationary and dst begin at partitions {begin}: expected the same")


def nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              accumulate=None, tile_position=(), tile_size=(), perf_mode=matmul_perf_mode.none, name=None, mask=None):
    """dst = stationary^T x moving, or adds it to dst (nki._recorder.adds). is_transpose passes bits on, and adds none."""
    perf_mode = getattr(perf_mode, "name", perf_mode)
    refuse_options("nki.isa.nc_matmul", perf_mode=(perf_mode, ["none", None, "double_row"]), mask=(mask, [None]))
    call = Call("nc_matmul", ("stationary", stationary), ("moving", moving), dst=dst)
    _check_tile(call, tile_position, tile_size)
    double_row = perf_mode == "double_row"
    for name, view in (("stationary", stationary), ("moving", moving)):
        if double_row and (view.ndim != 3 or view.shape[1] != 2):
            raise Error(f"nc_matmul: {name} is {view!r}; expected [partitions, 2, columns], for double_row")
    if is_transpose:
        end_groups(call.dst)
    else:
        accumulate = call.dst.storage.memory == "psum" and adds(call.dst, accumulate)
    call.words(accumulate=accumulate, is_transpose=is_transpose, is_stationary_onezero=is_stationary_onezero,
               is_moving_onezero=is_moving_onezero, double_row=double_row)
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
