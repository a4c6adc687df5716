"""The functions of kernels in memory: compiled together, kept between runs, loaded once.

A module takes LLVM some milliseconds besides its functions, so that all functions that a part lacks
are compiled as one. For each function, the cache says which module has it: other parts have some of
the same functions, in another company.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakValueDictionary

from ...base.cache import CODE, cache_key
from ...base.classes.dataclass import dataclass
from ...base.machine_code import Library, describe_target, object_file
from ...base.processor import host
from ...compiler.cpu.code.emit_kernel import Module
from ...compiler.cpu.code.sharing import digest

FUNCTION, MODULE = "kernel", "kernels"          # names in the cache


@dataclass(frozen=True, eq=False)
class Function:
    """Code in memory, as long as somebody has this."""

    address: int
    library: Library


LOADED: WeakValueDictionary[tuple[str, bool], Function] = WeakValueDictionary()


def functions_of(module: Module, *, optimize: bool = True) -> dict[str, Function]:
    """All functions of a module for this processor, by name. What several parts have is in memory
    once."""
    functions = {name: known for name in module.functions()
                 if (known := LOADED.get((name, optimize))) is not None}
    missing = [name for name in module.functions() if name not in functions]
    for code, names in _objects(module, missing, optimize):
        library = Library(code)
        for name in names:
            functions[name] = LOADED[name, optimize] = Function(library.address(name), library)
    return functions


def _objects(module: Module, names: Sequence[str],
             optimize: bool) -> Iterator[tuple[bytes, list[str]]]:
    """Object files that have these functions between them, each with its own."""
    setting = f"{describe_target(host())}\n{optimize}\n{digest()}"
    places: dict[str, list[str]] = {}
    missing = []
    for name in names:
        place = CODE.get(cache_key(FUNCTION, name, setting))
        if place is None:
            missing.append(name)
        else:
            places.setdefault(place.decode(), []).append(name)
    for key, there in places.items():
        code = CODE.get(key)
        if code is None:                # lost or damaged
            missing += there
        else:
            yield code, there
    if missing:
        yield _compile(module, missing, setting, optimize), missing


def _compile(module: Module, names: Sequence[str], setting: str, optimize: bool) -> bytes:
    text = module.text_of(names)
    code = object_file(text, unroll=False, optimize=optimize)
    key = cache_key(MODULE, text, setting)
    if CODE.put(key, code):
        for name in names:
            CODE.put(cache_key(FUNCTION, name, setting), key.encode())
    return code
