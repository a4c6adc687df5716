"""Numbers that users hand to a model, or get from it: checked, quantized, and real again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...base.checked_values import list_names, quote, show_name
from ...base.errors import MicrotronError
from ...compiler.graph.operation import Value
from ...compiler.graph.operations.pointwise.quantize import Dequantize, Quantize
from ...compiler.graph.types import Array, TensorType

REAL = ("float32", "float64", "float16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")


class InputError(MicrotronError):
    """What was given to a model is not what it takes."""


def convert_inputs(types: Mapping[str, TensorType], given: object, *,
                   allow_nan: bool = False) -> dict[str, Array]:
    """The inputs of a model, as arrays of exactly its types that nobody else can change.

    `given` has them by name; the only input of a model may also be given alone. Real numbers for
    integers with a scale become such integers. NaN is refused unless `allow_nan`: results would
    look like any others. Infinities are numbers, as masks have them.
    """
    if not isinstance(given, Mapping):
        if len(types) != 1:
            raise InputError(f"inputs are {quote(given)}, but must be a mapping from names to "
                             f"arrays: the model has {_list_inputs(types)}")
        given = {next(iter(types)): given}
    for name in given:
        if name not in types:
            raise InputError(f"there is no input {show_name(name)}; the model has "
                             f"{_list_inputs(types)}")
    for name, type_ in types.items():
        if name not in given:
            raise InputError(f"the input {show_name(name)} ({type_.plain()}) is not given")
    places = {name: f"input {show_name(name)}" for name in types}
    found = {name: convert(places[name], as_array(places[name], given[name]), type_)
             for name, type_ in types.items()}
    if not allow_nan:
        for name, array in found.items():
            refuse_nan(f"input {show_name(name)}", array)
    return found


def refuse_nan(place: str, array: Array) -> None:
    """Refuse an array with NaN, and say where."""
    if array.dtype.kind == "f" and (nan := np.isnan(array)).any():
        raise InputError(f"{place} holds NaN at {_first(nan)}, {np.count_nonzero(nan):,} of "
                         f"{array.size:,} numbers; allow_nan=True, or --allow-nan, computes with "
                         f"it")


def _first(wrong: Array) -> list[int]:
    """Where the first wrong number is."""
    return [int(index) for index in np.unravel_index(int(np.argmax(wrong)), wrong.shape)]


def _list_inputs(types: Mapping[str, TensorType]) -> str:
    return list_names([f"{show_name(name)} ({type_.plain()})" for name,
                       type_ in types.items()]) or "none"


def as_array(place: str, value: object) -> Array:
    """Anything that is an array, or says how it becomes one."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
    except Exception as error:          # of whatever library made it
        raise InputError(f"{place}: {type(value).__name__} gives no array: "
                         f"{' '.join(str(error).split())}") from None
    raise InputError(f"{place} is {quote(value)}, but must be an array, of NumPy or anything with "
                     f"__dlpack__ or __array__")


def accepted_types(type_: TensorType) -> tuple[str, ...]:
    """The types of numbers that are taken for a tensor, its own first: `convert` converts them."""
    if type_.is_quantized or type_.is_float:
        return tuple(dict.fromkeys((type_.dtype, *REAL)))
    if type_.is_integer:
        return (type_.dtype, *(each for each in INTEGERS
                               if each != type_.dtype and np.can_cast(each, type_.dtype)))
    return (type_.dtype,)


def convert(place: str, array: Array, type_: TensorType) -> Array:
    """An array in the type of a tensor, copied."""
    if array.shape != type_.shape:
        raise InputError(f"{place} has shape {array.shape}, but must have {type_.shape}")
    if array.dtype == np.dtype(type_.dtype):
        return np.array(array, type_.dtype, order="C")
    if array.dtype.kind == "f" and type_.is_quantized:
        return _quantize(place, array, type_)
    if array.dtype.kind == "f" and type_.is_float:
        return _convert_floats(place, array, type_.dtype)
    if array.dtype.newbyteorder("=").name in accepted_types(type_):
        return np.array(array, type_.dtype, order="C")
    other = " or real numbers" if type_.is_quantized else ""
    raise InputError(f"{place} is {array.dtype}, but must be {type_.dtype}{other}")


def _convert_floats(place: str, array: Array, dtype: str) -> Array:
    """Floats of another type, which has room for all of them."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.array(array, dtype, order="C")
    lost = np.isinf(found) & np.isfinite(array)
    if lost.any():
        raise InputError(f"{place} holds {array[lost][0]} at {_first(lost)}, which is too large "
                         f"for {dtype}")
    return found


def _quantize(place: str, array: Array, type_: TensorType) -> Array:
    """Integers that stand for real numbers; ties go to even, and what is too large is the largest
    there is."""
    if (nan := np.isnan(array)).any():
        raise InputError(f"{place} holds NaN at {_first(nan)}, which no integer stands for")
    real = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    with np.errstate(over="ignore"):            # infinities are numbers too, and saturate
        rounded = Quantize(x="").compute(
            type_, Value(TensorType(real.shape, str(real.dtype)), real))
    return rounded.astype(type_.dtype)


def real(array: Array, type_: TensorType) -> Array:
    """The real numbers that a tensor stands for; the numbers themselves, if it has no scale."""
    if not type_.is_quantized:
        return array
    return np.asarray(Dequantize(x="").compute(TensorType(type_.shape, "float32"),
                                               Value(type_, array)), np.float32)
