"""Twin of hw.alu.alu: when the ALU's instructions start, end, read and write.

Steps wait in `issue`, and the tickets of those in flight in `results`, as in the hardware. A set of
tickets is a bit mask whose bit k is the k-th oldest.
"""

from __future__ import annotations

from ....isa.instructions import PARAMETER_TILES, Engine
from .. import tokens
from ..record_types import Code, Machine, Numbers, Settings, Unit, Wires
from ..registers import Registers, inline
from . import alu_results
from .alu_results import ACC, NOWHERE, OUT

ALU = int(Engine.ALU)

# The loops of the current instruction, with counters that count down; the indices of its operands,
# now and at the start of the inner and the middle loop.
SEQUENCER = Registers(
    same=("running", "of"),
    falling={"inner_left": 2, "middle_left": 2, "outer_left": 2},
    moving=("dst", "dst_of_inner", "dst_of_middle", "lhs", "lhs_of_inner", "lhs_of_middle",
            "rhs", "rhs_of_inner", "rhs_of_middle"))

# The steps on their way to the lanes: described, a spare one behind it, and the front one, each
# with its reads and the tickets it has to wait for. The front one requests when it is `clear`,
# which it is not during the `pause` in which the lanes take the previous vector part by part.
# `delays` counts the cycles in which one of them waited for a ticket.
PLACES = ("front", "next", "spare")
ISSUE = Registers(
    same=(*PLACES, "clear", "pause", "left_read", "right_read", "parameter", "stopped",
          *(f"{place}_{name}" for place in PLACES
            for name in ("before", "reads_left", "reads_right", "fetches"))),
    moving=(*(f"{place}_{name}" for place in PLACES for name in ("left", "right")), "delays"))


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers) -> int:
    """Returns the position of the instruction that starts, or -1."""
    sequencer, issue, results = machine.alu_sequencer, machine.alu_issue, machine.alu_results
    commands, halt = machine.alu_queue, machine.control.halt
    wires.alu_busy = results.begun != 0
    if sequencer.running | results.begun | issue.front == 0:
        return _rest(machine, wires, code)
    issue.delays += (issue.front_before | issue.next_before | issue.spare_before) != 0
    stopped = issue.stopped
    entering = sequencer.running != 0 and issue.spare == 0 and stopped == 0
    fetches, last = False, False
    if sequencer.running:
        row = code[sequencer.of]
        fetches = row.requantize != 0 and issue.parameter != PARAMETER_TILES and _begins(
            sequencer, row)
        last = row.no_work != 0 or (sequencer.inner_left == 1 and sequencer.middle_left == 1
                                    and sequencer.outer_left == 1)
    advance = entering and not fetches
    wires.alu_wait = 0
    started = -1
    if (commands.ready and (sequencer.running == 0 or (advance and last)) and stopped == 0
            and halt == 0):
        missing = tokens.missing_tokens(machine.tokens, ALU, commands.wait)
        wires.alu_wait = missing
        if missing == 0:
            started = int(commands.position)
    issued, taken = _read(issue, wires, results.under_way != alu_results.DEPTH)
    retired = int(alu_results.retire(results, wires, halt))
    issue.pause = config.vector_cycles - 1 if issued else max(0, issue.pause - 1)
    _enter(machine, code, config, entering, fetches, taken, retired, last)
    alu_results.advance(results, int(issued), retired, config.alu_latency)
    if advance:
        _advance(sequencer, code[sequencer.of], last)
    if started >= 0:
        _start(sequencer, code[started], started)
    results.begun += (started >= 0) - (wires.alu_end >= 0)
    return started


@inline
def _rest(machine: Machine, wires: Wires, code: Code) -> int:
    """Nothing is in flight; the next instruction may start."""
    wires.alu_fault, wires.alu_end, wires.alu_wait = 0, -1, 0
    commands = machine.alu_queue
    if commands.ready == 0 or machine.control.halt:
        return -1
    wires.alu_wait = tokens.missing_tokens(machine.tokens, ALU, commands.wait)
    if wires.alu_wait:
        return -1
    _start(machine.alu_sequencer, code[commands.position], commands.position)
    machine.alu_results.begun = 1
    return int(commands.position)


@inline
def wants(reads: int, read: int, issue: Unit) -> bool:
    """Whether the front step requests an operand in this cycle."""
    return issue.clear != 0 and reads != 0 and read == 0


@inline
def _read(issue: Unit, wires: Wires, room: bool) -> tuple[bool, bool]:
    """Issue the front step once all its reads are granted and a ticket is free. Returns whether a
    vector goes to the lanes, and whether the step leaves the front."""
    left = issue.left_read or wires.left_granted
    right = issue.right_read or wires.right_granted
    taken = (issue.clear != 0 and room
             and (issue.front_reads_left == 0 or left != 0)
             and (issue.front_reads_right == 0 or right != 0))
    issue.left_read = left and not taken
    issue.right_read = right and not taken
    return taken and issue.front_fetches == 0, taken


@inline
def _begins(sequencer: Unit, row: Settings) -> bool:
    """Whether the current slot is the first of an outer iteration."""
    return (row.no_work == 0 and sequencer.inner_left == row.inner
            and sequencer.middle_left == row.middle)


@inline
def _enter(machine: Machine, code: Code, config: Settings, entering: bool, fetches: bool,
           taken: bool, retired: int, last: bool) -> None:
    """Describe the next step, with a ticket unless it fetches parameters."""
    sequencer, issue, results = machine.alu_sequencer, machine.alu_issue, machine.alu_results
    reads_left = reads_right = False
    left = right = before = 0
    if entering:
        row = code[sequencer.of]
        writes = row.no_work == 0 and not fetches
        reads_left = row.reads_left != 0 and writes
        reads_right = (row.reads_right != 0 and writes) or fetches
        left, right = sequencer.lhs, sequencer.rhs + issue.parameter
        outside = ((reads_left and not 0 <= left < config.acc_tiles)
                   or (reads_right and not 0 <= right < config.acc_tiles)
                   or (writes and not 0 <= sequencer.dst < (
                       config.out_tiles if row.to_out else config.acc_tiles)))
        reads_left, reads_right = reads_left and not outside, reads_right and not outside
        before = alu_results.writes_to(results, reads_left, left, reads_right, right, retired)
        if not fetches or outside:
            kind = (OUT if row.to_out else ACC) if writes and not outside else NOWHERE
            alu_results.enter(results, sequencer.of, kind, sequencer.dst, last, outside)
        issue.parameter = issue.parameter + 1 if fetches else 0
        issue.stopped = outside
        fetches = fetches and not outside
    to_next = _shift(issue, taken, retired)
    if to_next:
        issue.next = entering
        issue.next_reads_left, issue.next_left = reads_left, left
        issue.next_reads_right, issue.next_right = reads_right, right
        issue.next_fetches, issue.next_before = fetches, before >> retired
    elif entering:
        issue.spare = 1
        issue.spare_reads_left, issue.spare_left = reads_left, left
        issue.spare_reads_right, issue.spare_right = reads_right, right
        issue.spare_fetches, issue.spare_before = fetches, before >> retired


@inline
def _shift(issue: Unit, taken: int, retired: int) -> bool:
    """Move steps up as far as there is room. Returns whether the entering one becomes the next one.
    Writes of this cycle take effect in the next."""
    moves = issue.front == 0 or taken
    if moves:
        issue.front = issue.next
        issue.clear = issue.next != 0 and issue.next_before == 0 and issue.pause == 0
        issue.front_reads_left, issue.front_left = issue.next_reads_left, issue.next_left
        issue.front_reads_right, issue.front_right = issue.next_reads_right, issue.next_right
        issue.front_fetches, issue.front_before = issue.next_fetches, issue.next_before >> retired
    else:
        issue.clear = issue.front_before == 0 and issue.pause == 0
        issue.front_before >>= retired
        issue.next_before >>= retired
    issue.spare_before >>= retired
    if not moves and issue.next != 0:
        return False
    if issue.spare == 0:
        return True
    issue.next, issue.spare = 1, 0
    issue.next_reads_left, issue.next_left = issue.spare_reads_left, issue.spare_left
    issue.next_reads_right, issue.next_right = issue.spare_reads_right, issue.spare_right
    issue.next_fetches, issue.next_before = issue.spare_fetches, issue.spare_before
    issue.spare_before = 0
    return False


@inline
def _start(sequencer: Unit, row: Settings, position: int) -> None:
    sequencer.running, sequencer.of = 1, position
    sequencer.outer_left, sequencer.middle_left = row.outer, row.middle
    sequencer.inner_left = row.inner
    sequencer.dst = sequencer.dst_of_inner = sequencer.dst_of_middle = row.dst
    sequencer.lhs = sequencer.lhs_of_inner = sequencer.lhs_of_middle = row.lhs
    sequencer.rhs = sequencer.rhs_of_inner = sequencer.rhs_of_middle = row.rhs


@inline
def _advance(sequencer: Unit, row: Settings, last: int) -> None:
    """Advance to the next slot."""
    if last:
        sequencer.running = 0
    elif sequencer.inner_left > 1:
        sequencer.inner_left -= 1
        sequencer.dst += row.dst_inner
        sequencer.lhs += row.lhs_inner
        sequencer.rhs += row.rhs_inner
    elif sequencer.middle_left > 1:
        sequencer.middle_left -= 1
        sequencer.inner_left = row.inner
        sequencer.dst = sequencer.dst_of_inner = sequencer.dst_of_inner + row.dst_middle
        sequencer.lhs = sequencer.lhs_of_inner = sequencer.lhs_of_inner + row.lhs_middle
        sequencer.rhs = sequencer.rhs_of_inner = sequencer.rhs_of_inner + row.rhs_middle
    else:
        sequencer.outer_left -= 1
        sequencer.middle_left, sequencer.inner_left = row.middle, row.inner
        dst = sequencer.dst_of_middle + row.dst_outer
        sequencer.dst = sequencer.dst_of_inner = sequencer.dst_of_middle = dst
        lhs = sequencer.lhs_of_middle + row.lhs_outer
        sequencer.lhs = sequencer.lhs_of_inner = sequencer.lhs_of_middle = lhs
        rhs = sequencer.rhs_of_middle + row.rhs_outer
        sequencer.rhs = sequencer.rhs_of_inner = sequencer.rhs_of_middle = rhs
