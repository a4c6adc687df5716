"""Functions that only compiled functions call, compiled once: together with whoever calls them.

numba optimizes a function with everything that it calls, and makes machine code of that; then it
does the same for its caller, for the caller of that, and so on. Where only the outermost is ever
run, all but the last of this is in vain, and it takes most of the time. numba also compiles a
function anew for each constant that it is called with, which inlining makes use of anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba
import numba.core.codegen
import numba.core.dispatcher

from ..numba_cache import Compiled

unliteral: Compiled = numba.types.unliteral
PYTHON, UNRESOLVED = "_ZN7cpython", ".numba.unresolved$"     # how names of functions begin


@contextmanager
def optimize_once(outermost: str) -> Iterator[None]:
    """Inside, what Python cannot call stays as numba translates it, but for the outermost, which
    is optimized. There is no machine code of either. Arguments are constants to nobody."""
    library: Compiled = numba.core.codegen.JITCodeLibrary
    codegen: Compiled = numba.core.codegen.JITCPUCodegen
    optimize, finish = library._optimize_final_module, library._finalize_final_module
    dispatcher: Compiled = numba.core.dispatcher._DispatcherBase
    set_environment, find = codegen.set_env, dispatcher.get_call_template

    def optimize_last(self: Compiled) -> None:
        if _runs_here(self) or outermost in self.name:
            optimize(self)

    def finish_early(self: Compiled) -> None:
        if _runs_here(self):
            finish(self)
        else:
            self._finalize_dynamic_globals()
            self._finalized = True

    def set_where_it_is(self: Compiled, name: str, environment: object) -> None:
        if self._engine.get_global_value_address(name):
            set_environment(self, name, environment)

    def find_without_constants(self: Compiled, given: Compiled, named: Compiled) -> Compiled:
        return find(self, tuple(map(unliteral, given)),
                    {name: unliteral(each) for name, each in dict(named).items()})

    library._optimize_final_module, library._finalize_final_module = optimize_last, finish_early
    codegen.set_env, dispatcher.get_call_template = set_where_it_is, find_without_constants
    try:
        yield
    finally:
        library._optimize_final_module, library._finalize_final_module = optimize, finish
        codegen.set_env, dispatcher.get_call_template = set_environment, find


def _runs_here(library: Compiled) -> bool:
    """Whether Python can call one of the functions, or some other function is still to come."""
    return any(each.name.startswith((PYTHON, UNRESOLVED))
               for each in library._final_module.functions)
