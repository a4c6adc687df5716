"""Turns an LLVM module into machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

import llvmlite
import llvmlite.binding as llvm

Target: TypeAlias = Any             # of llvmlite, which has no types
SPEED = 3                           # LLVM's -O3


def processor() -> str:
    """What machine code depends on besides its source: this processor and this LLVM."""
    return "\n".join((llvm.get_process_triple(), llvm.get_host_cpu_name(),
                      llvm.get_host_cpu_features().flatten(), llvmlite.__version__))


def object_file(text: str) -> bytes:
    """A module, optimized for this processor, as an object file."""
    target, module = _target(), llvm.parse_assembly(text)
    module.verify()
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(SPEED))
    passes.getModulePassManager().run(module, passes)
    code: bytes = target.emit_object(module)
    return code


def loaded(code: bytes, name: str) -> Callable[[int], int]:
    """A function in an object file, which takes an address and returns a number. While it runs,
    other Python threads can, too."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _alive.append(engine)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address(name))


def _target() -> Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=SPEED,
        codemodel="jitdefault", jit=True)


_alive: list[Any] = []              # what holds code that is in use
