"""One instruction of a program: how calls of nki.isa say operands and options."""

import operator

import numpy

from nki._errors import Error, refuse_options
from nki._recorder import current, operand
from nki._views import NkiTensor
from nki.isa import constants

OPERATORS = """add subtract multiply maximum minimum power abs_max abs_min equal not_equal greater greater_equal less
    less_equal logical_and logical_or logical_xor abs square relu rsqrt reciprocal bitwise_and bitwise_or bitwise_xor invert
    left_shift right_shift""".split()
BITS = OPERATORS[OPERATORS.index("bitwise_and"):]
OTHER_NAMES = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add", "absolute": "abs"}


def named(op):
    """The program's name of an operator or a function of nki.language or numpy; nl.max reduces by maximum."""
    name = op if isinstance(op, str) else getattr(op, "__name__", repr(op))
    return OTHER_NAMES.get(name, name)


def _number(value, name, function, exact):
    """The text of a number as fp32; `exact`: fp32 must hold the number as it is."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise Error(f"{function}: {name} is {value!r}; expected a number or a tensor of one element a partition") from None
    with numpy.errstate(over="ignore"):
        rounded = numpy.float32(number)
    if not numpy.isfinite(rounded):
        raise Error(f"{function}: {name} is {value!r}; expected a finite number of fp32")
    if exact and float(rounded) != value:
        raise Error(f"{function}: {name} is {value!r}, which fp32 does not hold; put it into a tensor of integers")
    return str(rounded)


class _Named:
    """An operand that may be left out: NAME=VIEW behind the others."""

    def __init__(self, name, view):
        self.name = name
        self.view = view

    def __getattr__(self, attribute):
        return getattr(self.view, attribute)

    def text(self):
        return f"{self.name}={self.view.text()}"


class Call:
    """The operands and options of one instruction."""

    def __init__(self, function, *read, dst):
        self.function = function
        self.dst = operand(dst, "dst", function)
        self.read = [operand(view, name, function) for name, view in read]
        self.options = ""

    def op(self, allowed=OPERATORS, **ops):
        for name, op in ops.items():
            refuse_options(f"nki.isa.{self.function}", **{name: (named(op), allowed)})
            self.options += f" {name}={named(op)}"

    def words(self, **words):
        self.options += "".join(f" {name}" for name, given in words.items() if given)

    def numbers(self, name, numbers):
        """An option of whole numbers."""
        try:
            self.options += f" {name}={','.join(str(operator.index(number)) for number in numbers)}"
        except TypeError:
            raise Error(f"{self.function}: {name} is {numbers!r}; expected whole numbers") from None

    def tensor(self, name, view):
        self.read.append(_Named(name, operand(view, name, self.function)))

    def scalar(self, name, value, exact=False, default=None):
        """A number, or a tensor of one element in each partition."""
        if isinstance(value, NkiTensor):
            self.tensor(name, value)
        elif value is not None and value != default:
            self.options += f" {name}={_number(value, name, self.function, exact)}"

    def on(self, engine):
        """Without a chosen engine the program's default."""
        if engine is None or engine is constants.engine.unknown:
            return
        if not isinstance(engine, constants.engine):
            raise Error(f"{self.function}: engine is {engine!r}; expected one of nki.isa.engine")
        self.options += f" engine={engine.name}"

    def record(self, engine=None):
        self.on(engine)
        current().instruction(self.function, self.dst, self.read, self.options)
