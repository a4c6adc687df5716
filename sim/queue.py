"""Twin of hw.queue: the command queue of an engine, and the buffer of FETCH, which is one too.

What a queue holds is known from the program: the commands of its engine in order, from the
`taken`-th on. Its levels are those of Amaranth's buffered FIFO: a memory, and a register behind it.
"""

from __future__ import annotations

from typing import Any

import numba

from .unit import Registers

REGISTERS = Registers(same=("ready", "inner", "taken"))


@numba.njit(forceinline=True)
def is_empty(queue: Any) -> Any:
    return queue.inner == 0 and queue.ready == 0


@numba.njit(forceinline=True)
def has_room(queue: Any, depth: int) -> Any:
    return queue.inner != depth - 1


@numba.njit(forceinline=True)
def step(queue: Any, put: int, take: int) -> None:
    """`put`: something enters, which there must be room for. `take`: the head leaves."""
    if put == 0 and take == 0 and (queue.inner == 0 or queue.ready != 0):
        return
    moves = queue.inner != 0 and (queue.ready == 0 or take)
    if moves:
        queue.ready = 1
    elif take:
        queue.ready = 0
    queue.inner += put - moves
    queue.taken += take
