"""Functions of the Scalar engine, reductions, statistics, and the largest elements."""

from nki._errors import Error, not_built, refuse_options
from nki._recorder import operand
from nki._views import NkiTensor, index_of
from nki.isa import constants
from nki.isa._call import Call, named
from nki.isa.constants import engine, reduce_cmd

REDUCTIONS = "add subtract multiply maximum minimum logical_and logical_or logical_xor".split()
FUNCTIONS = """copy square sigmoid relu gelu gelu_dx gelu_apprx_tanh gelu_apprx_sigmoid gelu_apprx_sigmoid_dx silu
    silu_dx tanh softplus mish erf erf_dx exp log sin arctan sqrt rsqrt reciprocal sign abs""".split()


def activation(dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle,
               engine=engine.unknown, name=None):
    """dst = op(data * scale + bias); reduce_res, if there is one, gets the sum of each partition's results. The sums
    stay in no register from one instruction to the next.
    """
    refuse_options("nki.isa.activation", reduce_op=(reduce_op and named(reduce_op), [None, "add"]),
                   reduce_cmd=(reduce_cmd, [one for one in constants.reduce_cmd if one.name != "load_reduce"]))
    if reduce_res is not None and reduce_cmd != constants.reduce_cmd.reset_reduce:
        raise not_built(f"nki.isa.activation with reduce_res and {reduce_cmd!r} instead of reduce_cmd.reset_reduce")
    call = Call("activation", ("data", data), dst=dst)
    call.op(FUNCTIONS, op=op)
    call.scalar("scale", scale, default=1)
    call.scalar("bias", bias, default=0)
    if reduce_res is not None:
        call.tensor("reduce_res", reduce_res)
    call.record(engine)


def activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None):
    """The same with sums, as AWS says: an activation with reduce_cmd.reset_reduce."""
    operand(reduce_res, "reduce_res", "activation_reduce")
    activation(dst, op, data, bias, scale, reduce_op, reduce_res, constants.reduce_cmd.reset_reduce)


def reciprocal(dst, data, name=None):
    Call("reciprocal", ("data", data), dst=dst).record()


def _with_last(data, axis):
    """`data` with the axes behind the others, which are not those of the partitions."""
    axes = [index_of(one) for one in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    axes = sorted(one + data.ndim if one < 0 else one for one in axes)
    free = [at for at in range(data.ndim) if at != data.rows]
    if not axes or len(set(axes)) < len(axes) or not set(axes) <= set(free):
        raise Error(f"tensor_reduce: axis is {axis!r}; expected some of {', '.join(map(str, free))}, each at most once, of {data!r}")
    order = [at for at in range(data.ndim) if at not in axes] + axes
    if order == sorted(order):
        return data
    return NkiTensor(data.storage, tuple(data.shape[at] for at in order), tuple(data.strides[at] for at in order),
                     data.offset, None, None if data.rows is None else order.index(data.rows))


def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    """Reduces `axis`, one free axis or several. `dst` has a shape of its own: `keepdims` changes nothing."""
    call = Call("tensor_reduce", ("data", data), dst=dst)
    call.read = [_with_last(data, axis)]
    call.op(REDUCTIONS, op=op)
    call.words(negate=negate)
    call.record()


def tensor_partition_reduce(dst, op, data, name=None):
    call = Call("tensor_partition_reduce", ("data", data), dst=dst)
    call.op(("add", "maximum"), op=op)
    call.record()


def bn_stats(dst, data, name=None):
    Call("bn_stats", ("data", data), dst=dst).record()


def bn_aggr(dst, data, name=None):
    Call("bn_aggr", ("data", data), dst=dst).record()


def max8(dst, src, name=None):
    Call("max8", ("src", src), dst=dst).record()


def nc_find_index8(dst, data, vals, name=None):
    Call("nc_find_index8", ("data", data), ("vals", vals), dst=dst).record()


def nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None):
    call = Call("nc_match_replace8", ("data", data), ("vals", vals), dst=dst)
    call.options = f" imm={float(imm)!r}"
    if dst_idx is not None:
        call.tensor("dst_idx", dst_idx)
    call.record()
