"""The start of an instruction: the cycle in which an engine takes its command and its tokens."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.wiring import Component

from ..isa.instructions import Instruction
from .layouts import unpack


def start_next(m: Module, engine: Component, able: Value, wait: Value | None = None,
               position: Value | None = None, closed: Value | None = None) -> Signal:
    """Start the next instruction once the engine is `able` to and its tokens are available.

    The cycle in which the result is high is the start: command and tokens are taken in it, and
    `events` tell the control unit. While only tokens are missing, `events.wait` names the engines
    that have yet to post one. `wait` and `position` are the instruction's, for engines that do not
    get whole commands. The tokens of an engine that is `closed` are barred, so that a start need
    not check it.
    """
    command, tokens, events = engine.commands, engine.tokens, engine.events
    if wait is None:
        wait = unpack(Instruction, command.payload.word).wait
        position = command.payload.position
    could_start, starts, takes = Signal(), Signal(), Signal()
    m.d.comb += [
        tokens.wait.eq(Mux(command.valid, wait, 0)),
        could_start.eq(command.valid & able & (1 if closed is None else ~closed)),
        takes.eq(able & tokens.granted),
        starts.eq(command.valid & takes),
        # `ready` need not depend on whether there is a command, and without one no tokens are
        # taken.
        command.ready.eq(takes),
        tokens.take.eq(takes),
        events.start.eq(starts),
        events.start_position.eq(position),
        events.wait.eq(Mux(could_start, tokens.missing, 0)),
    ]
    return starts
