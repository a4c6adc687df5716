"""Skips over stretches of cycles in which nothing new happens.

When the registers that are `same` are what they were a few cycles ago, those cycles have been a
period: they repeat until a falling register reaches its floor, and everything moves on in equal
steps (see `unit`). A burst that streams has a period of one cycle, reads and writes that take
turns on the bus one of two. The registers are compared with those of the last cycle, of the one
before, and, for longer periods, with some that are kept anew after a growing number of cycles
(Brent's method).

Tiles of the accumulator are the one thing that moves and is decided by: two engines want the same
bank, or a step of the ALU reads what another is going to write. `safe` sees to it that neither
begins or ends within the stretch.
"""

from __future__ import annotations

from typing import Any

from ..isa.instructions import Engine
from . import gemm
from .alu_results import DEPTH
from .machine import FALLING, MOVING, SAME
from .unit import CHUNK, inlined

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
FOREVER = 1 << 62
BANKS = 8


@inlined
def difference(flat: Any, kept: Any, hint: int) -> Any:
    """Where something is not the same that must be; SAME if everything is. The `hint`, where it
    differed before, is looked at first."""
    place = hint
    if place == SAME or _chunk_is_same(flat, kept, place):
        place = 0
        while place < SAME and _chunk_is_same(flat, kept, place):
            place += CHUNK
    return place


@inlined
def _chunk_is_same(flat: Any, kept: Any, at: int) -> Any:
    """All at once: a branch for each would take longer."""
    return (flat[at] ^ kept[at] | flat[at + 1] ^ kept[at + 1] | flat[at + 2] ^ kept[at + 2]
            | flat[at + 3] ^ kept[at + 3]) == 0


@inlined
def keep(flat: Any, kept: Any) -> None:
    for place in range(MOVING):
        kept[place] = flat[place]


@inlined
def forget(kept: Any) -> None:
    """Let nothing be equal to what was kept."""
    for number in range(len(kept)):
        kept[number, 0] = -1


@inlined
def periods_left(flat: Any, kept: Any, floors: Any) -> Any:
    """How often the period comes again before a falling register is below its floor."""
    times = FOREVER
    for place in range(SAME, FALLING):
        value, step = flat[place], kept[place] - flat[place]
        if step < 0:
            return 0
        if step > 0:            # its last value in a period is one above where the next begins
            times = min(times, max(0, value - floors[place - SAME] + 1) // step)
    return times


@inlined
def skip(machine: Any, kept_machine: Any, flat: Any, kept: Any, code: Any, config: Any,
         positions: Any, floors: Any, most: int) -> Any:
    """Let as many periods pass as nothing new happens in. Returns how many; FOREVER, and lets
    none pass, if nothing ever will."""
    times = periods_left(flat, kept, floors)
    if times == FOREVER:
        return times
    times = min(times, most)
    if times > 0:
        times = safe(machine, kept_machine, code, config, positions, times)
    if times > 0:
        _renew_tickets(machine, kept_machine, times)
        for place in range(SAME, MOVING):
            flat[place] += times * (flat[place] - kept[place])
    return times


@inlined
def safe(machine: Any, kept: Any, code: Any, config: Any, positions: Any, times: int) -> Any:
    """So many periods, or fewer, in which accumulator tiles change nothing; 0 if that is not
    sure."""
    results = machine.alu_results
    if not _moves_evenly(machine, kept) or not _boxes_are_inside(machine, kept, code, positions):
        return 0
    entered = results.entered - kept.alu_results.entered        # in a period
    if entered:
        times = min(times, _same_tickets(results) // entered)
        if times == 0 or not _walks_inside_a_loop(machine, kept, code, entered):
            return 0
        if not _free_of_hazards(machine, kept, code, entered, times * entered):
            return 0
        if not _walks_are_inside(machine, kept, code, config, entered, times * entered):
            return 0
    if not _banks_are_apart(machine, kept, code, config, positions, times):
        return 0
    return times


@inlined
def _moves_evenly(machine: Any, kept: Any) -> Any:
    """Whether copies of tiles move as the tiles they are copied from. They need not yet in the
    first period after a new row or instruction."""
    issue, then = machine.alu_issue, kept.alu_issue
    left = machine.alu_sequencer.lhs - kept.alu_sequencer.lhs
    right = machine.alu_sequencer.rhs - kept.alu_sequencer.rhs
    if issue.front and ((issue.front_reads_left and issue.front_left - then.front_left != left)
                        or (issue.front_reads_right
                            and issue.front_right - then.front_right != right)):
        return False
    if issue.back and ((issue.back_reads_left and issue.back_left - then.back_left != left)
                       or (issue.back_reads_right
                           and issue.back_right - then.back_right != right)):
        return False
    return (machine.load_write.pending == 0 or machine.load_write.at - kept.load_write.at
            == machine.load_steps.at - kept.load_steps.at)


@inlined
def _boxes_are_inside(machine: Any, kept: Any, code: Any, positions: Any) -> Any:
    """Whether no load or store that goes on will reach beyond its scratchpad."""
    if (machine.load_steps.at != kept.load_steps.at and machine.load.queue != 0
            and code[positions[LOAD, machine.load.writing]].inside == 0):
        return False
    return (machine.store_steps.at == kept.store_steps.at or machine.store.queue == 0
            or code[positions[STORE, machine.store.reading]].inside != 0)


@inlined
def _walks_are_inside(machine: Any, kept: Any, code: Any, config: Any, entered: int,
                      steps: int) -> Any:
    """Whether the next steps of the ALU stay in their scratchpads."""
    now, then = machine.alu_sequencer, kept.alu_sequencer
    row, ahead = code[now.of], steps - 1
    dst = now.dst + ahead * ((now.dst - then.dst) // entered)
    lhs = now.lhs + ahead * ((now.lhs - then.lhs) // entered)
    rhs = now.rhs + ahead * ((now.rhs - then.rhs) // entered)
    return (_within(now.dst, dst, config.out_tiles if row.to_out else config.acc_tiles)
            and (row.reads_left == 0 or _within(now.lhs, lhs, config.acc_tiles))
            and (row.reads_right == 0 or _within(now.rhs, rhs, config.acc_tiles)))


@inlined
def _within(one: int, other: int, tiles: int) -> Any:
    return min(one, other) >= 0 and max(one, other) < tiles


@inlined
def _same_tickets(results: Any) -> Any:
    """How many tickets can retire before one that is the last of its instruction or writes
    elsewhere than the others."""
    newest = (results.head + results.tickets - 1) & DEPTH - 1
    for number in range(results.tickets):
        place = (results.head + number) & DEPTH - 1
        if (results.last[place] or results.outside[place]
                or results.kind[place] != results.kind[newest]):
            return number
    return FOREVER


@inlined
def _walks_inside_a_loop(machine: Any, kept: Any, code: Any, entered: int) -> Any:
    """Whether all steps of a period belonged to the same loop, so that strides are equal. An
    outer loop does not count where parameters are read in it."""
    now, then = machine.alu_sequencer, kept.alu_sequencer
    issue = machine.alu_issue
    if issue.front_before or issue.back_before or issue.delays != kept.alu_issue.delays:
        return False            # nor does a period in which a step had to wait for another
    inner = then.inner_left - now.inner_left
    middle = then.middle_left - now.middle_left
    outer = then.outer_left - now.outer_left
    return ((inner == entered and middle == 0 and outer == 0)
            or (inner == 0 and middle == entered and outer == 0 and now.inner_left == 1)
            or (inner == 0 and middle == 0 and outer == entered and now.inner_left == 1
                and now.middle_left == 1 and code[now.of].requantize == 0))


@inlined
def _free_of_hazards(machine: Any, kept: Any, code: Any, entered: int, steps: int) -> Any:
    """Whether no step reads a tile that one before it has yet to write."""
    now, then, results = machine.alu_sequencer, kept.alu_sequencer, machine.alu_results
    row = code[now.of]
    writes_acc = row.to_out == 0
    if results.pending == 0 and not writes_acc:
        return True
    dst_stride = (now.dst - then.dst) // entered
    if row.reads_left and not _clear(results, writes_acc, now.dst, dst_stride, now.lhs,
                                     (now.lhs - then.lhs) // entered, steps):
        return False
    return row.reads_right == 0 or _clear(results, writes_acc, now.dst, dst_stride, now.rhs,
                                          (now.rhs - then.rhs) // entered, steps)


@inlined
def _clear(results: Any, writes_acc: bool, dst: int, dst_stride: int, source: int, stride: int,
           steps: int) -> Any:
    """Whether reads from `source` on meet neither writes under way nor those from `dst` on."""
    low = min(source, source + (steps - 1) * stride)
    high = max(source, source + (steps - 1) * stride)
    for number in range(results.tickets):
        target = results.target[(results.head + number) & DEPTH - 1]
        if results.pending >> number & 1 and low <= target <= high:
            return False
    if not writes_acc:
        return True
    if stride == dst_stride:
        ahead = dst - source            # a hazard if it is a few strides
        if stride == 0:
            return ahead != 0
        return ahead % stride != 0 or not 0 < ahead // stride <= DEPTH
    return (min(dst, dst + (steps - 1) * dst_stride) > high
            or max(dst, dst + (steps - 1) * dst_stride) < low)


@inlined
def _mask(low: int, high: int, config: Any) -> Any:
    """The banks of tiles from `low` to `high`, as a set."""
    return ((2 << min(high // config.acc_bank_tiles, BANKS))
            - (1 << max(low // config.acc_bank_tiles, 0)))


@inlined
def _apart(one: int, other: int) -> Any:
    """Whether two users never meet, or always: both in the same single bank."""
    return one & other == 0 or (one == other and one & one - 1 == 0)


@inlined
def _gemm_banks(engine: Any, config: Any) -> Any:
    mask = 0
    for number in range(engine.in_flight):
        place = (engine.head + number) & gemm.IN_FLIGHT - 1
        if engine.low[place] <= engine.high[place]:
            mask |= _mask(engine.low[place], engine.high[place], config)
    return mask


@inlined
def _swept(now: int, then: int, times: int, config: Any) -> Any:
    """The banks of a walk from the beginning of this period to the end of the last one."""
    end = now + times * (now - then)
    return _mask(min(then, end), max(then, end), config)


@inlined
def _operand_banks(machine: Any, kept: Any, code: Any, config: Any, times: int) -> Any:
    """What the ALU reads: right, left."""
    issue, before = machine.alu_issue, kept.alu_issue
    now, then = machine.alu_sequencer, kept.alu_sequencer
    right = left = 0
    if issue.front:
        if issue.front_reads_right:
            right |= _swept(issue.front_right, before.front_right, 0, config)
        if issue.front_reads_left:
            left |= _swept(issue.front_left, before.front_left, 0, config)
    if issue.back:
        if issue.back_reads_right:
            right |= _swept(issue.back_right, before.back_right, 0, config)
        if issue.back_reads_left:
            left |= _swept(issue.back_left, before.back_left, 0, config)
    if now.running:
        row = code[now.of]
        if row.reads_right or row.requantize:
            right |= _swept(now.rhs, then.rhs, times, config)
        if row.reads_left:
            left |= _swept(now.lhs, then.lhs, times, config)
    return right, left


@inlined
def _result_banks(machine: Any, kept: Any, config: Any, times: int) -> Any:
    """What the ALU writes. Tickets of a period ago were that much behind."""
    results, now, then = machine.alu_results, machine.alu_sequencer, kept.alu_sequencer
    mask = 0
    for number in range(results.tickets):
        if results.pending >> number & 1:
            target = results.target[(results.head + number) & DEPTH - 1]
            mask |= _swept(target, target - (now.dst - then.dst), 0, config)
            mask |= _swept(now.dst, then.dst, times, config)
    return mask


@inlined
def _store_banks(machine: Any, kept: Any, code: Any, config: Any, positions: Any,
                 times: int) -> Any:
    if machine.store.queue == 0:
        return 0
    box = code[positions[STORE, machine.store.reading]]
    if box.in_acc == 0:
        return 0
    return _swept_tiles(machine.store_steps.at, kept.store_steps.at, box.parts, times, config)


@inlined
def _reads_alike(machine: Any, kept: Any, code: Any, positions: Any) -> Any:
    """Whether STORE asks for tiles in the same cycles of every period: it reads a tile of several
    beats once, with the first."""
    moved = machine.store_steps.at - kept.store_steps.at
    return moved % code[positions[STORE, machine.store.reading]].parts == 0


@inlined
def _fill_banks(machine: Any, kept: Any, code: Any, config: Any, positions: Any,
                times: int) -> Any:
    write, before, mask = machine.load_write, kept.load_write, 0
    if write.pending and write.enable and code[write.position].in_acc:
        parts = code[write.position].parts
        mask |= _swept_tiles(write.at, before.at, parts, 0, config)
    if machine.load.queue:
        box = code[positions[LOAD, machine.load.writing]]
        if box.in_acc:
            mask |= _swept_tiles(machine.load_steps.at, kept.load_steps.at, box.parts, times,
                                 config)
    return mask


@inlined
def _swept_tiles(now: int, then: int, parts: int, times: int, config: Any) -> Any:
    """As `_swept`, for a walk in parts of tiles."""
    end = now + times * (now - then)
    return _mask(min(then, end) // parts, max(then, end) // parts, config)


@inlined
def _banks_are_apart(machine: Any, kept: Any, code: Any, config: Any, positions: Any,
                     times: int) -> Any:
    """Whether who shares a bank with whom stays as it is. GEMM comes and goes: none may share
    with it."""
    right, left = _operand_banks(machine, kept, code, config, times)
    store = _store_banks(machine, kept, code, config, positions, times)
    alu = _result_banks(machine, kept, config, times)
    fill = _fill_banks(machine, kept, code, config, positions, times)
    if right | left | store | alu | fill == 0:
        return True
    if store & (right | left) and not _reads_alike(machine, kept, code, positions):
        return False
    busy = _gemm_banks(machine.gemm, config)
    return (busy & (right | left | store | alu | fill) == 0 and _apart(right, left)
            and _apart(right, store) and _apart(left, store) and _apart(alu, fill))


@inlined
def _renew_tickets(machine: Any, kept: Any, times: int) -> None:
    """Give the tickets under way the tiles that they have after so many periods."""
    results = machine.alu_results
    entered = results.entered - kept.alu_results.entered
    if entered == 0:
        return
    passed = times * entered
    stride = (machine.alu_sequencer.dst - kept.alu_sequencer.dst) // entered
    newest = (results.head + results.tickets - 1) & DEPTH - 1
    for number in range(results.tickets):
        age = results.tickets - 1 - number          # in steps, from the newest
        if age < passed:
            results.spare[number] = results.target[newest] + (passed - age) * stride
    of, kind = results.of[newest], results.kind[newest]
    for number in range(results.tickets):
        if results.tickets - 1 - number < passed:
            place = (results.head + passed + number) & DEPTH - 1
            results.of[place], results.kind[place] = of, kind
            results.target[place] = results.spare[number]
            results.last[place] = results.outside[place] = 0
