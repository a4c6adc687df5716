"""Twin of hw.fetch.command_queue: the command queue of an engine, and also the buffer of FETCH.

The contents of a queue follow from the program: the commands of its engine in order, from number
`taken` on. The head is in a register and `ready`; `inner` are behind it, and one may be `entering`.
The `position` of the head in the program, and the engines that it must `wait` for, are recorded
when it arrives.
"""

from __future__ import annotations

from ..record_types import Code, Numbers, Unit, Wires
from ..registers import Registers, inline

REGISTERS = Registers(noted=("ready", "inner", "taken", "entering", "position", "wait"))


@inline
def is_empty(queue: Unit) -> bool:
    return queue.ready | queue.entering == 0


@inline
def has_room(queue: Unit, depth: int) -> bool:
    return queue.ready + queue.inner + queue.entering != depth


@inline
def step(queue: Unit, put: int, take: int) -> bool:
    """`put`: a command enters; there must be room for it. `take`: the head leaves. Returns whether
    there may be a new head."""
    if put == 0 and take == 0:
        return False
    if queue.ready and not take:
        queue.inner += put
    elif queue.inner:
        queue.inner += put - 1
    else:
        queue.ready = put
    queue.taken += take
    return True


@inline
def step_of(engine: int, queue: Unit, wires: Wires, put_to: int, started: int,
            positions: Numbers, code: Code) -> None:
    """The command queue of an engine, which takes the head when it starts."""
    entered = queue.entering
    queue.entering = put_to == engine
    if step(queue, entered, started >= 0):
        wires.hard = 1
        queue.position = positions[engine, queue.taken]
        queue.wait = code[queue.position].wait


@inline
def settle(queue: Unit) -> None:
    """Let a command enter at once that is not the head: nobody can tell before it is."""
    if queue.entering and queue.ready:
        queue.inner += 1
        queue.entering = 0
