"""nki.isa: each call is one instruction of the program. Limits are checked when the program runs, by lib/isa."""

from nki._errors import absent_names
from nki.isa._basic import core_barrier, dma_copy, memset, nc_matmul, sendrecv, tensor_copy
from nki.isa._functions import (activation, activation_reduce, bn_aggr, bn_stats, max8, nc_find_index8, nc_match_replace8,
                                reciprocal, tensor_partition_reduce, tensor_reduce)
from nki.isa._moves import (affine_select, dma_compute, dma_transpose, iota, local_gather, nc_n_gather, nc_stream_shuffle,
                            nc_transpose)
from nki.isa._operators import (range_select, scalar_tensor_tensor, tensor_copy_predicated, tensor_scalar,
                                tensor_scalar_cumulative, tensor_scalar_reduce, tensor_tensor, tensor_tensor_scan)
from nki.isa._registers import register_alloc, register_load, register_move
from nki.isa.constants import dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd

tensor_engine, vector_engine, scalar_engine, gpsimd_engine, unknown_engine = (
    engine.tensor, engine.vector, engine.scalar, engine.gpsimd, engine.unknown)


def get_nc_version():
    return nc_version.gen3


__getattr__ = absent_names(
    "nki.isa",
    """exponential select_reduce sequence_bounds register_store scalar_load
    scalar_store tensor_copy_dynamic_src tensor_copy_dynamic_dst dropout rng rand2 rand_set_state rand_get_state set_rng_seed
    nonzero_with_count""".split(),
    "nc_matmul_mx quantize_mx activate2".split())
