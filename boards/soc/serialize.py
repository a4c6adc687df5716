"""A board as JSON carries it to the process that has LiteX, and back."""

from __future__ import annotations

import dataclasses

from ...base.checked_values import PlainData
from ...isa.memory_timing import MemoryTiming
from ..facts.board import Board, Clock, Memory, Part, Wire
from ..facts.ethernet import Ethernet


def serialize(board: Board) -> dict[str, object]:
    return dataclasses.asdict(board)


def deserialize(facts: PlainData) -> Board:
    """The board again: a file of it need not be there."""
    memory = dict(facts["memory"])
    if memory["timing"] is not None:
        memory["timing"] = MemoryTiming(**memory["timing"])
    ethernet = facts["ethernet"]
    return Board(**{
        **facts, "ethernet": None if ethernet is None else Ethernet(**ethernet),
        "part": Part(**facts["part"]), "clock": Clock(**facts["clock"]),
        "memory": Memory(**memory),
        "pins": {group: {name: Wire(tuple(wire["places"]), wire["standard"],
                                    tuple(wire["options"])) for name, wire in wires.items()}
                 for group, wires in facts["pins"].items()}})
