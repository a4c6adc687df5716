"""Tokens of long streams, derived once and then kept.

They follow from the program and from the sources that derive them. All of it is in the name under
which they are kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.result_cache import STORE, is_used, name_of, sources
from ..program import Program
from ..program_key import program_parts
from .derive_tokens import with_tokens

KIND = "tokens"
FOLDERS = ("base", "isa")


def with_cached_tokens(program: Program) -> Program:
    """What `tokens.with_tokens` gives."""
    if not is_used():
        return with_tokens(program)
    code = program.code.copy()
    code["wait"] = code["post"] = 0
    name = name_of(KIND, sources(FOLDERS), *program_parts(replace(program, code=code)))
    content = STORE.get(name)
    if content is not None and len(content) == 2 * len(code):
        code["wait"], code["post"] = np.frombuffer(content, np.uint8).reshape(2, len(code))
        return replace(program, code=code)
    found = with_tokens(program)
    STORE.put(name, found.code["wait"].tobytes() + found.code["post"].tobytes())
    return found
