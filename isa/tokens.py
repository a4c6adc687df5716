"""Tokens from data: the waits and posts that a stream needs, and no others.

For each instruction in program order, the walk of `ordering` finds the last conflicting
instruction of every other engine. Where the order is not already implied by earlier tokens, that
instruction posts and this one waits. Requirements of one engine towards another only grow, so
posts and waits pair up in order, as counters without identity demand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .errors import ExecutionError, VerificationError
from .layout import prepare
from .program import Program


def with_tokens(program: Program) -> Program:
    """The program with its waits and posts replaced by those that its data demand.

        load.inp sram=0            load.inp sram=0        post=gemm
        load.inp sram=16           load.inp sram=16       post=gemm
        gemm     (reads inp 0)  →  gemm     wait=load
        gemm     (reads inp 16)    gemm     wait=load
    """
    from .ordering import DONE, new_order, walk

    code = program.code.copy()
    code["wait"] = code["post"] = 0
    program = replace(program, code=code)
    try:
        layout = prepare(program)
    except ExecutionError as error:
        raise VerificationError(str(error)) from None
    end, position, _ = walk(layout.code, layout.shadow, new_order(len(code), 0), True)
    if end != DONE:
        raise VerificationError(layout.why_outside(program, position))
    code["wait"] = layout.code.wait.astype(np.uint8)
    code["post"] = layout.code.post.astype(np.uint8)
    return program
