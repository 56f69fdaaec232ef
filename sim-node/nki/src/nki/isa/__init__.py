"""nki.isa: each call is one instruction of the program. Limits are checked when the program runs, by lib/isa."""

from nki._errors import Error, absent_names, refuse_options
from nki._recorder import adds, current, operand
from nki.isa import constants
from nki.isa.constants import dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd

tensor_engine, vector_engine, scalar_engine, gpsimd_engine, unknown_engine = (
    engine.tensor, engine.vector, engine.scalar, engine.gpsimd, engine.unknown)
OPERATORS = ("add", "subtract", "multiply", "maximum", "minimum")


def get_nc_version():
    return nc_version.gen3


def _on(chosen, function):
    """The option of a chosen engine; without one the program's default."""
    if chosen is None or chosen is constants.engine.unknown:
        return ""
    if not isinstance(chosen, constants.engine):
        raise Error(f"{function}: engine is {chosen!r}; expected one of nki.isa.engine")
    return f" engine={chosen.name}"


def _queue(dst, mode):
    """The engine whose queue takes a DMA for which the kernel names none: GpSimd makes descriptors in software. Loads and
    stores have a queue each, as times that AWS measured ask for: a store waits for its tile, a load need not.
    """
    if mode == constants.dge_mode.swdge:
        return constants.engine.gpsimd
    return constants.engine.unknown if dst.storage.on_chip else constants.engine.scalar


def dma_copy(dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, engine=engine.unknown,
             name=None, dst_rmw_op=None, unique_indices=True, mask=None):
    """Copies between HBM and SBUF (nki.isa._queue)."""
    refuse_options("nki.isa.dma_copy", priority=(priority, [None]), dst_rmw_op=(dst_rmw_op, [None]), mask=(mask, [None]))
    dst, src = operand(dst, "dst", "dma_copy"), operand(src, "src", "dma_copy")
    if engine is None or engine is constants.engine.unknown:
        engine = _queue(dst, dge_mode)
    current().instruction("dma_copy", dst, [src], _on(engine, "dma_copy"))


def nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              accumulate=None, tile_position=(), tile_size=(), perf_mode=matmul_perf_mode.none, name=None, mask=None):
    """dst = stationary^T x moving, or adds it to dst (nki._recorder.adds)."""
    refuse_options("nki.isa.nc_matmul", is_stationary_onezero=(is_stationary_onezero, [False]),
                   is_moving_onezero=(is_moving_onezero, [False]), is_transpose=(is_transpose, [False]),
                   tile_position=(tile_position, [(), None, (0, 0)]), tile_size=(tile_size, [(), None, (128, 128)]),
                   perf_mode=(perf_mode, [matmul_perf_mode.none, None]), mask=(mask, [None]))
    dst = operand(dst, "dst", "nc_matmul")
    read = [operand(stationary, "stationary", "nc_matmul"), operand(moving, "moving", "nc_matmul")]
    added = dst.storage.memory == "psum" and adds(dst, accumulate)
    current().instruction("nc_matmul", dst, read, " accumulate" if added else "")


def tensor_copy(dst, src, engine=engine.unknown, dtype=None, name=None, mask=None):
    """Copies on chip and rounds to the type of `dst`; `dtype`, which older kernels name, changes nothing."""
    refuse_options("nki.isa.tensor_copy", mask=(mask, [None]))
    current().instruction("tensor_copy", operand(dst, "dst", "tensor_copy"), [operand(src, "src", "tensor_copy")],
                          _on(engine, "tensor_copy"))


def core_barrier(data, cores, engine=engine.unknown, name=None):
    """Both cores wait here for each other; what each wrote to `data` before, both read behind."""
    data = operand(data, "data", "core_barrier")
    if current().cores == 2 and set(cores if hasattr(cores, "__iter__") else [cores]) == {0, 1}:
        current().instruction("core_barrier", data, [], _on(engine, "core_barrier"))


def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id=0, dma_engine=dma_engine.dma, name=None):
    """dst of each core gets the other core's src."""
    other = 1 - current().core
    if current().cores != 2 or (send_to_rank, recv_from_rank) != (other, other):
        raise Error(f"sendrecv: sends to {send_to_rank} and takes from {recv_from_rank}; expected the other core of kernel[2], "
                    f"{other}")
    queue = constants.engine.gpsimd if dma_engine == constants.dma_engine.gpsimd_dma else constants.engine.unknown
    current().instruction("sendrecv", operand(dst, "dst", "sendrecv"), [operand(src, "src", "sendrecv")],
                          _on(queue, "sendrecv"))


def memset(dst, value, engine=engine.unknown, name=None, mask=None):
    refuse_options("nki.isa.memset", mask=(mask, [None]))
    dst, options = operand(dst, "dst", "memset"), f" value={float(value)!r}{_on(engine, 'memset')}"
    if value == 0:
        current().zeros(dst, options)
    else:
        current().instruction("memset", dst, [], options)


def tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None, mask=None):
    """dst = data1 op data2, element by element; op is one of OPERATORS, of nki.language or numpy."""
    operator = getattr(op, "__name__", repr(op))
    refuse_options("nki.isa.tensor_tensor", mask=(mask, [None]), op=(operator, OPERATORS))
    read = [operand(data1, "data1", "tensor_tensor"), operand(data2, "data2", "tensor_tensor")]
    current().instruction("tensor_tensor", operand(dst, "dst", "tensor_tensor"), read,
                          f" op={operator}{_on(engine, 'tensor_tensor')}")


__getattr__ = absent_names(
    "nki.isa",
    """activation tensor_scalar nc_transpose tensor_reduce nc_stream_shuffle dma_transpose reciprocal exponential
    scalar_tensor_tensor activation_reduce iota tensor_scalar_reduce tensor_tensor_scan affine_select
    max8 nc_match_replace8 nc_find_index8 range_select select_reduce sequence_bounds dma_compute register_alloc
    register_load register_move register_store scalar_load scalar_store tensor_partition_reduce tensor_copy_predicated
    tensor_copy_dynamic_src tensor_copy_dynamic_dst bn_stats bn_aggr tensor_scalar_cumulative local_gather nc_n_gather
    dropout rng rand2 rand_set_state rand_get_state set_rng_seed nonzero_with_count""".split(),
    "nc_matmul_mx quantize_mx activate2".split())
