"""PlainData inside an HTML page: JSON that cannot end its script, and arrays as deflated base64."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np

from ..base.arrays import Array
from ..base.checked_values import PlainData

LEVEL = 6                   # of zlib: more is slower and hardly smaller
INT32 = np.iinfo(np.int32)


def encode_array(values: Array, *, delta: bool = False) -> PlainData:
    """An array of integers for `decodeArray` in assets/data.js.

    32-bit numbers are cut into planes of bytes, lowest first: most high bytes are zero and deflate
    to nothing. With `delta`, each number is the difference from the one before. Numbers that need
    more than 32 bits become doubles.
    """
    numbers = np.ascontiguousarray(values).ravel()
    if numbers.dtype == np.uint8 and not delta:
        return {"kind": "u8", "count": len(numbers), "data": _deflate(numbers.tobytes())}
    numbers = numbers.astype(np.int64)
    if delta:
        numbers = np.diff(numbers, prepend=0)
    if len(numbers) and not INT32.min <= numbers.min() <= numbers.max() <= INT32.max:
        doubles = np.cumsum(numbers) if delta else numbers
        return {"kind": "f64", "count": len(numbers),
                "data": _deflate(doubles.astype("<f8").tobytes())}
    planes = numbers.astype("<i4").view(np.uint8).reshape(-1, 4).T
    return {"kind": "d32" if delta else "i32", "count": len(numbers),
            "data": _deflate(np.ascontiguousarray(planes).tobytes())}


def _deflate(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, LEVEL)).decode("ascii")


def encode_json(data: PlainData) -> str:
    """JSON for a script element. `<` is the only character that could end the element or open a
    comment in it; the two line ends are no white space in older scripts."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
