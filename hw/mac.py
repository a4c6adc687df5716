"""The MAC array: a tile of activations times a tile of weights, every cycle."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..isa.config import Config
from ..isa.instructions import Buffer
from .logic import select

LEVELS_PER_STAGE = 1        # of the adder tree, between two registers


def tree_stages(config: Config) -> int:
    """Registers in the adder tree; at least one, where depthwise products come in."""
    levels = (config.block_in - 1).bit_length()
    return max(1, -(-levels // LEVELS_PER_STAGE))


def mac_latency(config: Config) -> int:
    """Cycles from operands to their sums: a register of products, then those of the tree."""
    return 1 + tree_stages(config)


def product_shape(config: Config):
    return signed(config.inp_bits + config.wgt_bits)


def sum_shape(config: Config):
    return signed(config.inp_bits + config.wgt_bits + (config.block_in - 1).bit_length())


class MacRow(wiring.Component):
    """One output channel: `block_in` multipliers and an adder tree for each row of the batch.

        inp, wgt ─► × ─► products ─► + ─► register ─► + ─► … ─► sums

    Rate: operands in and sums out in every cycle. Latency: `mac_latency`. Never stalls. While
    `depthwise` is set, the first stage of the tree takes `lane` instead of the products: one
    product that another row may have computed.

    Members
    -------
    inp : In(array of signed(inp_bits))
        Batch × block_in activations.
    wgt : In(array of signed(wgt_bits))
        The block_in weights of this channel.
    products : Out(array of product_shape)
        Batch × block_in products, one cycle after their operands.
    depthwise : In(1)
        Add nothing up. Belongs to the products of the same cycle.
    lane : In(array of product_shape)
        With `depthwise`, the product to take instead, for each row of the batch.
    sums : Out(array of sum_shape)
        The result for each row of the batch.
    """

    def __init__(self, config: Config):
        self.config = config
        batch, block_in = config.batch, config.block_in
        product = product_shape(config)
        super().__init__({
            "inp": In(data.ArrayLayout(signed(config.inp_bits), batch * block_in)),
            "wgt": In(data.ArrayLayout(signed(config.wgt_bits), block_in)),
            "products": Out(data.ArrayLayout(product, batch * block_in)),
            "depthwise": In(1),
            "lane": In(data.ArrayLayout(product, batch)),
            "sums": Out(data.ArrayLayout(sum_shape(config), batch)),
        })

    def elaborate(self, platform):
        m = Module()
        block_in = self.config.block_in
        products = Signal.like(self.products, reset_less=True)
        m.d.comb += self.products.eq(products)
        for number in range(self.config.batch):
            of_row = [products[number * block_in + channel] for channel in range(block_in)]
            for channel, product in enumerate(of_row):
                m.d.sync += product.eq(self.inp[number * block_in + channel] * self.wgt[channel])
            m.d.comb += self.sums[number].eq(self._tree(m, number, of_row))
        return m

    def _tree(self, m, number, terms):
        """Add up the products of one row of the batch, with registers between the stages."""
        for stage in range(tree_stages(self.config)):
            for _ in range(LEVELS_PER_STAGE):
                terms = _pairwise(terms)
            if stage == 0:
                terms = [Mux(self.depthwise, self.lane[number] if place == 0 else 0, each)
                         for place, each in enumerate(terms)]
            registers = [Signal(each.shape(), name=f"sum_{number}_{stage}_{place}",
                                reset_less=True) for place, each in enumerate(terms)]
            m.d.sync += [to.eq(each) for to, each in zip(registers, terms, strict=True)]
            terms = registers
        return terms[0]


def _pairwise(terms):
    if len(terms) == 1:
        return terms
    return [even + odd for even, odd in zip(terms[::2], terms[1::2], strict=True)]


class MacArray(wiring.Component):
    """Multiplies tiles: `sums[b, o] = Σ inp[b, i] × wgt[o, i]`, or lane by lane.

    Rate: a pair of tiles every cycle. Latency: `mac_latency`. Never stalls. A depthwise product
    `sums[b, o] = inp[b, o] × wgt[row, o]` is one that the multipliers of output channel `row`
    compute anyway: it only has to go to the right lane. Lanes that one side lacks are zero.

    Members
    -------
    inp, wgt : In(tile)
        Tiles as they lie in their scratchpads, a new pair in every cycle.
    depthwise : In(1)
        Multiply lane by lane. One cycle behind the tiles it belongs to.
    row : In(range(block_out))
        With `depthwise`, the row of the weight tile. One cycle behind the tiles.
    sums : Out(array of sum_shape)
        Batch × block_out sums.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "inp": In(8 * config.tile_bytes(Buffer.INP)),
            "wgt": In(8 * config.tile_bytes(Buffer.WGT)),
            "depthwise": In(1),
            "row": In(range(max(2, config.block_out))),
            "sums": Out(data.ArrayLayout(sum_shape(config), config.batch * config.block_out)),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        rows = [MacRow(config) for _ in range(config.block_out)]
        chosen = Signal.like(rows[0].products)
        m.d.comb += chosen.eq(select([row.products.as_value() for row in rows], self.row))
        for channel, row in enumerate(rows):
            m.submodules[f"row_{channel}"] = row
            m.d.comb += [
                row.inp.eq(self.inp),
                row.wgt.eq(self.wgt.word_select(channel, config.block_in * config.wgt_bits)),
                row.depthwise.eq(self.depthwise),
            ]
            for number in range(config.batch):
                m.d.comb += self.sums[number * config.block_out + channel].eq(row.sums[number])
                if channel < config.depthwise_lanes:
                    m.d.comb += row.lane[number].eq(chosen[number * config.block_in + channel])
        return m
