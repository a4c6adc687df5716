"""The accumulator: banks of 32-bit tiles that all four engines share."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature

from ..isa.config import Config
from .interfaces import fill_port, granted_read_port, index
from .logic import exponent, first, register, select
from .scratchpad import UNRELATED, write_port

READERS = ("gemm_read", "alu_b", "alu_a", "store")      # first come the more urgent
WRITERS = ("gemm_write", "alu_write", "fill")
READ_LATENCY = 3                                        # from a granted read to its data
ACC_BITS, NARROW_BITS = 32, 8                           # lanes as they are kept, and may come


def addend_port(tile_bits: int) -> Signature:
    """Reads a tile, which is there three cycles after `enable`, for that cycle only. With `drop` in
    the second cycle after `enable`, there is a tile of zeros instead."""
    return Signature({"enable": Out(1), "index": Out(index()), "drop": Out(1),
                      "data": In(tile_bits)})


def granted_write_port(tile_bits: int) -> Signature:
    """Like `write_port`, for a shared memory: only a write that is `granted` takes place. It may be
    granted before it is enabled."""
    return Signature({"enable": Out(1), "index": Out(index()), "granted": In(1),
                      "data": Out(tile_bits)})


class Accumulator(wiring.Component):
    """Holds the accumulator tiles in banks; bank b has the b-th run of `acc_bank_tiles` tiles.

    Rate: every bank does one read and one write a cycle. Ports that want the same bank in the same
    cycle are served in this order, and those that are not served wait:

        reads       gemm_read, alu_b, alu_a, store
        writes      gemm_write, alu_write, fill

    Ports in different banks never disturb each other. A port that waits keeps up its request until
    a cycle in which it is granted; a more urgent request wins even when it comes later. GEMM never
    waits.

    Latency: a read granted in cycle t has its data from t + 3 until the data of that reader's
    next read replace them; GEMM's data are there at t + 3 only. A write in cycle t is found by
    reads from t + 1 on. What a read returns in the very cycle of a write to the same tile is
    undefined.

        granted ─► bank ─► register of the bank ─► choice of a bank ─► register of the reader

    A block RAM takes most of a cycle, so every bank has a register, before readers choose.

    Filling takes 32-bit lanes, or with `widen` 8-bit lanes that are sign-extended. A tile wider
    than a beat is filled in parts (as many as the tile has beats in DRAM, so a quarter as many
    with `widen`); of several tiles in a beat, `lanes` names the one to write. With `whole`, which
    goes with `widen`, every byte of the data is the same, and each lane of the tile becomes that
    byte, sign-extended.

    Members
    -------
    gemm_read : In(addend_port)
        GEMM's addends. Never waits.
    alu_b, alu_a : In(granted_read_port)
        The ALU's right and left operands. The right one, which also brings parameters, is more
        urgent.
    store : In(granted_read_port)
        Tiles on their way to DRAM. Waits for all others.
    gemm_write : In(write_port)
        GEMM's sums. Never waits.
    alu_write : In(granted_write_port)
        The ALU's results. Waits for GEMM.
    fill : In(fill_port)
        LOAD's beats and padding. `ready` says that nothing more urgent is written to the bank of
        `index` in this cycle.
    """

    def __init__(self, config: Config):
        self.config = config
        self.lanes = config.batch * config.block_out
        self.tile_bits = self.lanes * ACC_BITS
        self.parts = max(1, self.tile_bits // config.bus_bits)
        self.banks = tuple(Memory(shape=self.tile_bits, depth=config.acc_bank_tiles, init=[],
                                  attrs=UNRELATED) for _ in range(config.acc_banks))
        granted = granted_read_port(self.tile_bits)
        super().__init__({
            "gemm_read": In(addend_port(self.tile_bits)),
            "alu_b": In(granted), "alu_a": In(granted), "store": In(granted),
            "gemm_write": In(write_port(self.tile_bits)),
            "alu_write": In(granted_write_port(self.tile_bits)),
            "fill": In(fill_port(config, self.parts)),
        })

    def elaborate(self, platform):
        m = Module()
        readers = {name: getattr(self, name) for name in READERS}
        writers = {name: getattr(self, name) for name in WRITERS}
        self._arbitrate(m, readers)
        self._arbitrate(m, writers)
        filling = self._arrange(m)
        read_ports = []
        for number, bank in enumerate(self.banks):
            m.submodules[f"bank_{number}"] = bank
            read_ports.append(bank.read_port())
            self._read(m, number, read_ports[number], readers)
            self._write(m, number, bank.write_port(granularity=ACC_BITS), writers, filling)
        words = [register(m, port.data, f"bank_{number}_data")
                 for number, port in enumerate(read_ports)]
        for name, reader in readers.items():
            self._deliver(m, name, reader, words)
        return m

    def _bank_of(self, tile):
        """The bank a tile lies in; its place there is what remains of the index below."""
        start, bits = exponent(self.config.acc_bank_tiles), exponent(self.config.acc_banks)
        return tile[start:start + bits]

    def _arbitrate(self, m, ports):
        """Grant each request, and what might be one, unless a more urgent one wants the same
        bank: those that ask know it late."""
        before = []
        for port in ports.values():
            bank = self._bank_of(port.index)
            blocked = Cat(each.enable & (self._bank_of(each.index) == bank) for each in before)
            if port is self.fill:
                m.d.comb += port.ready.eq(~blocked.any())
            elif port not in (self.gemm_read, self.gemm_write):
                m.d.comb += port.granted.eq(~blocked.any())
            before.append(port)

    def _read(self, m, bank, memory_port, readers):
        claims = [(self._wants(reader, bank), reader.index) for reader in readers.values()]
        m.d.comb += [
            memory_port.en.eq(Cat(wanted for wanted, _ in claims).any()),
            memory_port.addr.eq(first(claims)),
        ]

    def _write(self, m, bank, memory_port, writers, filling):
        fill_data, fill_enable = filling
        wanted = {name: self._wants(writer, bank) for name, writer in writers.items()}
        data = {name: fill_data if name == "fill" else writers[name].data for name in writers}
        m.d.comb += [
            memory_port.addr.eq(first([(wanted[name], writers[name].index) for name in writers])),
            memory_port.data.eq(first([(wanted[name], data[name]) for name in writers])),
            memory_port.en.eq(Mux(wanted["gemm_write"] | wanted["alu_write"], ~0,
                                  Mux(wanted["fill"], fill_enable, 0))),
        ]

    def _wants(self, port, bank):
        return port.enable & (self._bank_of(port.index) == bank)

    def _deliver(self, m, name, reader, words):
        """The reader's data register, behind those of the banks."""
        tile_data = Signal(self.tile_bits, name=f"{name}_data", reset_less=True)
        fetched_data = words[0]
        if len(words) > 1:
            bank = register(m, self._bank_of(reader.index), f"{name}_bank_read")
            fetched_data = select(words, register(m, bank, f"{name}_bank_fetched"))
        m.d.comb += reader.data.eq(tile_data)
        if reader is self.gemm_read:
            m.d.sync += tile_data.eq(Mux(reader.drop, 0, fetched_data))
            return
        read, fetched = (Signal(name=f"{name}_{stage}") for stage in ("read", "fetched"))
        m.d.sync += [read.eq(reader.enable & reader.granted), fetched.eq(read)]
        with m.If(fetched):
            m.d.sync += tile_data.eq(fetched_data)

    def _arrange(self, m):
        """What a fill writes: the tile, and which lanes of it."""
        fill = self.fill
        data, enable = Signal(self.tile_bits, name="fill_data"), Signal(self.lanes, name="fill_en")
        lanes = zip(self._lanes_of(ACC_BITS), self._lanes_of(NARROW_BITS), strict=True)
        for number, ((wide_lane, wide_there), (narrow_lane, narrow_there)) in enumerate(lanes):
            m.d.comb += [
                data.word_select(number, ACC_BITS).eq(Mux(fill.widen, narrow_lane, wide_lane)),
                enable[number].eq(fill.whole | Mux(fill.widen, narrow_there, wide_there)),
            ]
        return data, enable

    def _lanes_of(self, lane_bits):
        """The lanes of the tile as a beat has them, each with whether the beat has it at all."""
        fill, in_beat = self.fill, self.config.bus_bits // lane_bits
        if in_beat < self.lanes:
            return [(fill.data.word_select(lane % in_beat, lane_bits).as_signed(),
                     fill.part == lane // in_beat) for lane in range(self.lanes)]
        tile_bits, tiles = self.lanes * lane_bits, in_beat // self.lanes
        tile = fill.data
        if tiles > 1:       # of padding, all are the same, so it does no harm to combine them
            tile = Const(0, tile_bits)
            for number in range(tiles):
                chosen = (fill.lanes[number] | fill.whole).replicate(tile_bits)
                tile |= fill.data.word_select(number, tile_bits) & chosen
        return [(tile.word_select(lane, lane_bits).as_signed(), Const(1, 1))
                for lane in range(self.lanes)]
