"""nki.collectives: each call is an instruction that all ranks of a group carry out together, on tensors in HBM."""

import enum
import math

from nki._errors import Error, absent_names, not_built, refuse_options
from nki._recorder import current
from nki._views import index_of
from nki.isa._call import Call, named

REDUCTIONS = ["add", "maximum", "minimum"]
rg_partition_op = enum.Enum("rg_partition_op", "bitwise_and div mod")


class ReplicaGroup:
    """Lists of ranks, each rank in one of them: a collective is of each list by itself."""

    def __init__(self, groups):
        self.groups = [[index_of(rank) for rank in group] for group in groups]
        self.ranks = sum(map(len, self.groups))
        if not self.groups or sorted(rank for group in self.groups for rank in group) != list(range(self.ranks)):
            raise Error(f"{self!r} has not each rank from 0 once")

    def __repr__(self):
        return f"ReplicaGroup({self.groups})"

    @staticmethod
    def from_partition_op(world_size, op, operand):
        """The ranks whose `op` with the operand is the same are a list."""
        key = {"bitwise_and": lambda rank: rank & operand, "div": lambda rank: rank // operand, "mod": lambda rank: rank % operand}
        lists = {}
        for rank in range(world_size):
            lists.setdefault(key[rg_partition_op(op).name](rank), []).append(rank)
        return ReplicaGroup(lists.values())

    def size_and_stride(self):
        """As a program says groups: so many ranks, so far apart."""
        first = self.groups[0]
        size, stride = len(first), first[1] - first[0] if len(first) > 1 else 1
        span = max(size * stride, 1)
        regular = sorted([rank + member * stride for member in range(size)]
                         for begin in range(0, self.ranks, span) for rank in range(begin, begin + stride))
        if sorted(self.groups) != regular:
            raise not_built(f"nki.collectives with {self!r}, lists that are not of as many ranks, as far apart,")
        return size, stride


def _check_side(function, name, view, dim):
    if view.storage.on_chip:
        raise not_built(f"nki.collectives.{function} with {name} in {view.storage.memory}")
    dim = index_of(dim)
    if not 0 <= dim < view.ndim:
        raise Error(f"{function}: collective_dim is {dim}; {name} has {view.ndim} dimensions")
    if math.prod(view.shape[:dim]) != 1:
        raise not_built(f"nki.collectives.{function} with collective_dim={dim} of {view!r}")


def _record(function, srcs, dsts, replica_group, priority, dim=0, **op):
    """One instruction for each tensor of the lists."""
    refuse_options(f"nki.collectives.{function}", priority=(priority, [None]),
                   **{name: (named(one), REDUCTIONS) for name, one in op.items()})
    if not isinstance(replica_group, ReplicaGroup):
        raise Error(f"{function}: replica_group is {replica_group!r}; expected a ReplicaGroup")
    if not isinstance(srcs, (list, tuple)) or not isinstance(dsts, (list, tuple)) or len(srcs) != len(dsts) or not srcs:
        raise Error(f"{function}: srcs is {srcs!r} and dsts {dsts!r}; expected lists of as many tensors")
    if current().cores > 1:
        raise not_built(f"nki.collectives.{function} in kernel[2]")
    size, stride = replica_group.size_and_stride()
    current().on_ranks(function, replica_group.ranks)
    for src, dst in zip(srcs, dsts):
        call = Call(function, ("src", src), dst=dst)
        _check_side(function, "srcs", call.read[0], dim)
        _check_side(function, "dsts", call.dst, dim)
        call.op(**op)
        call.numbers("ranks", [size, stride] if stride > 1 else [size])
        call.record()


def all_reduce(srcs, dsts, replica_group, op, priority=None, name=None):
    """Each dst is the src of all ranks, reduced element by element."""
    _record("all_reduce", srcs, dsts, replica_group, priority, op=op)


def all_gather(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    """Each dst is the src of all ranks, one after the other."""
    _record("all_gather", srcs, dsts, replica_group, priority, collective_dim)


def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None):
    """Each dst is the rank's part of the reduced src."""
    _record("reduce_scatter", srcs, dsts, replica_group, priority, collective_dim, op=op)


def all_to_all(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    """Each dst is the rank's part of the src of each rank, one after the other."""
    _record("all_to_all", srcs, dsts, replica_group, priority, collective_dim)


# A program is the same for all ranks: none knows its number, or sends elsewhere than the others.
__getattr__ = absent_names(
    "nki.collectives",
    """all_to_all_v collective_permute collective_permute_implicit collective_permute_implicit_current_processing_rank_id
    collective_permute_implicit_reduce rank_id""".split(), [])
