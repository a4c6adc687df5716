"""The accumulator: banks of 32-bit tiles that all four engines share."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature

from ..isa.config import Config
from ..isa.instructions import Buffer
from .interfaces import fill_port, index
from .logic import exponent, priority_mux, register, select
from .scratchpad import UNRELATED

READERS = ("gemm_read", "alu_b", "alu_a", "store")      # first come the more urgent
WRITERS = ("gemm_write", "alu_write", "fill")
READ_LATENCY = 3                                        # from a granted read to its data
ACC_BITS, NARROW_BITS = 32, 8                           # lanes as they are kept, and may come


# Bit b of `enable`, or of `banks`, means bank b, which `index` lies in: registers of the engines
# know the bank, so that nobody has to compare in the cycle of the request. `spares` is the opposite
# of `enable`, which whole tiles wait for: others learn from it whether they may read or write.


def group_bits(config: Config) -> int:
    """A bit for each group of lanes that a depthwise product may write, if there are several."""
    return config.acc_groups if config.acc_groups > 1 else 0


def by_lane(config: Config, groups):
    """For each lane of a tile, the bit of its group."""
    return [groups[number // (config.batch * config.depthwise_lanes)]
            for number in range(config.batch * config.block_out)]


def addend_port(config: Config) -> Signature:
    """Reads a tile, which is there three cycles after `enable`, for that cycle only. With `drop` in
    the second cycle after `enable`, there are zeros instead in a group of lanes. Whether there will
    be a request in the next cycle, and for which tile, is known already."""
    return Signature({"next_enable": Out(1), "next_index": Out(index()),
                      "enable": Out(config.acc_banks), "spares": Out(config.acc_banks),
                      "index": Out(index()), "drop": Out(config.acc_groups),
                      "data": In(_tile_bits(config))})


def operand_port(config: Config) -> Signature:
    """Reads a tile if the request is `granted`, which it may be before it is made; its data follow
    three cycles later. `asks` says that there is a request. In the next cycle, `index` is what
    `following` is now if the reader `moves`, and stays otherwise."""
    return Signature({"asks": Out(1), "enable": Out(config.acc_banks),
                      "spares": Out(config.acc_banks), "index": Out(index()),
                      "following": Out(index()), "moves": Out(1), "granted": In(1),
                      "data": In(_tile_bits(config))})


def sum_port(config: Config) -> Signature:
    """Writes a tile, or some groups of its lanes. Whether it will in the next cycle, and which, is
    known already."""
    return Signature({"next_enable": Out(1), "next_index": Out(index()),
                      "enable": Out(config.acc_banks), "spares": Out(config.acc_banks),
                      "index": Out(index()), "data": Out(_tile_bits(config)),
                      **({"groups": Out(group_bits(config))} if group_bits(config) else {})})


def granted_write_port(config: Config) -> Signature:
    """Writes a tile if the request is `granted`; `refused` is the opposite, for few. Where there is
    none, nothing is granted. If the writer `moves`, there is a request in the next cycle if one
    `follows` now, and it is for the tile `following`; otherwise, if the one at hand `stays`."""
    return Signature({"moves": Out(1), "follows": Out(1), "following": Out(index()),
                      "stays": Out(1),
                      "enable": Out(config.acc_banks), "spares": Out(config.acc_banks),
                      "index": Out(index()), "granted": In(1), "refused": In(1),
                      "data": Out(_tile_bits(config))})


def granted_read_port(config: Config) -> Signature:
    """Reads a tile if it is enabled and `granted`, which one in `banks` may be before it is
    enabled; its data follow three cycles later. Where `banks` names none, nothing is granted."""
    return Signature({"enable": Out(1), "banks": Out(config.acc_banks), "index": Out(index()),
                      "granted": In(1), "data": In(_tile_bits(config))})


def bank_of(config: Config, tile):
    """The bank a tile lies in; its place there is what remains of the index below."""
    start, bits = exponent(config.acc_bank_tiles), exponent(config.acc_banks)
    return tile[start:start + bits]


def request(config: Config, asks, tile):
    """What `enable` is for a tile that a port asks for, or not."""
    bank = bank_of(config, tile)
    return Cat(asks & (bank == number) for number in range(config.acc_banks))


def _tile_bits(config):
    return 8 * config.tile_bytes(Buffer.ACC)


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

    A block RAM takes most of a cycle, so every bank has a register, before readers choose. Whether
    GEMM reads from the bank of one of the ALU's operands, and whether both of these are in one
    bank, is found out a cycle before: registers grant the ALU's reads.

    Filling takes 32-bit lanes, or with `widen` 8-bit lanes that are sign-extended. A tile wider
    than a beat is filled in parts (as many as the tile has beats in DRAM, so a quarter as many
    with `widen`); of several tiles in a beat, `lanes` names the one to write. With `whole`, which
    goes with `widen`, every byte of the data is the same, and each lane of the tile becomes that
    byte, sign-extended.

    Members
    -------
    gemm_read : In(addend_port)
        GEMM's addends. Never waits.
    alu_b, alu_a : In(operand_port)
        The ALU's right and left operands. The right one, which also brings parameters, is more
        urgent.
    store : In(granted_read_port)
        Tiles on their way to DRAM. Waits for all others.
    gemm_write : In(sum_port)
        GEMM's sums. Never waits.
    alu_write : In(granted_write_port)
        The ALU's results. Waits for GEMM.
    fill : In(fill_port)
        LOAD's beats and padding. `ready` says that nothing more urgent is written to the bank in
        this cycle.
    """

    def __init__(self, config: Config):
        self.config = config
        self.lanes = config.batch * config.block_out
        self.tile_bits = self.lanes * ACC_BITS
        self.parts = max(1, self.tile_bits // config.bus_bits)
        self.banks = tuple(Memory(shape=self.tile_bits, depth=config.acc_bank_tiles, init=[],
                                  attrs=UNRELATED) for _ in range(config.acc_banks))
        super().__init__({
            "gemm_read": In(addend_port(config)),
            "alu_b": In(operand_port(config)), "alu_a": In(operand_port(config)),
            "store": In(granted_read_port(config)),
            "gemm_write": In(sum_port(config)),
            "alu_write": In(granted_write_port(config)),
            "fill": In(fill_port(config, self.parts, config.acc_banks)),
        })

    def elaborate(self, platform):
        m = Module()
        readers = {name: getattr(self, name) for name in READERS}
        writers = {name: getattr(self, name) for name in WRITERS}
        blocked_b, blocked_a, together = self._foresee(m)
        m.d.comb += [
            self.alu_b.granted.eq(~blocked_b),
            self.alu_a.granted.eq(~blocked_a & ~(self.alu_b.asks & together)),
            # Whether there is a request for the tile comes late, so nobody asks that here.
            self.store.granted.eq((self.store.banks & self.gemm_read.spares & self.alu_b.spares
                                   & self.alu_a.spares).any()),
            self.fill.ready.eq(~(self.fill.banks & ~(
                self.gemm_write.spares & self.alu_write.spares)).any()),
        ]
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

    def _together(self, tile, other):
        return bank_of(self.config, tile) == bank_of(self.config, other)

    def _foresee(self, m):
        """Registers: whether GEMM reads from the bank of the right, and of the left operand,
        whether that is the same bank. And whether a write of the ALU has its bank to itself."""
        gemm, right, left = self.gemm_read, self.alu_b, self.alu_a
        blocked_b, blocked_a, together = (
            Signal(name=name) for name in ("alu_b_blocked", "alu_a_blocked", "alu_together"))
        for port, blocked in ((right, blocked_b), (left, blocked_a)):
            m.d.sync += blocked.eq(gemm.next_enable & Mux(
                port.moves, self._together(gemm.next_index, port.following),
                self._together(gemm.next_index, port.index)))
        # Operands move together: both belong to one step.
        m.d.sync += together.eq(Mux(right.moves, self._together(right.following, left.following),
                                    self._together(right.index, left.index)))
        granted, refused = Signal(name="alu_write_granted"), Signal(init=1)
        gemm, alu = self.gemm_write, self.alu_write

        def apart(tile):
            return ~(gemm.next_enable & self._together(gemm.next_index, tile))

        grants = Mux(alu.moves, alu.follows & apart(alu.following), alu.stays & apart(alu.index))
        m.d.sync += [granted.eq(grants), refused.eq(~grants)]
        m.d.comb += [self.alu_write.granted.eq(granted), self.alu_write.refused.eq(refused)]
        return blocked_b, blocked_a, together

    def _read(self, m, bank, memory_port, readers):
        claims = [(self._wants(reader, bank), reader.index) for reader in readers.values()]
        m.d.comb += [
            memory_port.en.eq(Cat(wanted for wanted, _ in claims).any()),
            memory_port.addr.eq(priority_mux(claims)),
        ]

    def _write(self, m, bank, memory_port, writers, filling):
        fill_data, fill_enable = filling
        wanted = {name: self._wants(writer, bank) for name, writer in writers.items()}
        data = {name: fill_data if name == "fill" else writers[name].data for name in writers}
        m.d.comb += [
            memory_port.addr.eq(priority_mux(
                [(wanted[name], writers[name].index) for name in writers])),
            memory_port.data.eq(priority_mux([(wanted[name], data[name]) for name in writers])),
            memory_port.en.eq(Mux(wanted["gemm_write"] | wanted["alu_write"], ~0,
                                  Mux(wanted["fill"], fill_enable, 0))),
        ]
        if group_bits(self.config):
            with m.If(wanted["gemm_write"]):
                m.d.comb += memory_port.en.eq(Cat(by_lane(self.config, self.gemm_write.groups)))

    def _wants(self, port, bank):
        if port in (self.store, self.fill):
            return port.enable & port.banks[bank]
        return port.enable[bank]

    def _deliver(self, m, name, reader, words):
        """The reader's data register, behind those of the banks."""
        tile_data = Signal(self.tile_bits, name=f"{name}_data", reset_less=True)
        fetched_data = words[0]
        if len(words) > 1:
            bank = register(m, bank_of(self.config, reader.index), f"{name}_bank_read")
            fetched_data = select(words, register(m, bank, f"{name}_bank_fetched"))
        m.d.comb += reader.data.eq(tile_data)
        if reader is self.gemm_read:
            m.d.sync += [tile_data.word_select(number, ACC_BITS).eq(
                Mux(drop, 0, fetched_data.word_select(number, ACC_BITS)))
                for number, drop in enumerate(by_lane(self.config, reader.drop))]
            return
        read, fetched = (Signal(name=f"{name}_{stage}") for stage in ("read", "fetched"))
        asks = reader.enable if reader is self.store else reader.asks
        m.d.sync += [read.eq(asks & reader.granted), fetched.eq(read)]
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
