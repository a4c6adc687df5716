"""The control unit: registers for a driver, the state of a run, and the counters."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out, connect, flipped
from amaranth.utils import ceil_log2

from ..isa import registers
from ..isa.config import Config
from ..isa.faults import Fault
from ..isa.instructions import SEGMENTS, Engine
from ..isa.registers import REGISTER_BYTES, WINDOW_BYTES, Status, counter_names, register_map
from .counters import COUNTER_BITS, Counters
from .interfaces import FAULT, events, segment_lookup
from .layouts import POSITION_BITS
from .logic import exponent, register, require_entries, select
from .segments import PARTS, WORD, SegmentTable

OFFSET_BITS = ceil_log2(WINDOW_BYTES)
READ_LATENCY = 4                # cycles from an offset to its register
GROUP = 8                       # registers multiplexed in one cycle


class Control(Component):
    """Holds the registers of `isa.registers`, starts programs and records how they stopped.

    Writing START to `control` resets the core for one cycle and starts it. A run ends when FETCH
    has finished and the bus is quiet or, after the first fault, as soon as the bus is quiet. From
    the fault to the next reset, `halt` keeps every engine from starting anything: commands still in
    the queues must not be executed. A START while running is itself a fault. Writes to the other
    registers are ignored while a program runs.

    Events are registered before use, since they come from all over the accelerator. So is the way
    back: a fault is recorded (`caught`), and `halt` reaches the units one cycle later.

    Rate: a register write and a register read a cycle; both are always accepted.

    Members
    -------
    write_enable : In(1)
        Write a register in this cycle.
    write_offset : In(OFFSET_BITS)
        Its byte offset in the register window.
    write_data : In(WORD)
        Its new value.
    read_offset : In(OFFSET_BITS)
        The register to read, in every cycle.
    read_data : Out(WORD)
        The register whose offset was given four cycles before, with its value of two or three
        cycles before; zero if there is no such register.
    load, gemm, alu, store : In(events)
        Events of each engine, in every cycle.
    fetch_fault : In(FAULT)
        A fault that FETCH finds in the program. Its position, as that of any fault, stays for
        another cycle.
    dispatched : In(1)
        FETCH dispatches an instruction, for the counter.
    finished : In(1)
        FETCH has executed the end of the program.
    overflow : In(len(Engine))
        Engines whose post in the cycle before has overflowed a token counter.
    quiet : In(1)
        No transaction is outstanding on the bus.
    program_base : Out(address_bits)
        Address of the program, as the driver set it.
    program_count : Out(32)
        Its instructions, as the driver set it.
    load_window, store_window : In(segment_lookup)
        Segments that engines look up, as the driver set them.
    reset : Out(1)
        Resets the core; high for one cycle before each run.
    running : Out(1)
        High from the cycle after `reset` until the program is done or has failed.
    halt : Out(1)
        Start nothing new: high from three cycles after the first fault until the next reset.
    halts : Out(1)
        `halt` rises in the next cycle: for units with a register of their own for it.
    interrupt : Out(1)
        High from the end of a run, if enabled, until the driver clears it or starts another run.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "write_enable": In(1), "write_offset": In(OFFSET_BITS), "write_data": In(WORD),
            "read_offset": In(OFFSET_BITS), "read_data": Out(WORD),
            **{engine.name.lower(): In(events) for engine in Engine},
            "fetch_fault": In(FAULT), "dispatched": In(1), "finished": In(1),
            "overflow": In(len(Engine)), "quiet": In(1),
            "program_base": Out(config.address_bits), "program_count": Out(POSITION_BITS),
            "load_window": In(segment_lookup(config)), "store_window": In(segment_lookup(config)),
            "reset": Out(1), "running": Out(1), "halt": Out(1), "halts": Out(1),
            "interrupt": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        self.done, self.failed = Signal(), Signal()
        self.interrupt_enable = Signal()
        self.fault = Signal(FAULT)
        # The driver never writes in the cycle in which that changes.
        self.may_write = register(m, ~self.running & ~self.reset, "may_write")
        start = Signal()
        m.d.sync += start.eq(self._is_written(registers.Control.START))
        self._look(m)
        self._run(m, start)
        readable = {
            "control": self.interrupt_enable << exponent(registers.Control.INTERRUPT_ENABLE),
            "status": self._status(m, start),
            "fault": self.fault.cause, "fault_position": self.fault.position,
            **self._settings(m),
            **{name: Const(value, WORD)
               for name, value in registers.identity_of(self.config).items() if value},
        }
        self.offset = register(m, self.read_offset, "offset")   # since counters take longer
        counted = self._cycles(m) if self.config.cycles_only else self._counters(m)
        self._read(m, readable, counted, self._segments(m))
        return m

    def _look(self, m):
        """Register the events of the previous cycle, unless they belong to an earlier run."""
        # The unit that raises a fault holds its position.
        self.faults = {"fetch_fault": self.fetch_fault, **{
            engine.name.lower(): getattr(self, engine.name.lower()).fault for engine in Engine}}
        told = {**{name: Value.cast(fault.cause) for name, fault in self.faults.items()},
                **{f"{engine.name.lower()}_end": getattr(self, engine.name.lower()).end_position
                   for engine in Engine},
                "dispatched": self.dispatched}
        for engine in Engine:
            events = getattr(self, engine.name.lower())
            told |= {f"{engine.name.lower()}_{name}": getattr(events, name)
                     for name in ("busy", "wait", "wait_memory", "bytes")}
        self.seen = {name: Signal(len(value), name=f"seen_{name}") for name, value in told.items()}
        for name, value in told.items():
            m.d.sync += self.seen[name].eq(Mux(self.reset, 0, value))
        self.seen["overflow"] = self.overflow           # one cycle late already
        self.counting = Signal()            # the registered events belong to a running cycle
        m.d.sync += self.counting.eq(self.running)
        self.raised = {name: Signal(name=f"{name}_raised") for name in self.faults}
        for name, raised in self.raised.items():
            m.d.sync += raised.eq(~self.reset & (self.faults[name].cause != Fault.NONE))

    def _status(self, m, start):
        status = Signal(WORD)
        for flag, holds in require_entries(Status, {
                Status.RUNNING: start | self.running | self.reset, Status.DONE: self.done,
                Status.FAILED: self.failed, Status.INTERRUPT: self.interrupt}).items():
            m.d.comb += status[exponent(flag)].eq(holds)
        return status

    def _is_written(self, bits):
        return (self.write_enable & (self.write_offset == _offsets["control"])
                & ((self.write_data & int(bits)) != 0))

    def _run(self, m, start):
        """The state machine of a run: idle, reset, running, halting."""
        first = self._first_fault(m, start)
        stopped, catches, caught = Signal(), Signal(), Signal()
        m.d.comb += [catches.eq(Cat(*self.raised.values(), *self.seen["overflow"], start).any()),
                     self.halts.eq(caught & ~self.halt)]
        with m.If(self.reset):
            m.d.sync += [self.reset.eq(0), self.running.eq(1), self.halt.eq(0), caught.eq(0)]
        with m.Elif(self.running):
            with m.If(~caught):
                m.d.sync += [self.fault.eq(first), caught.eq(catches)]  # NONE without a fault
            with m.If(caught):
                m.d.sync += self.halt.eq(1)
            with m.If(self.quiet & (self.halt | (self.finished & ~caught & ~catches))):
                m.d.comb += stopped.eq(1)
                m.d.sync += [self.running.eq(0), self.done.eq(~self.halt),
                             self.failed.eq(self.halt)]
        with m.Elif(start):
            m.d.sync += [self.reset.eq(1), self.done.eq(0), self.failed.eq(0), self.fault.eq(0)]
        with m.If(self.write_enable & (self.write_offset == _offsets["control"])):
            m.d.sync += self.interrupt_enable.eq(
                (self.write_data & int(registers.Control.INTERRUPT_ENABLE)) != 0)
        with m.If(stopped & self.interrupt_enable):
            m.d.sync += self.interrupt.eq(1)
        with m.Elif(start | (self.write_enable & (self.write_offset == _offsets["status"])
                             & ((self.write_data & int(Status.INTERRUPT)) != 0))):
            m.d.sync += self.interrupt.eq(0)

    def _first_fault(self, m, start):
        """Of the faults raised in the previous cycle, the one to report."""
        first, seen = Signal(FAULT), self.seen

        def report(name):
            with m.If(self.raised[name]):
                m.d.comb += [first.cause.eq(seen[name]),
                             first.position.eq(self.faults[name].position)]

        report("fetch_fault")
        for engine in Engine:
            name = engine.name.lower()
            report(name)
            with m.If(seen["overflow"][engine]):
                m.d.comb += [first.cause.eq(Fault.TOKEN_OVERFLOW),
                             first.position.eq(seen[f"{name}_end"])]
        with m.If(start):
            m.d.comb += [first.cause.eq(Fault.RESTARTED), first.position.eq(0)]
        return first

    def _settings(self, m):
        """The registers that describe the program, written by a driver."""
        registers = {}

        def setting(name, width):
            if width == 0:              # Verilog has no signal without bits
                registers[name] = Const(0, WORD)
                return Const(0, 0)
            value = Signal(width, name=name)
            with m.If(self.write_enable & self.may_write & (self.write_offset == _offsets[name])):
                m.d.sync += value.eq(self.write_data)
            registers[name] = value
            return value

        low = min(self.config.address_bits, WORD)
        high = self.config.address_bits - low
        m.d.comb += self.program_base.eq(Cat(setting("program_low", low),
                                             setting("program_high", high)))
        m.d.comb += self.program_count.eq(setting("program_count", POSITION_BITS))
        return registers

    def _segments(self, m):
        """The registers of segments. Returns the one whose offset was given three cycles before;
        zero if that was another register's."""
        m.submodules.segments = table = SegmentTable(self.config)
        connect(m, flipped(self.load_window), table.load)
        connect(m, flipped(self.store_window), table.store)
        size = REGISTER_BYTES * len(PARTS)
        places = [(_offsets["segment0_low"] + size * number) // size for number in range(SEGMENTS)]
        assert [place % SEGMENTS ^ SEGMENTS // 2 for place in places] == [*range(SEGMENTS)]

        def locate(offset):
            """Whether an offset is a segment register's, the segment, and the part of it."""
            number = offset[exponent(size):]
            return (number.matches(*places) & ~offset[:exponent(REGISTER_BYTES)].any(),
                    number[:exponent(SEGMENTS)] ^ SEGMENTS // 2,
                    offset[exponent(REGISTER_BYTES):exponent(size)])

        meant, number, part = locate(self.write_offset)
        writes = self.write_enable & self.may_write & meant
        m.d.comb += [table.write.eq(Mux(writes, 1 << part, 0)), table.write_number.eq(number),
                     table.write_data.eq(self.write_data)]
        meant, number, part = (register(m, each, name) for each, name in zip(
            locate(self.offset), ("segment_meant", "segment_number", "segment_part"), strict=True))
        m.d.comb += table.read_number.eq(number)
        return register(m, Mux(meant, select(list(table.read), part), 0), "segment_chosen")

    def _counters(self, m):
        """Count events, from the first running cycle to the last."""
        seen = self.seen
        steps = {"cycles": Const(1), "instructions": seen["dispatched"]}
        for engine in Engine:
            name = engine.name.lower()
            steps |= {each: seen[each]
                      for each in (f"{name}_busy", f"{name}_wait_memory", f"{name}_bytes")}
            steps |= {f"{name}_wait_{other.name.lower()}": seen[f"{name}_wait"][other]
                      for other in Engine}
        m.submodules.counters = counters = Counters(
            [self.config.bus_bytes if name.endswith("_bytes") else 1 for name in counter_names()])
        m.d.comb += counters.clear.eq(self.reset)
        for number, name in enumerate(counter_names()):
            counts = self.running if name == "cycles" else self.counting
            m.d.comb += getattr(counters, f"step_{number}").eq(Mux(counts, steps[name], 0))
        return self._counter_read(m, counters)

    def _cycles(self, m):
        """Count cycles only. Returns the word of that counter whose offset was given three cycles
        before; zero if that was another register's."""
        cycles = Signal(COUNTER_BITS)
        with m.If(self.running):
            m.d.sync += cycles.eq(cycles + 1)
        with m.If(self.reset):
            m.d.sync += cycles.eq(0)
        words = {"cycles_low": cycles[:WORD], "cycles_high": cycles[WORD:]}
        meant = {name: register(m, self.offset == _offsets[name], f"{name}_meant")
                 for name in words}
        return register(m, reduce(or_, (Mux(meant[name], word, 0) for name, word in words.items())),
                        "cycles_read")

    def _counter_read(self, m, counters):
        """The word of the counter whose offset was given three cycles before; zero if that was
        another register's."""
        first, size = _offsets["cycles_low"], 2 * REGISTER_BYTES
        assert first % (size * counters.places) == 0
        meant, high = Signal(3), Signal(3)          # one cycle after the offset, two and three
        m.d.sync += [
            counters.read.eq(self.read_offset[exponent(size):]),
            meant.eq(Cat(self.read_offset[exponent(size * counters.places):]
                         == first // (size * counters.places), meant)),
            high.eq(Cat(self.read_offset[exponent(REGISTER_BYTES)], high))]
        word = Mux(high[-1], counters.value[WORD:], counters.value[:WORD])
        return Mux(meant[-1], word, 0)

    def _read(self, m, readable, *others):
        """Decode the group, select within each group, then OR the groups, counters and segments."""
        groups: dict[int, dict[int, Value]] = {}
        for each in register_map():
            if each.name in readable:
                group, place = divmod(each.offset // REGISTER_BYTES, GROUP)
                groups.setdefault(group, {})[place] = readable[each.name]
        place = register(m, self.offset[exponent(REGISTER_BYTES):][:exponent(GROUP)], "place")
        candidates = [*others]                  # all zero except that of the register's group
        for number, members in groups.items():
            meant = Signal(name=f"meant_{number}")
            chosen = Signal(WORD, name=f"chosen_{number}")
            m.d.sync += meant.eq(self.offset.matches(*(
                (number * GROUP + each) * REGISTER_BYTES for each in members)))
            values = [members.get(each, Const(0)) for each in range(GROUP)]
            m.d.sync += chosen.eq(Mux(meant, select(values, place), 0))
            candidates.append(chosen)
        m.d.sync += self.read_data.eq(reduce(or_, candidates))


_offsets = {each.name: each.offset for each in register_map()}
