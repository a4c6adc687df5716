"""Turns an LLVM module into machine code, for this processor or another, and loads it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import llvmlite
import llvmlite.binding as llvm

from .errors import MicrotronError
from .processor import Target, host

Machine: TypeAlias = Any            # of llvmlite, which has no types
SPEED = 3                           # LLVM's -O3
MAGIC = b"\x7fELF\x02\x01"          # of an object file: 64 bits, the least significant byte first
SYMBOLS = 2                         # the type of a section
GLOBAL, WEAK = 1, 2                 # bindings


def describe_target(target: Target) -> str:
    """What machine code depends on besides its source: the processor and this LLVM."""
    return "\n".join((target.triple, target.cpu, target.features, target.abi,
                      llvmlite.__version__))


def object_file(text: str, target: Target | None = None, *, unroll: bool = True,
                optimize: bool = True) -> bytes:
    """A module, optimized for a processor, by default this one, as an object file. Whoever has
    unrolled loops as they should be saves half of the time without `unroll`."""
    machine = _shared_machine(target or host(), SPEED if optimize else 0)
    module = _parse_module(text, target or host(), machine)
    if optimize:
        _optimize(module, machine, unroll)
    code: bytes = machine.emit_object(module)
    return code


def assemble(text: str) -> bytes:
    """A module that somebody has optimized, as an object file for this processor."""
    machine = _shared_machine(host(), SPEED)
    code: bytes = machine.emit_object(_parse_module(text, host(), machine))
    return code


def assembly(text: str, target: Target | None = None, *, unroll: bool = True) -> str:
    """The same to read."""
    machine = _machine(target or host())
    module = _parse_module(text, target or host(), machine)
    _optimize(module, machine, unroll)
    lines: str = machine.emit_assembly(module)
    return lines


class Library:
    """Functions of object files for this processor, which may call each other. They live as long
    as this object, or one of the functions, does."""

    def __init__(self, *code: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(host()))
        _check_names(code)
        for each in code:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(each))
        self._engine.finalize_object()

    def function(self, name: str, result: type | None, *arguments: type) -> Any:
        """A function, given the types that ctypes has for its result and arguments. While it runs,
        other Python threads can, too."""
        function = ctypes.CFUNCTYPE(result, *arguments)(self.address(name))
        function.library = self     # type: ignore[attr-defined]
        return function

    def address(self, name: str) -> int:
        """Where a function is."""
        address: int = self._engine.get_function_address(name)
        if not address:
            raise KeyError(name)
        return address


def _check_names(code: tuple[bytes, ...]) -> None:
    """Refuse code that calls what is nowhere: LLVM would make it a jump to address 0."""
    names = [names_of(each) for each in code]
    defined = {name for each, _ in names for name in each}
    for name in sorted({name for _, needed in names for name in needed} - defined):
        if llvm.address_of_symbol(name) is None:
            raise MicrotronError(f"machine code needs a function {name}, which this process does "
                                 f"not have; please report this with the model")


def _parse_module(text: str, target: Target, machine: Machine) -> Any:
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    module.verify()
    return module


def _optimize(module: object, machine: Machine, unroll: bool) -> None:
    options = llvm.create_pipeline_tuning_options(SPEED)
    if not unroll:
        options.loop_unrolling = options.slp_vectorization = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


@cache
def _shared_machine(target: Target, speed: int) -> Machine:
    """One that nobody takes: whoever loads code needs one for itself."""
    return _machine(target, speed)


def _machine(target: Target, speed: int = SPEED) -> Machine:
    if target == host():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=speed, reloc=target.relocation,
        codemodel=target.code_model, jit=target.code_model == "jitdefault", abiname=target.abi)


def names_of(code: bytes) -> tuple[set[str], set[str]]:
    """What an object file defines for others, and what it needs. Other formats than ELF of 64 bits,
    which hosts here have, say nothing."""
    defined: set[str] = set()
    needed: set[str] = set()
    if code[:len(MAGIC)] == MAGIC:
        for name, binding, section in _symbols(code):
            if section and binding in (GLOBAL, WEAK):
                defined.add(name)
            elif not section and binding == GLOBAL and name:
                needed.add(name)
    return defined, needed


def _symbols(code: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, binding and number of the section of each symbol; no section has what is missing."""
    start, = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + place * size)
                for place in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == SYMBOLS:
            texts = sections[link][4]
            for place in range(offset, offset + length, 24):
                name, info, _, section = struct.unpack_from("<IBBH", code, place)
                end = code.index(b"\0", texts + name)
                yield code[texts + name:end].decode(), info >> 4, section
