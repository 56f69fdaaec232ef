"""Types of elements: the names that nki.language, programs and numpy have for each."""

import numpy

from nki._errors import Error


class DType:
    """Equal to another spelling of the same type: nl.float32 == numpy.float32 == "float32"."""

    def __init__(self, name, program, native):
        self.name = name
        self.program = program  # in a program's text
        self.native = native and numpy.dtype(native)  # None: numpy has no such type

    @property
    def dtype(self):
        """numpy's type, so that numpy takes nl.float32 for one; ml_dtypes' where numpy has none. A tfloat32 is a float32."""
        if self.native is not None:
            return self.native
        if self.name == "tfloat32":
            return numpy.dtype("float32")
        import ml_dtypes  # numpy alone is enough for kernels
        return numpy.dtype(getattr(ml_dtypes, self.name))

    def __repr__(self):
        return f"nl.{self.name}"

    def __str__(self):
        return self.name

    def __eq__(self, other):
        return self is BY_NAME.get(name_of(other))

    def __hash__(self):
        return hash(self.name)


def name_of(dtype):
    """"float32" of nl.float32, numpy.float32, numpy.dtype("float32"), ml_dtypes' types and the name itself."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, DType):
        return dtype.name
    try:
        return numpy.dtype(dtype).name
    except TypeError:
        return getattr(dtype, "__name__", repr(dtype))


ALL = [DType(*names) for names in (
    ("uint8", "uint8", "uint8"), ("int8", "int8", "int8"), ("uint16", "uint16", "uint16"), ("int16", "int16", "int16"),
    ("uint32", "uint32", "uint32"), ("int32", "int32", "int32"), ("float32", "fp32", "float32"),
    ("float16", "fp16", "float16"), ("bfloat16", "bf16", None), ("float8_e3m4", "fp8_e3m4", None),
    ("float8_e4m3", "fp8_e4m3", None), ("float8_e5m2", "fp8_e5m2", None), ("tfloat32", "fp32r", None))]
BY_NAME = {dtype.name: dtype for dtype in ALL}


def find(dtype):
    """The DType of any spelling."""
    if isinstance(dtype, DType):
        return dtype
    found = BY_NAME.get(name_of(dtype))
    if found is None:
        raise Error(f"there is no type {name_of(dtype)}; there are {', '.join(BY_NAME)}")
    return found
