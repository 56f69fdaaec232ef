"""Types of results."""

import re

from nki import _dtypes
from nki._dtypes import BY_NAME


def find(dtype):
    return None if dtype is None else _dtypes.find(dtype)


def promoted(one, other):
    """The type of a result of two types: a floating point one before integers, the wider one, float32 for bf16 and fp16."""
    if one == other:
        return one
    floats = [dtype for dtype in (one, other) if "float" in dtype.name] or [one, other]
    widths = [int(re.search(r"\d+", dtype.name)[0]) for dtype in floats]
    if len(floats) == 1 or widths[0] != widths[1]:
        return floats[widths.index(max(widths))]
    return BY_NAME["float32" if "float" in one.name else "int32"]
