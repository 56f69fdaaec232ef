"""nki.collectives: names that kernels import. None is built: a kernel is on one core."""

from nki._errors import absent_names

__getattr__ = absent_names(
    "nki.collectives",
    """ReplicaGroup all_gather all_reduce all_to_all collective_permute collective_permute_implicit
    collective_permute_implicit_current_processing_rank_id collective_permute_implicit_reduce rank_id
    reduce_scatter""".split(), [])
