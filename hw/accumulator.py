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

READERS = ("gemm_read", "alu_b", "alu_a", "store")      # highest priority first
WRITERS = ("gemm_write", "alu_write", "fill")
READ_LATENCY = 3                                        # from a granted read to its data
ACC_BITS, NARROW_BITS = 32, 8                           # lanes in memory, and as LOAD may send them


# Bit b of `enable` or `banks` selects bank b, the one that holds `index`. Engines keep the bank in
# a register, so that no comparison is needed in the cycle of the request. `spares` is `~enable`
# from registers of its own: other ports derive their grants from it without loading `enable`.


def group_bits(config: Config) -> int:
    """Width of the mask of lane groups that a depthwise product may write; 0 with a single
    group."""
    return config.acc_groups if config.acc_groups > 1 else 0


def by_lane(config: Config, groups):
    """Expand a mask of lane groups to one bit per lane of a tile."""
    return [groups[number // (config.batch * config.depthwise_lanes)]
            for number in range(config.batch * config.block_out)]


def addend_port(config: Config) -> Signature:
    """Reads a tile. Its data are valid three cycles after `enable`, for that cycle only. `drop`, in
    the second cycle after `enable`, zeroes groups of lanes. `next_enable` and `next_index` announce
    the request of the next cycle."""
    return Signature({"next_enable": Out(1), "next_index": Out(index()),
                      "enable": Out(config.acc_banks), "spares": Out(config.acc_banks),
                      "index": Out(index()), "drop": Out(config.acc_groups),
                      "data": In(_tile_bits(config))})


def operand_port(config: Config) -> Signature:
    """Reads a tile if the request is `granted`, which may happen before it is made; the data are
    valid three cycles later. `asks` is high while there is a request. In the next cycle `index`
    takes the value of `following` if the reader `moves`, and stays otherwise."""
    return Signature({"asks": Out(1), "enable": Out(config.acc_banks),
                      "spares": Out(config.acc_banks), "index": Out(index()),
                      "following": Out(index()), "moves": Out(1), "granted": In(1),
                      "data": In(_tile_bits(config))})


def sum_port(config: Config) -> Signature:
    """Writes a tile, or some groups of its lanes. `next_enable` and `next_index` announce the write
    of the next cycle."""
    return Signature({"next_enable": Out(1), "next_index": Out(index()),
                      "enable": Out(config.acc_banks), "spares": Out(config.acc_banks),
                      "index": Out(index()), "data": Out(_tile_bits(config)),
                      **({"groups": Out(group_bits(config))} if group_bits(config) else {})})


def granted_write_port(config: Config) -> Signature:
    """Writes a tile if the request is `granted`; `refused` is the inverse, with little fan-out.
    Without a request nothing is granted. If the writer `moves`, the next cycle has a request if
    `follows` is high, for the tile `following`; otherwise it has one if the current request
    `stays`."""
    return Signature({"moves": Out(1), "follows": Out(1), "following": Out(index()),
                      "stays": Out(1),
                      "enable": Out(config.acc_banks), "spares": Out(config.acc_banks),
                      "index": Out(index()), "granted": In(1), "refused": In(1),
                      "data": Out(_tile_bits(config))})


def granted_read_port(config: Config) -> Signature:
    """Reads a tile if it is enabled and `granted`. A bank named in `banks` may be granted before
    `enable`; the data are valid three cycles later. Without a bank nothing is granted."""
    return Signature({"enable": Out(1), "banks": Out(config.acc_banks), "index": Out(index()),
                      "granted": In(1), "data": In(_tile_bits(config))})


def bank_of(config: Config, tile):
    """The bank that holds a tile: the upper bits of its index. The lower bits are its address
    there."""
    start, bits = exponent(config.acc_bank_tiles), exponent(config.acc_banks)
    return tile[start:start + bits]


def request(config: Config, asks, tile):
    """The `enable` mask of a request: one-hot in the bank of the tile, or zero."""
    bank = bank_of(config, tile)
    return Cat(asks & (bank == number) for number in range(config.acc_banks))


def _tile_bits(config):
    return 8 * config.tile_bytes(Buffer.ACC)


class Accumulator(wiring.Component):
    """Holds the accumulator tiles in banks; bank b holds the b-th block of `acc_bank_tiles` tiles.

    Rate: every bank does one read and one write a cycle. Ports that access the same bank in the
    same cycle are served in this order; the others wait:

        reads       gemm_read, alu_b, alu_a, store
        writes      gemm_write, alu_write, fill

    Accesses to different banks never conflict. A port holds its request until it is granted; a
    request of higher priority wins even when it comes later. GEMM never waits.

    Latency: the data of a read granted in cycle t are valid from t + 3 until the reader's next read
    replaces them; GEMM's are valid at t + 3 only. A write in cycle t is visible to reads from t + 1
    on. A read in the same cycle as a write to the same tile returns undefined data.

        granted ─► bank ─► register of the bank ─► choice of a bank ─► register of the reader

    A block RAM takes most of a cycle, so every bank has an output register ahead of the readers'
    multiplexers. Bank conflicts between GEMM and the ALU's operands, and between the two operands,
    are detected one cycle ahead, so the ALU's grants come from registers.

    Fills have 32-bit lanes or, with `widen`, 8-bit lanes that are sign-extended. A tile wider than
    a beat is filled in parts (as many as the tile has beats in DRAM, so a quarter as many with
    `widen`); if a beat holds several tiles, `lanes` selects the one to write. `whole`, which
    implies `widen`, is for data whose bytes are all equal: every lane of the tile becomes that
    byte, sign-extended.

    Members
    -------
    gemm_read : In(addend_port)
        GEMM's addends. Never waits.
    alu_b, alu_a : In(operand_port)
        The ALU's right and left operands. The right one, which also fetches parameters, has
        priority.
    store : In(granted_read_port)
        Tiles to be stored in DRAM. Lowest priority.
    gemm_write : In(sum_port)
        GEMM's sums. Never waits.
    alu_write : In(granted_write_port)
        The ALU's results. Waits for GEMM.
    fill : In(fill_port)
        LOAD's beats and padding. `ready` is high if no write of higher priority uses the bank in
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
            # `store.enable` arrives late and is not needed for the grant.
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
        """Detect bank conflicts one cycle ahead. Returns three registers: GEMM reads the bank of
        the right operand, of the left operand, and both operands share a bank. Drives the ALU's
        write grant too."""
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
        """The reader's data register, one stage after the output registers of the banks."""
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
        """The tile that a fill writes, and its lane enables."""
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
        """For each lane of the tile, its value in the beat and whether the beat contains it."""
        fill, in_beat = self.fill, self.config.bus_bits // lane_bits
        if in_beat < self.lanes:
            return [(fill.data.word_select(lane % in_beat, lane_bits).as_signed(),
                     fill.part == lane // in_beat) for lane in range(self.lanes)]
        tile_bits, tiles = self.lanes * lane_bits, in_beat // self.lanes
        tile = fill.data
        if tiles > 1:       # tiles of padding are all alike, so OR-ing them is safe
            tile = Const(0, tile_bits)
            for number in range(tiles):
                chosen = (fill.lanes[number] | fill.whole).replicate(tile_bits)
                tile |= fill.data.word_select(number, tile_bits) & chosen
        return [(tile.word_select(lane, lane_bits).as_signed(), Const(1, 1))
                for lane in range(self.lanes)]
