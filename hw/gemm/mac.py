"""The MAC array: a tile of activations times a tile of weights, every cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.instructions import WINDOW_ROWS, WINDOW_TAPS, Buffer
from ..logic import exponent, register, select
from ..targets import Target
from .mac_pairs import Corrections, PairedRows, packing, with_offset
from .mac_windows import WindowLanes

LEVELS_PER_STAGE = 1        # of the adder tree per pipeline register


def tree_stages(config: Config) -> int:
    """Pipeline stages of the adder tree; at least one, where depthwise products enter."""
    levels = (config.block_in - 1).bit_length()
    return max(1, -(-levels // LEVELS_PER_STAGE))


def mac_latency(config: Config) -> int:
    """Cycles from tiles to their sums: one for the operand registers, one for the products, then
    those of the tree."""
    return 2 + tree_stages(config)


def product_shape(config: Config):
    return signed(config.inp_bits + config.wgt_bits)


def partial_shape(config: Config):
    """The first two products of a window's sum."""
    return signed(config.inp_bits + config.wgt_bits + 1)


def sum_shape(config: Config):
    return signed(config.inp_bits + config.wgt_bits + (config.block_in - 1).bit_length())


class MacRow(wiring.Component):
    """One output channel: `block_in` multipliers and an adder tree for each row of the batch.

        inp, wgt ─► × ─► products ─► + ─► register ─► + ─► … ─► sums

    Rate: operands in and sums out in every cycle. Latency: one cycle, and one for each stage of the
    tree. Never stalls. While `depthwise` is set, `lane` replaces the sums of the tree's first
    stage: one product, which another row may have computed. With windows, `partial` enters there
    too, and the second stage adds the two.

    Members
    -------
    inp : In(array of signed(inp_bits))
        Batch × block_in activations.
    wgt : In(array of signed(wgt_bits))
        The block_in weights of this channel.
    products : Out(array of product_shape)
        Batch × block_in products, one cycle after their operands.
    depthwise : In(1)
        Do not add up products. Applies to the products of the same cycle.
    lane : In(array of product_shape)
        With `depthwise`, the product to use instead, for each row of the batch.
    partial : In(array of partial_shape)
        With `depthwise`, what to add to it, if the configuration has windows.
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
            **({"partial": In(data.ArrayLayout(partial_shape(config), batch))}
               if config.has_windows else {}),
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
        lanes = [self.lane[number], *([self.partial[number]] if self.config.has_windows else [])]
        stages = tree_stages(self.config)
        for stage in range(stages):
            if stage == 1:      # the sums, or for others the lanes, are zero here
                terms = [*(each | lane for each, lane in zip(terms, lanes, strict=False)),
                         *terms[len(lanes):]]
            for _ in range(LEVELS_PER_STAGE):
                terms = _pairwise(terms)
            if stage == 0 and stages == 1:
                lanes += [0] * (len(terms) - len(lanes))
                terms = [Mux(self.depthwise, lane, each)
                         for lane, each in zip(lanes, terms, strict=True)]
            elif stage == 0:
                # The path of the products is long already; a multiplexer behind their sum would not
                # fit.
                terms = [Mux(self.depthwise, 0, each) for each in terms]
                lanes = [register(m, Mux(self.depthwise, lane, 0), f"lane_{number}_{place}")
                         for place, lane in enumerate(lanes)]
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

    Rate: a pair of tiles every cycle. Latency: `mac_latency`. Never stalls. A depthwise product is
    `sums[b, o] = inp[b, L × group + o] × wgt[row, o]`, where L is `depthwise_lanes`; a wider result
    repeats these in each of its groups of L lanes. A window, if the configuration has them, adds up
    such products of three cycles: with `row` of the cycle before the last, of the last one plus 1,
    and of this one plus 2.

    The target decides whether a multiplier computes one product or two. Operands have registers
    right in front of the multipliers, since the nets to so many places are slow.

    Members
    -------
    inp, wgt : In(tile)
        Tiles in the layout of their scratchpads, a new pair in every cycle.
    depthwise : In(1)
        Multiply these tiles lane by lane.
    row : In(range(block_out))
        With `depthwise`, the row of the weight tile.
    group : In(range(inp_groups))
        With `depthwise`, the group of lanes of the activation tile, if it has several; otherwise 0.
    window : In(1)
        With `depthwise`, a window, if there are any; `row` is then the first of a group of four.
    sums : Out(array of sum_shape)
        Batch × block_out sums, in the layout of an accumulator tile.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "inp": In(8 * config.tile_bytes(Buffer.INP)),
            "wgt": In(8 * config.tile_bytes(Buffer.WGT)),
            "depthwise": In(1),
            "row": In(range(max(2, config.block_out))),
            "group": In(range(max(2, config.inp_groups))),
            **({"window": In(1)} if config.has_windows else {}),
            "sums": Out(data.ArrayLayout(sum_shape(config), config.batch * config.block_out)),
        })

    def elaborate(self, platform):
        m = Module()
        if isinstance(platform, Target) and platform.packs_pairs(self.config):
            self._in_pairs(m, platform.port_bits)
        else:
            self._one_by_one(m)
        return m

    def _activations(self, m):
        """Activations in their operand register, row by row, those of the group in the first
        lanes."""
        config = self.config
        rows, bits = [], config.depthwise_lanes * config.inp_bits
        for number in range(config.batch):
            groups = [self.inp.word_select(group * config.batch + number, bits)
                      for group in range(config.inp_groups)]
            rows += [select(groups, self.group) if config.inp_groups > 1 else groups[0],
                     *groups[1:]]
        return register(m, Cat(rows), "inp_operand")

    def _note(self, m):
        """Register the controls together with their operands."""
        self.is_depthwise = register(m, self.depthwise, "is_depthwise")
        self.of_row = register(m, self.row, "of_row")
        if self.config.has_windows:
            self.is_window = register(m, self.window, "is_window")

    def _one_by_one(self, m):
        """One product per multiplier. Depthwise products are among those of output channel `row`,
        and only have to be routed to their lane."""
        config = self.config
        rows = [MacRow(config) for _ in range(config.block_out)]
        inp, wgt = self._activations(m), register(m, self.wgt, "wgt_operand")
        self._note(m)
        depthwise, of = Signal(), Signal.like(self.row)
        m.d.sync += [depthwise.eq(self.is_depthwise), of.eq(self.of_row)]
        chosen = Signal.like(rows[0].products)
        if config.has_windows:
            self._slide(m, rows, of, chosen)
        else:
            m.d.comb += chosen.eq(select([row.products.as_value() for row in rows], of))
        for channel, row in enumerate(rows):
            m.submodules[f"row_{channel}"] = row
            m.d.comb += [row.inp.eq(inp), row.wgt.eq(wgt.word_select(
                             channel, config.block_in * config.wgt_bits)),
                         row.depthwise.eq(depthwise)]
            for number in range(config.batch):
                m.d.comb += self.sums[config.place_in_tile(number, channel)].eq(row.sums[number])
                lane = channel % config.depthwise_lanes
                m.d.comb += row.lane[number].eq(chosen[number * config.block_in + lane])

    def _slide(self, m, rows, of, chosen):
        """Select a group of four rows first, then one of them: that of the depthwise product or,
        for a window, the third, to which the tree adds

            first ─► register ─► + second ─► register ─► partial

        of the two cycles before."""
        config = self.config
        row_bits = exponent(WINDOW_ROWS)
        of_group = [Signal.like(chosen, name=f"of_group_{place}") for place in range(WINDOW_ROWS)]
        for place, products in enumerate(of_group):
            m.d.comb += products.eq(select([row.products.as_value()
                                            for row in rows[place::WINDOW_ROWS]], of[row_bits:]))
        window = Signal()
        m.d.sync += window.eq(self.is_window)
        with m.If(self.is_window):
            m.d.sync += of[:row_bits].eq(WINDOW_TAPS - 1)
        m.d.comb += chosen.eq(select([each.as_value() for each in of_group], of[:row_bits]))
        for number in range(config.batch):
            for lane in range(config.depthwise_lanes):
                place = number * config.block_in + lane
                first, second = (Signal(shape, name=f"{name}_{place}", reset_less=True)
                                 for name, shape in (("first", product_shape(config)),
                                                     ("second", partial_shape(config))))
                m.d.sync += [first.eq(of_group[0][place]), second.eq(first + of_group[1][place])]
                m.d.comb += [row.partial[number].eq(Mux(window, second, 0))
                             for row in rows[lane::config.depthwise_lanes]]

    def _in_pairs(self, m, port_bits):
        """Two products per multiplier. For a depthwise product, the multipliers on the diagonal get
        the weights of `row`, selected ahead of the operand register."""
        config = self.config
        pack = packing(config, port_bits)
        inp = self._activations(m)
        self._note(m)
        m.submodules.corrections = corrections = Corrections(config, pack)
        m.d.comb += [corrections.inp.eq(inp), corrections.depthwise.eq(self.is_depthwise)]
        tile = data.ArrayLayout(data.ArrayLayout(config.wgt_bits, config.block_in),
                                config.block_out)
        wgt = data.View(tile, self.wgt)
        chosen = [Signal(config.wgt_bits, name=f"chosen_{channel}")
                  for channel in range(config.block_out)]
        windows = None
        if config.has_windows:
            windows = self._windows(m, inp, wgt, chosen, corrections)
        else:
            for channel, to in enumerate(chosen):
                lane = channel % config.depthwise_lanes
                m.d.comb += to.eq(select([wgt[row][lane] for row in range(config.block_out)],
                                         Mux(self.depthwise, self.row, channel)))
        for pair in range(config.block_out // 2):
            own = pair % (config.depthwise_lanes // 2)
            m.submodules[f"rows_{pair}"] = rows = PairedRows(
                config, pack, corrections, sum_shape(config), own)
            m.d.comb += [rows.inp.eq(inp), rows.depthwise.eq(self.is_depthwise),
                         rows.others.eq(corrections.others),
                         rows.diagonal.eq(corrections.diagonal)]
            if windows is not None:
                m.d.comb += rows.window.eq(self.is_window)
            for place, (weights, sums) in enumerate(((rows.low, rows.low_sums),
                                                     (rows.high, rows.high_sums))):
                channel = 2 * pair + place
                lane = 2 * own + place
                taken = [wgt[channel][each] for each in range(config.block_in)]
                taken[lane] = chosen[channel]
                taken[lane ^ 1] = Mux(self.depthwise, 0, wgt[channel][lane ^ 1])
                if place == 0:
                    taken = [with_offset(each) for each in taken]
                m.d.comb += weights.eq(register(m, Cat(taken), f"wgt_operand_{channel}"))
                for number in range(config.batch):
                    m.d.comb += self.sums[config.place_in_tile(number, channel)].eq(sums[number])
                    if windows is not None:
                        to = (rows.low_window, rows.high_window)[place]
                        m.d.comb += to[number].eq(
                            windows.sums[number * config.depthwise_lanes + lane])

    def _windows(self, m, inp, wgt, chosen, corrections):
        """Products of windows. Weights are selected as products are with one product per
        multiplier: a group of four rows, then for a depthwise product one of them."""
        config = self.config
        m.submodules.windows = windows = WindowLanes(config)
        m.d.comb += [windows.inp.eq(inp), corrections.window.eq(self.is_window)]
        row_bits = exponent(WINDOW_ROWS)
        for channel, to in enumerate(chosen):
            lane = channel % config.depthwise_lanes
            row = Signal.like(self.row, name=f"row_of_{channel}")
            m.d.comb += row.eq(Mux(self.depthwise, self.row, channel))
            group = [select([wgt[each][lane] for each in range(place, config.block_out,
                                                               WINDOW_ROWS)], row[row_bits:])
                     for place in range(WINDOW_ROWS)]
            m.d.comb += to.eq(select(group, row[:row_bits]))
            if channel < config.depthwise_lanes:
                m.d.comb += [windows.wgt[tap][lane].eq(register(m, group[tap], f"tap_{tap}_{lane}"))
                             for tap in range(WINDOW_TAPS)]
        return windows
