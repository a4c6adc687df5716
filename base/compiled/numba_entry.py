"""Machine code of a function that takes its arguments as a list of words: numba compiles it.

Importing this module imports numba, which nobody needs who has the machine code already
(`deferred_functions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numba
import numba.core.cgutils
import numba.extending
import numba.np.arrayobj
from llvmlite import ir

from ..machine_code import assemble
from ..numba_cache import Compiled
from .numba_once import optimize_once

NOT_FOR_PYTHON = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

types: Compiled = numba.types
njit: Compiled = numba.njit
typeof: Compiled = numba.typeof
cgutils: Compiled = numba.core.cgutils
arrays: Compiled = numba.np.arrayobj
intrinsic: Compiled = numba.extending.intrinsic
WORD: Compiled = ir.IntType(64)


def compile_entry(function: Callable[..., object], arguments: tuple[object, ...],
                  options: Mapping[str, object]) -> tuple[str, bytes]:
    """An object file, and the name of the function in it that takes the address of words. In front
    of that are two arguments of numba's: where it writes zero, and where an error would be. Results
    are in the words behind the arguments."""
    kinds = types.Tuple([typeof(each) for each in arguments])
    called = njit(**NOT_FOR_PYTHON, **options)(function)
    read, write = _reader(kinds), _writer(sum(_words_in(each) for each in kinds))

    def take_words(address: int) -> int:
        write(address, called(*read(address)))
        return 0

    flat: Compiled = njit(**NOT_FOR_PYTHON, **options)(take_words)
    with optimize_once(take_words.__name__):
        flat.compile((types.int64,))
    found, = flat.overloads.values()
    return found.fndesc.llvm_func_name, assemble(found.library.get_llvm_str())


def _words_in(kind: Compiled) -> int:
    if isinstance(kind, types.BaseTuple):
        return sum(map(_words_in, kind))
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


def _reader(kinds: Compiled) -> Compiled:
    """What makes arguments of these types of the words at an address."""
    def read(typing: Compiled, address: Compiled) -> Compiled:
        def generate(context: Compiled, builder: Compiled, _: Compiled,
                     given: Compiled) -> Compiled:
            words = builder.inttoptr(given[0], WORD.as_pointer())
            return _value(context, builder, kinds, _each_word(builder, words))
        return kinds(types.int64), generate
    return intrinsic(read)


def _each_word(builder: Compiled, words: Compiled) -> Iterator[Compiled]:
    place = 0
    while True:
        yield builder.load(builder.gep(words, [WORD(place)]))
        place += 1


def _value(context: Compiled, builder: Compiled, kind: Compiled,
           words: Iterator[Compiled]) -> Compiled:
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_value(context, builder, each, words)
                                                  for each in kind])
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, words)
    number = next(words)
    if isinstance(kind, types.Boolean):
        return builder.icmp_unsigned("!=", number, WORD(0))
    return context.cast(builder, number, types.int64, kind)


def _array(context: Compiled, builder: Compiled, kind: Compiled,
           words: Iterator[Compiled]) -> Compiled:
    """An array in a row that somebody else holds."""
    made = arrays.make_array(kind)(context, builder)
    address, shape = next(words), [next(words) for _ in range(kind.ndim)]
    size = WORD(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides: list[Compiled] = []
    step = size
    for extent in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, extent)
    arrays.populate_array(
        made, data=builder.inttoptr(address, made.data.type),
        shape=cgutils.pack_array(builder, shape, WORD),
        strides=cgutils.pack_array(builder, strides, WORD), itemsize=size, meminfo=None)
    return made._getvalue()


def _writer(place: int) -> Compiled:
    """What writes a number, or several, behind so many words."""
    def write(typing: Compiled, address: Compiled, result: Compiled) -> Compiled:
        def generate(context: Compiled, builder: Compiled, signature: Compiled,
                     given: Compiled) -> Compiled:
            words, kind = builder.inttoptr(given[0], WORD.as_pointer()), signature.args[1]
            several = isinstance(kind, types.BaseTuple)
            numbers = cgutils.unpack_tuple(builder, given[1]) if several else [given[1]]
            for number, (each, type_) in enumerate(zip(
                    numbers, kind if several else [kind], strict=True)):
                builder.store(context.cast(builder, each, type_, types.int64),
                              builder.gep(words, [WORD(place + number)]))
            return context.get_dummy_value()
        return types.none(types.int64, result), generate
    return intrinsic(write)
