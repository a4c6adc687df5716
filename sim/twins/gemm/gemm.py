"""Twin of hw.gemm.gemm: when gemms and windows start and end, and their accumulator accesses.

The pipeline never stalls, so the cycle of an instruction's first slot determines the contents of
every stage. Indices are checked when an instruction starts.
"""

from __future__ import annotations

from ....isa.instructions import WINDOW_ROWS, WINDOW_TAPS, Engine, GemmFlags
from ....isa.verification.bounds import BIAS, DST, SRC, WGT
from ...llvm.decorators import inline, noinline
from .. import tokens
from ..record_types import Code, Machine, MicroOps, Numbers, Settings, Unit, Wires
from ..registers import Registers

GEMM = int(Engine.GEMM)
IN_FLIGHT = 32              # size of the ring of instructions in flight
NOWHERE = 1 << 62
BANKS = 8                   # at most, in an accumulator
EVERYWHERE = (2 << BANKS) - 1
BEFORE = WINDOW_TAPS - 1    # slots from the beginning of a window's sum to its end
STOP = 4                    # cycles from the issue of a slot with a bad index to `stopped`
DEPTHWISE, START, FROM_BIAS, FROM_OUT = (int(each) for each in (
    GemmFlags.DEPTHWISE, GemmFlags.START, GemmFlags.BIAS, GemmFlags.OUT))
FIRST_UOP, FIRST_INNER, FIRST_MIDDLE, FIRST_OUTER = (int(each) for each in (
    GemmFlags.FIRST_UOP, GemmFlags.FIRST_INNER, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_OUTER))

# `slots_left` of the instruction that is being issued, `end_in` cycles to the next end. `stop_at`
# is the cycle in which `stopped` is set, -1 without a bad index. For each instruction in flight:
# its first slot's cycle, the number of its first bad slot, its end, and the accumulator tiles and
# banks that it may access.
REGISTERS = Registers(
    same=("in_flight", "head", "running"),
    wide=("uncertain",),
    noted=("fault_position", "stop_at"),
    falling={"slots_left": 2, "end_in": 1},
    storage={"of": IN_FLIGHT, "first": IN_FLIGHT, "bad": IN_FLIGHT, "end": IN_FLIGHT,
             "low": IN_FLIGHT, "high": IN_FLIGHT, "banks": IN_FLIGHT})


@inline
def is_stopped(gemm: Unit, now: int) -> bool:
    return gemm.stop_at >= 0 and now >= gemm.stop_at


@inline
def step(machine: Machine, wires: Wires, code: Code, config: Settings, positions: Numbers,
         uops: MicroOps) -> int:
    """Returns the position of the gemm that starts, or -1."""
    gemm, commands, now = machine.gemm, machine.gemm_queue, machine.clock.now
    halt = machine.control.halt != 0
    stopped = is_stopped(gemm, now)
    wires.gemm_busy = gemm.in_flight != 0
    issues = gemm.running and not stopped and not halt
    last = issues and gemm.slots_left == 1
    wires.gemm_wait = 0
    started = -1
    if commands.ready and (gemm.running == 0 or last) and not stopped and not halt:
        missing = tokens.missing_tokens(machine.tokens, GEMM, commands.wait)
        wires.gemm_wait = missing
        if missing == 0:
            started = int(commands.position)
    _end(gemm, wires, now, halt)
    if issues:
        gemm.slots_left -= 1
        gemm.running = not last
    if started >= 0:
        _start(gemm, code[started], config, uops, now, started)
    gemm.uncertain = now if gemm.stop_at >= 0 else 0
    return started


@inline
def _end(gemm: Unit, wires: Wires, now: int, halt: int) -> None:
    wires.gemm_end = -1
    if gemm.in_flight == 0:
        return
    if gemm.end_in == 0 and not halt and gemm.bad[gemm.head] < 0:
        wires.gemm_end = gemm.of[gemm.head]
        gemm.head = (gemm.head + 1) & IN_FLIGHT - 1
        gemm.in_flight -= 1
        gemm.end_in = gemm.end[gemm.head] - now - 1 if gemm.in_flight else 0
    else:
        gemm.end_in -= 1


@noinline
def _start(gemm: Unit, instruction: Settings, config: Settings, uops: MicroOps, now: int,
           position: int) -> None:
    place = (gemm.head + gemm.in_flight) & IN_FLIGHT - 1
    gemm.running, gemm.slots_left = 1, instruction.slots
    gemm.of[place], gemm.first[place] = position, now + 1
    gemm.end[place] = now + instruction.slots + config.gemm_latency
    gemm.bad[place] = -1
    gemm.low[place], gemm.high[place] = 0, -1
    gemm.banks[place] = 0
    if gemm.in_flight == 0:
        gemm.end_in = gemm.end[place] - now - 1
    gemm.in_flight += 1
    if instruction.no_work:
        return
    if not _note_reach(gemm, place, instruction, config, uops):
        if instruction.window:
            gemm.bad[place] = _first_bad_of_window(instruction, config, uops)
        else:
            gemm.bad[place] = _first_bad(instruction, config, uops)
        if gemm.bad[place] >= 0 and gemm.stop_at < 0:
            gemm.stop_at = now + 1 + gemm.bad[place] + STOP
            gemm.fault_position = position
    if gemm.bad[place] >= 0:
        gemm.banks[place] = EVERYWHERE
    elif gemm.low[place] <= gemm.high[place]:
        gemm.banks[place] = banks_between(gemm.low[place], gemm.high[place], config)


@inline
def banks_between(low: int, high: int, config: Settings) -> int:
    """The banks of tiles from `low` to `high`, as a set."""
    return ((2 << min(high >> config.acc_bank_bits, BANKS))
            - (1 << max(low >> config.acc_bank_bits, 0)))


@noinline
def _note_reach(gemm: Unit, place: int, row: Settings, config: Settings, uops: MicroOps) -> bool:
    """Record the accumulator tiles that a gemm may access. Returns whether all its indices are
    certain to be in range."""
    if row.uop + row.count > len(uops):
        return False
    accs, inps, wgts = _limits(row, config)
    sums = row.inner - BEFORE if row.window else row.inner
    inside = not row.window or _first_beside(row, uops) == NOWHERE
    if sums > 0:
        least, most = _extremes(row, uops, DST)
        low, high = _offset_range(row.outer, row.middle, sums, row.dst_outer, row.dst_middle,
                                  row.dst_inner)
        bits = _group_bits(row, config)
        gemm.low[place], gemm.high[place] = least + low >> bits, most + high >> bits
        inside = inside and least + low >= 0 and most + high < accs
    least, most = _extremes(row, uops, SRC)
    low, high = _offset_range(row.outer, row.middle, row.inner, row.lhs_outer, row.lhs_middle,
                              row.lhs_inner)
    inside = inside and least + low >= 0 and most + high < inps
    least, most = _extremes(row, uops, WGT)
    low, high = _offset_range(row.outer, row.middle, row.inner, row.rhs_outer, row.rhs_middle,
                              row.rhs_inner)
    inside = inside and least + low >= 0 and most + high < wgts
    if row.flags & FROM_BIAS and sums > 0:
        least, most = _extremes(row, uops, BIAS)
        gemm.low[place] = min(gemm.low[place], least)
        gemm.high[place] = max(gemm.high[place], most)
        inside = inside and most < config.acc_tiles
    return inside


@noinline
def _limits(row: Settings, config: Settings) -> tuple[int, int, int]:
    """The number of accumulator tiles, of activation tiles, and of weight tiles; of a depthwise
    product, of groups of lanes, and of rows of weights."""
    accs, wgts = config.acc_tiles, config.wgt_tiles
    inps = config.gemm_out_tiles if row.flags & FROM_OUT else config.inp_tiles
    if row.flags & DEPTHWISE:
        return (accs << config.acc_group_bits, inps << config.inp_group_bits,
                wgts * config.block_out)
    return accs, inps, wgts


@inline
def _group_bits(row: Settings, config: Settings) -> int:
    """How many bits of a destination select the group of lanes in its accumulator tile."""
    return config.acc_group_bits if row.flags & DEPTHWISE else 0


@noinline
def _extremes(row: Settings, uops: MicroOps, field: int) -> tuple[int, int]:
    """The smallest and the largest value of a field in a gemm's micro-ops."""
    least, most = 1 << 16, 0
    for number in range(row.uop, row.uop + row.count):
        least, most = min(least, int(uops[number, field])), max(most, int(uops[number, field]))
    return least, most


@noinline
def _offset_range(outer: int, middle: int, inner: int, by_outer: int, by_middle: int,
                  by_inner: int) -> tuple[int, int]:
    """The smallest and the largest offset in three nested loops."""
    low = high = 0
    for count, stride in ((outer, by_outer), (middle, by_middle), (inner, by_inner)):
        reach = (count - 1) * stride
        low += min(reach, 0)
        high += max(reach, 0)
    return low, high


@noinline
def _first_bad(row: Settings, config: Settings, uops: MicroOps) -> int:
    """The first slot with an index out of range, -1 if there is none.

    Micro-ops that do not exist, and biases, which do not depend on the loops, show in the very
    first iteration or never. Otherwise there is a first iteration in which some micro-op is out of
    range.
    """
    for step in range(row.count):
        if row.uop + step >= len(uops) or _is_bad(row, config, uops, step, 0, 0, 0) or (
                row.flags & FROM_BIAS and _starts(row.flags, step, 0, 0, 0)
                and uops[row.uop + step, BIAS] >= config.acc_tiles):
            return step
    accs, inps, wgts = _limits(row, config)
    least, most = _extremes(row, uops, DST)
    first = _first_outside(row, row.inner, least, most - accs, row.dst_outer, row.dst_middle,
                           row.dst_inner)
    least, most = _extremes(row, uops, SRC)
    first = min(first, _first_outside(row, row.inner, least, most - inps, row.lhs_outer,
                                      row.lhs_middle, row.lhs_inner))
    least, most = _extremes(row, uops, WGT)
    first = min(first, _first_outside(row, row.inner, least, most - wgts, row.rhs_outer,
                                      row.rhs_middle, row.rhs_inner))
    if first == NOWHERE:
        return -1
    step = 0
    _, inner, middle, outer = _counters(row, first * row.count)
    while not _is_bad(row, config, uops, step, inner, middle, outer):
        step += 1
    return first * row.count + step


@noinline
def _first_bad_of_window(row: Settings, config: Settings, uops: MicroOps) -> int:
    """The first faulty slot of a window, -1 if there is none. A destination out of range shows when
    its sum ends."""
    if row.uop >= len(uops):
        return 0
    accs, inps, wgts = _limits(row, config)
    src, wgt, dst = (int(uops[row.uop, SRC]), int(uops[row.uop, WGT]), int(uops[row.uop, DST]))
    first = _first_beside(row, uops)
    first = min(first, _first_outside(row, row.inner, src, src - inps, row.lhs_outer,
                                      row.lhs_middle, row.lhs_inner))
    first = min(first, _first_outside(row, row.inner, wgt, wgt - wgts, row.rhs_outer,
                                      row.rhs_middle, row.rhs_inner))
    if row.inner > BEFORE:
        if row.flags & FROM_BIAS and uops[row.uop, BIAS] >= config.acc_tiles:
            first = min(first, BEFORE)
        begins = _first_outside(row, row.inner - BEFORE, dst, dst - accs, row.dst_outer,
                                row.dst_middle, row.dst_inner)
        if begins != NOWHERE:
            rows, at = divmod(begins, row.inner - BEFORE)
            first = min(first, rows * row.inner + at + BEFORE)
    return -1 if first == NOWHERE else first


@noinline
def _first_beside(row: Settings, uops: MicroOps) -> int:
    """The first slot of a window whose weights do not start at a group of rows, or NOWHERE."""
    if uops[row.uop, WGT] % WINDOW_ROWS:
        return 0
    if row.inner > 1 and row.rhs_inner % WINDOW_ROWS:
        return 1
    if row.middle > 1 and row.rhs_middle % WINDOW_ROWS:
        return row.inner
    if row.outer > 1 and row.rhs_outer % WINDOW_ROWS:
        return row.inner * row.middle
    return NOWHERE


@noinline
def _first_outside(row: Settings, iterations: int, least: int, most: int, by_outer: int,
                   by_middle: int, by_inner: int) -> int:
    """The first iteration in which the offset makes `least` negative or `most` not negative, or
    NOWHERE; the inner loop has `iterations`. Searched loop by loop, because there are too many
    iterations to try them all."""
    for outer in range(row.outer):
        at = outer * by_outer
        low, high = _offset_range(1, row.middle, iterations, 0, by_middle, by_inner)
        if least + at + low >= 0 and most + at + high < 0:
            continue
        for middle in range(row.middle):
            at = outer * by_outer + middle * by_middle
            low, high = _offset_range(1, 1, iterations, 0, 0, by_inner)
            if least + at + low >= 0 and most + at + high < 0:
                continue
            for inner in range(iterations):
                there = at + inner * by_inner
                if least + there < 0 or most + there >= 0:
                    return (outer * row.middle + middle) * iterations + inner
    return NOWHERE


@noinline
def _is_bad(row: Settings, config: Settings, uops: MicroOps, step: int, inner: int, middle: int,
            outer: int) -> bool:
    """Whether a slot has an index out of range, apart from biases."""
    number, (accs, inps, wgts) = row.uop + step, _limits(row, config)
    dst = (uops[number, DST] + outer * row.dst_outer + middle * row.dst_middle
           + inner * row.dst_inner)
    src = (uops[number, SRC] + outer * row.lhs_outer + middle * row.lhs_middle
           + inner * row.lhs_inner)
    wgt = (uops[number, WGT] + outer * row.rhs_outer + middle * row.rhs_middle
           + inner * row.rhs_inner)
    return not (0 <= dst < accs and 0 <= src < inps and 0 <= wgt < wgts)


@inline
def sum_counters(row: Settings, slot: int) -> tuple[int, int, int, int]:
    """The step, inner, middle and outer counter of the sum that a slot adds to; for a window, the
    inner counter is negative if it completes none."""
    step, inner, middle, outer = _counters(row, slot)
    return step, inner - BEFORE if row.window else inner, middle, outer


@inline
def _counters(row: Settings, slot: int) -> tuple[int, int, int, int]:
    """The step, inner, middle and outer counter of a slot."""
    rest, step = divmod(slot, row.count)
    rest, inner = divmod(rest, row.inner)
    outer, middle = divmod(rest, row.middle)
    return step, inner, middle, outer


@inline
def _starts(flags: int, step: int, inner: int, middle: int, outer: int) -> bool:
    """Whether a slot starts a new sum."""
    return flags & START != 0 and not (
        (flags & FIRST_UOP and step) or (flags & FIRST_INNER and inner)
        or (flags & FIRST_MIDDLE and middle) or (flags & FIRST_OUTER and outer))


@inline
def bank_of(gemm: Unit, code: Code, config: Settings, uops: MicroOps, issued: int, reads: bool,
            wanted: int) -> int:
    """The bank that the slot issued in a cycle reads or writes, if it is one of those that are
    `wanted`; -1 if none, and possibly if it is another."""
    for number in range(gemm.in_flight):
        place = (gemm.head + number) & IN_FLIGHT - 1
        row = code[gemm.of[place]]
        slot = issued - gemm.first[place]
        if slot < 0:
            return -1
        if gemm.bad[place] >= 0 and slot >= gemm.bad[place]:
            return -1
        if slot < row.slots:
            if gemm.banks[place] & wanted == 0:
                return -1
            return _touched_bank(row, slot, config, uops, reads)
    return -1


@noinline
def count_alike(gemm: Unit, code: Code, config: Settings, uops: MicroOps, issued: int, reads: bool,
                banks: int, touched: bool, most: int) -> int:
    """For how many consecutive cycles, at most `most` and from the slot `issued` on, one of these
    banks is accessed or, if `touched` is False, none is; as long as no gemm starts or ends."""
    passed = 0
    for number in range(gemm.in_flight):
        place = (gemm.head + number) & IN_FLIGHT - 1
        row = code[gemm.of[place]]
        slot = issued + passed - gemm.first[place]
        if slot < 0:
            if touched:
                return passed
            passed -= slot
            slot = 0
        if passed >= most:
            return most
        if slot < row.slots:
            if gemm.bad[place] >= 0:
                return passed
            left = row.slots - slot
            if gemm.banks[place] & banks or touched:
                alike = _count_alike_slots(row, slot, config, uops, reads, banks, touched,
                                           min(left, most - passed))
                if alike < left:
                    return passed + alike
            passed += left
    return min(passed, most) if touched else most


@inline
def _count_alike_slots(row: Settings, slot: int, config: Settings, uops: MicroOps, reads: bool,
                       banks: int, touched: bool, most: int) -> int:
    """The same within a gemm."""
    if row.no_work:
        return 0 if touched else most
    step, inner, middle, outer = sum_counters(row, slot)
    for passed in range(most):
        bank = (read_bank(row, config, uops, step, inner, middle, outer) if reads
                else _summed_bank(row, config, uops, step, inner, middle, outer))
        if (bank >= 0 and banks >> bank & 1 != 0) != touched:
            return passed
        step, inner, middle, outer = next_counters(row, step, inner, middle, outer)
    return most


@inline
def next_counters(row: Settings, step: int, inner: int, middle: int,
                  outer: int) -> tuple[int, int, int, int]:
    """The result of `sum_counters` for the next slot."""
    step += 1
    if step == row.count:
        step = 0
        inner += 1
        first = -BEFORE if row.window else 0
        if inner == first + row.inner:
            inner = first
            middle += 1
            if middle == row.middle:
                middle = 0
                outer += 1
    return step, inner, middle, outer


@inline
def read_bank(row: Settings, config: Settings, uops: MicroOps, step: int, inner: int, middle: int,
              outer: int) -> int:
    """The accumulator bank that a slot reads, -1 if none."""
    if inner >= 0 and _starts(row.flags, step, inner, middle, outer):
        if row.flags & FROM_BIAS:
            return int(uops[row.uop + step, BIAS]) >> config.acc_bank_bits
        return -1
    return _summed_bank(row, config, uops, step, inner, middle, outer)


@inline
def _summed_bank(row: Settings, config: Settings, uops: MicroOps, step: int, inner: int,
                 middle: int, outer: int) -> int:
    """The bank of the sum that a slot adds to, -1 if none."""
    if inner < 0:
        return -1
    return (int(uops[row.uop + step, DST]) + outer * row.dst_outer + middle * row.dst_middle
            + inner * row.dst_inner) >> _group_bits(row, config) + config.acc_bank_bits


@inline
def _touched_bank(row: Settings, slot: int, config: Settings, uops: MicroOps, reads: bool) -> int:
    if row.no_work:
        return -1
    step, inner, middle, outer = sum_counters(row, slot)
    if reads:
        return read_bank(row, config, uops, step, inner, middle, outer)
    return _summed_bank(row, config, uops, step, inner, middle, outer)
