"""The types of nki.language, by another name: nki.dtype.bfloat16."""

from nki.language import (
    bfloat16, float8_e3m4, float8_e4m3, float8_e5m2, float16, float32, int8, int16, int32, tfloat32, uint8, uint16,
    uint32)
