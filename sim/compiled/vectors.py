"""LLVM intrinsics for numba kernels: addresses, vectors, calls.

Kernels that work on tiles compute with addresses, which are plain 64-bit numbers: their inner loops
need no multiplications, and one compiled kernel serves arrays of any shape. Nothing is checked
here. Importing this module imports numba.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import llvmlite.binding
import numba
import numba.core.cgutils
import numba.extending
from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from ...base.numba_cache import enable_cache
from ...base.source_digest import source_number
from .numba_types import (
    Builder,
    Context,
    Function,
    Intrinsic,
    Kernel,
    Kind,
    Library,
    LlvmType,
    Signature,
    Word,
    Words,
)

# numba is only half annotated, which does not help.
Decorator = Callable[[Function], Kernel]
extending: Library = numba.extending
cgutils: Library = numba.core.cgutils
intrinsic: Decorator = extending.intrinsic
intrinsic_of_constants: Decorator = extending.intrinsic(prefer_literal=True)

# For functions that only compiled functions call: no Python wrapper is generated.
njit: Library = numba.njit
plain: Decorator = njit()       # callable from Python too
helper: Decorator = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")

SIMULATOR = "functional simulator"      # name shown while numba compiles


def kernel(function: Function) -> Kernel:
    """Compile a function of arrays and numbers for calls from Python, or load it from numba's
    cache. It releases the GIL."""
    compiled = njit(nogil=True)(function)
    enable_cache(compiled, SIMULATOR)
    return compiled


NUMBER = 8                  # bytes of an address or any other number in a list
I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
ON_ARM = llvmlite.binding.get_default_triple().startswith(("aarch64", "arm64"))


def c_function(function: Function) -> int:
    """The address of a C function that takes two numbers and returns one, compiled or loaded from
    numba's cache.

    numba identifies a compiled function by its name, its text and the values it closes over, as
    long as its file has not changed. It does not notice changes in functions called from other
    files; the digest of sources, which becomes part of the name, covers those.
    """
    function.__qualname__ += f"_{source_number(function.__module__):013x}"
    made = CFunc(function, ((types.int64, types.int64), types.int64), locals={},
                 options={"error_model": "numpy"})
    # These compute with addresses and create no arrays. Their code names numba's memory management
    # all the same; all else that numba prepares to compile takes half a second.
    rtsys.initialize(cpu_target.target_context)
    enable_cache(made, SIMULATOR, needs_numba=False)
    made.compile()
    address = made.address
    assert address is not None
    _alive.append(made)
    return address


@cache
def callable_at(function: int, *, locks: bool = True) -> Callable[[int, int], int]:
    """Such a function as a Python callable. It holds the GIL unless `locks` is False."""
    kind = ctypes.PYFUNCTYPE if locks else ctypes.CFUNCTYPE
    return kind(*[ctypes.c_int64] * 3)(function)


_alive: list[Kernel] = []      # keeps compiled functions alive, whose addresses are in use


def vector(kind: LlvmType, lanes: int) -> LlvmType:
    return ir.VectorType(kind, lanes)


def load(builder: Builder, address: Word, kind: Word, alignment: int = 1) -> Word:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=alignment)


def store(builder: Builder, value: Word, address: Word, alignment: int = 1) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=alignment)


def offset_address(builder: Builder, address: Word, offset: int) -> Word:
    return builder.add(address, I64(offset))


def broadcast(builder: Builder, value: Word, lanes: int) -> Word:
    """A vector with the same number in every lane."""
    first = builder.insert_element(ir.Constant(vector(value.type, lanes), ir.Undefined), value,
                                   I32(0))
    return builder.shuffle_vector(first, first, ir.Constant(vector(I32, lanes), None))


@intrinsic
def number_at(context: Context, address: Kind, place: Kind) -> Intrinsic:
    """An element of a list of 64-bit numbers, given the list's address."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return load(builder, _element(builder, *values), I64, NUMBER)
    return types.int64(types.int64, types.int64), generate


@intrinsic
def is_set(context: Context, address: Kind) -> Intrinsic:
    """Whether a number that another thread may change is nonzero (see `interruptible`)."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        place = builder.inttoptr(values[0], I64.as_pointer())
        number = builder.load_atomic(place, "monotonic", NUMBER)
        return builder.icmp_signed("!=", number, I64(0))
    return types.boolean(types.int64), generate


@intrinsic
def write_number(context: Context, address: Kind, place: Kind, value: Kind) -> Intrinsic:
    """Change an element of such a list."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        store(builder, values[2], _element(builder, *values[:2]), NUMBER)
        return context.get_dummy_value()
    return types.void(types.int64, types.int64, types.int64), generate


def _element(builder: Builder, address: Word, place: Word) -> Word:
    return builder.add(address, builder.mul(place, I64(NUMBER)))


@intrinsic
def call(context: Context, function: Kind, first: Kind, second: Kind) -> Intrinsic:
    """Call the C function at an address, with two numbers. Returns a number."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        kind = ir.FunctionType(I64, [I64, I64])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
    return types.int64(*[types.int64] * 3), generate


@intrinsic
def copy(context: Context, target: Kind, source: Kind, size: Kind) -> Intrinsic:
    """Copy `size` bytes from one address to another. The two must not overlap."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        to, origin = (builder.inttoptr(each, I8.as_pointer()) for each in values[:2])
        cgutils.raw_memcpy(builder, to, origin, values[2], 1)
        return context.get_dummy_value()
    return types.void(*[types.int64] * 3), generate


@intrinsic
def fill(context: Context, target: Kind, value: Kind, size: Kind) -> Intrinsic:
    """Set `size` bytes to a value."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        cgutils.memset(builder, builder.inttoptr(values[0], I8.as_pointer()), values[2],
                       builder.trunc(values[1], I8))
        return context.get_dummy_value()
    return types.void(*[types.int64] * 3), generate


@intrinsic
def half_at(context: Context, address: Kind) -> Intrinsic:
    """The unsigned 16-bit number at an address."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return builder.zext(load(builder, values[0], ir.IntType(16)), I64)
    return types.int64(types.int64), generate


@intrinsic
def byte_at(context: Context, address: Kind) -> Intrinsic:
    """The signed byte at an address."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return builder.sext(load(builder, values[0], I8), I64)
    return types.int64(types.int64), generate


@intrinsic
def write_byte(context: Context, address: Kind, value: Kind) -> Intrinsic:
    """Write the low eight bits of a number."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        store(builder, builder.trunc(values[1], I8), values[0])
        return context.get_dummy_value()
    return types.void(types.int64, types.int64), generate


@intrinsic
def write_lane(context: Context, address: Kind, value: Kind) -> Intrinsic:
    """Write the low 32 bits of a number."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        store(builder, builder.trunc(values[1], I32), values[0])
        return context.get_dummy_value()
    return types.void(types.int64, types.int64), generate
