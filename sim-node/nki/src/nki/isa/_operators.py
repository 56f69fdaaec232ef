"""Instructions of operators: the Vector engine's, and GpSimd's."""

import numpy

from nki._errors import Error, refuse_options
from nki._views import NkiTensor
from nki.isa import constants
from nki.isa._call import BITS, Call, named
from nki.isa.constants import engine, reduce_cmd

FP32_MIN = float(numpy.finfo(numpy.float32).min)


def _engine_of_two(op, views):
    """The engine of tensor_tensor: GpSimd has power, and computes exactly where all is int32 or uint32 in SBUF."""
    exact = op not in BITS and all(view.dtype.name in ("int32", "uint32") for view in views)
    if op == "power" or (exact and all(view.storage.memory == "sbuf" for view in views)):
        return constants.engine.gpsimd
    return None


def tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None, mask=None):
    """dst = data1 op data2, element by element; op is one of OPERATORS, of nki.language or numpy."""
    refuse_options("nki.isa.tensor_tensor", mask=(mask, [None]))
    call = Call("tensor_tensor", ("data1", data1), ("data2", data2), dst=dst)
    call.op(op=op)
    if engine is None or engine is constants.engine.unknown:
        engine = _engine_of_two(named(op), [call.dst, *call.read])
    call.record(engine)


def tensor_scalar(dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, engine=engine.unknown,
                  name=None):
    """dst = (data op0 operand0) op1 operand1; an operand is a number or a tensor of one element in each partition, an
    operator may be None.
    """
    call = Call("tensor_scalar", ("data", data), dst=dst)
    first, second = (op0, operand0, reverse0), (op1, operand1, reverse1)
    if op0 is None:
        first, second = second, (None, None, False)
    if first[0] is None:
        raise Error("tensor_scalar: op0 and op1 are None; expected an operator")
    exact = named(first[0]) in BITS
    call.op(op0=first[0])
    call.scalar("operand0", first[1], exact)
    call.words(reverse0=first[2])
    if second[0] is None and second[1] is not None:
        raise Error(f"tensor_scalar: there is the operand {second[1]!r} without an operator; expected None")
    if second[0] is not None:
        call.op(op1=second[0])
        call.scalar("operand1", second[1], exact)
        call.words(reverse1=second[2])
    call.record(engine)


def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None):
    """dst = (data op0 operand0) op1 operand1; operand0 as in tensor_scalar, operand1 a tensor as data is."""
    call = Call("scalar_tensor_tensor", ("data", data), ("operand1", operand1), dst=dst)
    call.op(op0=op0, op1=op1)
    call.scalar("operand0", operand0)
    call.words(reverse0=reverse0, reverse1=reverse1)
    call.record()


def tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res, reverse0=False,
                         reduce_cmd=reduce_cmd.reset_reduce, reduce_init=None, name=None):
    """dst = data op0 operand0, and reduce_res = the results of each partition reduced by reduce_op."""
    refuse_options("nki.isa.tensor_scalar_reduce", reverse0=(reverse0, [False]), reduce_init=(reduce_init, [None]),
                   reduce_cmd=(reduce_cmd, [constants.reduce_cmd.reset_reduce]))
    call = Call("tensor_scalar_reduce", ("data", data), dst=dst)
    call.tensor("reduce_res", reduce_res)
    call.op(op0=op0, reduce_op=reduce_op)
    call.scalar("operand0", operand0)
    call.record()


def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None):
    """dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i] in each partition; initial stands before the first."""
    call = Call("tensor_tensor_scan", ("data0", data0), ("data1", data1), dst=dst)
    call.scalar("initial", initial)
    call.op(op0=op0, op1=op1)
    call.words(reverse0=reverse0, reverse1=reverse1)
    call.record()


def tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None):
    """dst = src, a tensor or a number, where predicate is not 0; the other elements stay."""
    call = Call("tensor_copy_predicated", ("predicate", predicate), dst=dst)
    call.scalar("src", src)
    call.words(reverse_pred=reverse_pred)
    call.record()


def tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce, name=None):
    """dst[i] = (src[i] op0 imm0) op1 dst[i - 1] in each partition; before the first is imm1 with load_reduce."""
    commands = constants.reduce_cmd
    refuse_options("nki.isa.tensor_scalar_cumulative",
                   reduce_cmd=(reduce_cmd, [commands.reset_reduce, commands.load_reduce]))
    call = Call("tensor_scalar_cumulative", ("src", src), dst=dst)
    call.op(op0=op0, op1=op1)
    call.scalar("imm0", imm0)
    if reduce_cmd is commands.load_reduce:
        if not isinstance(imm1, NkiTensor):
            refuse_options("nki.isa.tensor_scalar_cumulative", imm1=(imm1, []))
        call.tensor("imm1", imm1)
    elif imm1 is not None:
        raise Error("tensor_scalar_cumulative: imm1 is there; expected reduce_cmd=nki.isa.reduce_cmd.load_reduce with it")
    call.record()


def range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce, reduce_res=None,
                 reduce_op=numpy.maximum, range_start=0, on_false_value=FP32_MIN, name=None):
    """dst = on_true_tile where comp_op0 and comp_op1 hold for range_start + index and the bounds, elsewhere FP32_MIN."""
    refuse_options("nki.isa.range_select", reduce_cmd=(reduce_cmd, [constants.reduce_cmd.reset_reduce]),
                   reduce_op=(named(reduce_op), ["maximum"]))
    if numpy.float32(on_false_value) != numpy.float32(FP32_MIN):
        raise Error(f"range_select: on_false_value is {on_false_value!r}; the chip has {FP32_MIN!r} only")
    call = Call("range_select", ("on_true_tile", on_true_tile), ("bound0", bound0), ("bound1", bound1), dst=dst)
    if reduce_res is not None:
        call.tensor("reduce_res", reduce_res)
    call.op(comp_op0=comp_op0, comp_op1=comp_op1)
    call.scalar("range_start", range_start, exact=True)
    call.record()
