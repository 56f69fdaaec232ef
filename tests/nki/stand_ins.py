"""Modules that stand in for those a checkout imports and this Python has not: torch, an orchestrator of tests, pytest.

Importing such a module works, so that a file of kernels can be read that mentions it. Whoever needs a value of the module
(a truth, a number, an array) gets Needs, which names the module. pytest is played to the part that parametrised tests use.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

TESTS = ("test.", "tests.")
HARNESS = ("test.utils.test_orchestrator", "test.utils.host_management")  # of nki-library: they reach for machines
REAL = ("nki", "neuronxcc.nki", "numpy", "ml_dtypes", "scipy")  # nothing stands in for these


class Needs(ImportError):
    """A value of a module that is not installed is needed."""


def is_decorated(value):
    """Whether a callable with this one argument is used as a decorator: a type of numbers is an argument like others."""
    if isinstance(value, type):
        return value.__module__.split(".")[0] not in ("builtins", "numpy", "ml_dtypes", "nki")
    return isinstance(value, types.FunctionType)


class Absent:
    """A value of a module that is not installed. It may be named, called, inherited from and used as a decorator."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __setattr__(self, name, value):
        pass

    def __call__(self, *arguments, **options):
        if len(arguments) == 1 and not options and is_decorated(arguments[0]):
            return arguments[0]
        return Absent(self._name)

    def __mro_entries__(self, bases):
        return ()

    def __instancecheck__(self, instance):
        return False

    def __getitem__(self, key):
        return self

    def __eq__(self, other):
        return isinstance(other, Absent) and self._name == other._name

    def __hash__(self):
        return hash(self._name)

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def _needed(self, *_, **__):
        raise Needs(f"needs {self._name.split('.')[0]}")


for operator in ("bool len iter next int float index complex contains array lt le gt ge add radd sub rsub mul rmul truediv "
                 "rtruediv floordiv mod pow matmul neg abs invert setitem delitem").split():
    setattr(Absent, f"__{operator}__", Absent._needed)


class AbsentModule(types.ModuleType):
    __path__ = []
    __version__ = "0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds each module that the checkout imports and nobody else has found, but for Python's own and those of `own`, the
    checkout's top-level names: of these only helpers of tests may be missing.
    """

    def __init__(self, checkout, own):
        self.checkout, self.own = f"{checkout}/", own

    def is_asked_by_checkout(self):
        frame = sys._getframe(2)
        while frame and ("importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(self.checkout)

    def find_spec(self, name, path=None, target=None):
        if name in REAL or name.startswith("neuronxcc.nki."):
            raise Needs(f"needs {name}", name=name)
        top = name.split(".")[0]
        if not self.is_asked_by_checkout() or top in sys.stdlib_module_names or (top in self.own and not name.startswith(TESTS)):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        pass


class Skipped(Exception):
    """The test, as pytest, leaves this case out."""


class Param:
    def __init__(self, *values, id=None, marks=()):
        self.values = values
        self.marks = marks if isinstance(marks, (list, tuple)) else [marks]

    def left_out(self):
        return any(mark.name in ("skip", "skipif", "xfail") for mark in self.marks)


class Mark:
    """pytest.mark.NAME, with arguments and without, and the decorator."""

    def __init__(self, name, arguments=(), options=None):
        self.name, self.args, self.kwargs = name, arguments, options or {}

    def __call__(self, *arguments, **options):
        if not options and len(arguments) == 1 and isinstance(arguments[0], (type, types.FunctionType)):
            arguments[0].pytestmark = [*getattr(arguments[0], "pytestmark", []), self]
            return arguments[0]
        return Mark(self.name, arguments, options)


class Marks:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Mark(name)


def fixture(function=None, **options):
    def mark(made):
        made.is_fixture = True
        return made
    return mark if function is None else mark(function)


@contextlib.contextmanager
def raises(expected, match=None):
    caught = types.SimpleNamespace(value=None, type=expected)
    try:
        yield caught
    except expected as error:
        caught.value = error
    else:
        raise AssertionError(f"{expected} was not raised")


def skip(reason="", **_):
    raise Skipped(reason)


def importorskip(name, *_, **__):
    raise Skipped(f"needs {name}")


def pytest_module():
    module = AbsentModule("pytest")
    vars(module).update(mark=Marks(), param=Param, fixture=fixture, raises=raises, skip=skip, xfail=skip, fail=skip,
                        importorskip=importorskip)
    return module


def neuron_dtypes_module():
    """AWS's neuron_dtypes, to the part that tests of kernels use: types of ml_dtypes, by name or as they are."""
    import numpy
    module = AbsentModule("neuron_dtypes")
    with contextlib.suppress(ImportError):
        import ml_dtypes
        vars(module).update({name: getattr(ml_dtypes, name) for name in dir(ml_dtypes) if not name.startswith("_")})

    def numpys(dtype):
        name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
        return numpy.dtype(vars(module).get(name, name))

    def is_float_type(dtype):
        return numpys(dtype).kind == "f" or numpys(dtype).name in vars(module)

    vars(module).update(is_float_type=is_float_type, sizeinbytes=lambda dtype: numpys(dtype).itemsize,
                        static_cast=lambda array, dtype, **_: numpy.asarray(array).astype(numpys(dtype)))
    return module


def install(checkout, own):
    """To be called once, before foreign code is imported."""
    if importlib.util.find_spec("neuron_dtypes") is None:
        sys.modules["neuron_dtypes"] = neuron_dtypes_module()
    sys.modules["pytest"] = pytest_module()
    sys.modules.update({name: AbsentModule(name) for name in HARNESS})
    sys.meta_path.append(Finder(checkout, own))
