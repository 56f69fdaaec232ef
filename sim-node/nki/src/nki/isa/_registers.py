"""Registers, by which kernels decide how often a loop runs.

Programs have no jumps: Python unrolls loops. So a register is asked for its number while the kernel is recorded: trn-run runs the
program so far and returns the tile's element.
"""

import math

from nki import _recorder
from nki._errors import Error
from nki._views import NkiTensor

TYPES = ("int32", "uint32", "int16", "uint16", "int8", "uint8")


class Register:
    """A whole number of a core. `while register:` and nl.dynamic_range(…, register) ask for the number."""

    def __init__(self):
        self.number = None

    def __index__(self):
        if self.number is None:
            raise Error("a register is read that nothing was loaded into; expected nisa.register_load(register, tile) before")
        return self.number

    __int__ = __index__

    def __bool__(self):
        return self.__index__() != 0


def register_alloc(x=None):
    """A register, with the number `x`, or that of a tile of one element."""
    register = Register()
    if isinstance(x, NkiTensor):
        register_load(register, x)
    elif x is not None:
        register.number = int(x)
    return register


def register_load(dst, src):
    """Loads a tile of one whole number in SBUF."""
    if not isinstance(dst, Register):
        raise Error(f"register_load: dst is {dst!r}; expected what nisa.register_alloc() gave")
    view = _recorder.operand(src, "src", "register_load")
    if view.storage.memory != "sbuf" or math.prod(view.shape) != 1 or view.dtype.program not in TYPES:
        raise Error(f"register_load: src is {view!r}; expected one element in SBUF of {', '.join(TYPES)}")
    dst.number = _recorder.current().number_of(view)


def register_move(dst, imm):
    """Puts a number that Python knows into a register."""
    if not isinstance(dst, Register):
        raise Error(f"register_move: dst is {dst!r}; expected what nisa.register_alloc() gave")
    dst.number = int(imm)
