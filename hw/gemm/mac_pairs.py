"""Two products per multiplier: rows of the MAC array for FPGAs with few, wide multipliers.

Two output channels share their activations. Their weights `high` and `low` are packed into one
factor, low with an offset that makes it positive, so that their bits do not overlap:

    factor      = high × 2**spacing + (low + offset)
    act × factor = act × high × 2**spacing + act × low + act × offset

The last term depends on activations only. It is subtracted together with that of the neighbouring
channel, for all rows at once (`Corrections`).
"""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from .mac_windows import window_shape


@dataclass(frozen=True)
class Packing:
    """The positions of two products in one.

    If the factor is wide enough, the fields have room for the sum of two products, and the adder
    behind a multiplier adds both halves at once. Otherwise the upper bits of the low product
    overlap the lower bits of the high one by `overlap` bits, and logic computes these bits of the
    high product separately.
    """

    offset: int         # added to the low weight
    spacing: int
    overlap: int

    @property
    def half(self) -> int:
        """Added to make the low sum positive, so that it does not borrow from the high one."""
        return 0 if self.overlap else 1 << self.spacing - 1


def packing(config: Config, port_bits: int) -> Packing:
    product = config.inp_bits + config.wgt_bits
    spacing = min(product + 1, port_bits - config.wgt_bits)
    return Packing(1 << config.wgt_bits - 1, spacing, max(0, product - spacing))


def with_offset(weight):
    """A signed weight plus the offset: its most significant bit is inverted."""
    return Cat(weight[:-1], ~weight[-1])


def low_bits(left, right, bits):
    """The lower bits of a product, in logic: only the partial products that contribute."""
    rows = [Mux(right[place], left[:bits - place], 0) << place for place in range(bits)]
    while len(rows) > 1:
        rows = [sum(rows[at:at + 2])[:bits] for at in range(0, len(rows), 2)]
    return rows[0]


class Corrections(wiring.Component):
    """The correction of the low sum of two neighbouring channels, as a number to add.

    Latency: one cycle, as for products. It is zero for pairs of channels that take no part in a
    depthwise product, since their products are zero.

    Members
    -------
    inp : In(array of signed(inp_bits))
        Batch × block_in activations.
    depthwise : In(1)
        A depthwise product.
    window : In(1)
        With `depthwise`, a window, which is not multiplied here; if the configuration has windows.
    others, diagonal : Out(array of correction_shape)
        For each row of the batch and pair of channels; `diagonal` is for the rows that compute this
        pair of a depthwise product.
    """

    def __init__(self, config: Config, packing: Packing):
        self.packing, self.windows = packing, config.has_windows
        self.pairs = config.batch * config.block_in // 2
        self.shape = signed(config.inp_bits + config.wgt_bits + 2)
        super().__init__({
            "inp": In(data.ArrayLayout(signed(config.inp_bits), 2 * self.pairs)),
            "depthwise": In(1),
            **({"window": In(1)} if self.windows else {}),
            "others": Out(data.ArrayLayout(self.shape, self.pairs)),
            "diagonal": Out(data.ArrayLayout(self.shape, self.pairs)),
        })

    def elaborate(self, platform):
        m = Module()
        half = Const(self.packing.half, self.shape)
        for pair in range(self.pairs):
            others = Signal(self.shape, name=f"others_{pair}", reset_less=True)
            diagonal = Signal(self.shape, name=f"diagonal_{pair}", reset_less=True)
            both = self.inp[2 * pair] + self.inp[2 * pair + 1]
            m.d.sync += [diagonal.eq(half - both * self.packing.offset),
                         others.eq(half - both * self.packing.offset)]
            with m.If(self.depthwise):
                m.d.sync += others.eq(half)
            if self.windows:
                with m.If(self.window):
                    m.d.sync += diagonal.eq(half)
            m.d.comb += [self.others[pair].eq(others), self.diagonal[pair].eq(diagonal)]
        return m


class PairedRows(wiring.Component):
    """Two output channels: `block_in` multipliers and two adder trees for each row of the batch.

        inp, factors ─► × ─► products ─► + ─► register ─► two fields ─► + ─► register ─► … ─► sums

    Rate, latency and results are those of two MacRows. For a depthwise product all products but
    those of the channels `diagonal` are zeroed. With `window` these are zeroed too, and behind the
    second register the trees take the sums of WindowLanes.

    Members
    -------
    inp : In(array of signed(inp_bits))
        Batch × block_in activations.
    high, low : In(array of signed(wgt_bits))
        The block_in weights of either channel, those of the low one `with_offset`.
    depthwise : In(1)
        Zero all products but those of the diagonal.
    others, diagonal : In(array of correction_shape)
        From Corrections.
    window : In(1)
        With `depthwise`, zero all products; if the configuration has windows.
    high_window, low_window : In(array of window_shape)
        The sums to use then, two cycles later, for each row of the batch.
    high_sums, low_sums : Out(array)
        The results for each row of the batch.
    """

    def __init__(self, config: Config, packing: Packing, corrections: Corrections, sum_shape,
                 diagonal: int):
        self.config, self.packing, self.own = config, packing, diagonal
        self.windows = config.has_windows
        of_windows = data.ArrayLayout(window_shape(config), config.batch)
        weights = data.ArrayLayout(signed(config.wgt_bits), config.block_in)
        sums = data.ArrayLayout(sum_shape, config.batch)
        super().__init__({
            "inp": In(corrections.inp.shape()), "high": In(weights), "low": In(weights),
            "depthwise": In(1),
            "others": In(corrections.others.shape()), "diagonal": In(corrections.others.shape()),
            **({"window": In(1), "high_window": In(of_windows), "low_window": In(of_windows)}
               if self.windows else {}),
            "high_sums": Out(sums), "low_sums": Out(sums),
        })

    def elaborate(self, platform):
        m = Module()
        pairs = self.config.block_in // 2
        taken = None
        if self.windows:                    # in the cycle of their sums
            multiplied, taken = Signal(), Signal(name="takes_window")
            m.d.sync += [multiplied.eq(self.window), taken.eq(multiplied)]
        for number in range(self.config.batch):
            terms = [self._pair(m, number, pair) for pair in range(pairs)]
            for name, sums, of_row in (("high", self.high_sums, [high for high, _ in terms]),
                                       ("low", self.low_sums, [low for _, low in terms])):
                window = None if taken is None else (taken, self._window(name, number))
                total = _tree(m, f"{name}_{number}", of_row, window)
                if name == "low" and self.packing.half:
                    # Each of the terms is too large by half: together, by the most significant bit.
                    total = Cat(total[:len(sums[0]) - 1], ~total[len(sums[0]) - 1])
                m.d.comb += sums[number].eq(total)
        return m

    def _window(self, name, number):
        """The sum of a window, to replace those of the first two pairs."""
        if name == "high":
            return self.high_window[number]
        total = self.low_window[number]
        # Two terms are too large by half, which is the most significant bit.
        return Cat(total[:-1], ~total[-1]) if self.packing.half else total

    def _pair(self, m, number, pair):
        """Multiply two channels. Returns the high and the low sum of their products."""
        products = [self._product(m, number, 2 * pair + place, kept=pair == self.own)
                    for place in range(2)]
        at = number * self.config.block_in // 2 + pair
        correction = (self.diagonal if pair == self.own else self.others)[at]
        spacing, name = self.packing.spacing, f"{number}_{pair}"
        if not self.packing.overlap:
            both = Signal(signed(2 * spacing), name=f"both_{name}", reset_less=True)
            m.d.sync += both.eq((products[0][0] + correction) + products[1][0])
            return both[spacing:].as_signed(), both[:spacing]
        parts = [self._separate(*each) for each in products]
        high, low = (Signal(signed(self.config.inp_bits + self.config.wgt_bits + 1),
                            name=f"{each}_{name}", reset_less=True) for each in ("high", "low"))
        m.d.sync += [high.eq(parts[0][0] + parts[1][0]),
                     low.eq((parts[0][1] + parts[1][1]) + correction)]
        return high, low

    def _product(self, m, number, channel, *, kept):
        """Both products of a channel, and the bits of the high one that the low one overlaps."""
        config, packing = self.config, self.packing
        act = self.inp[number * config.block_in + channel]
        name = f"{number}_{channel}"
        factor = Signal(signed(packing.spacing + config.wgt_bits), name=f"factor_{name}")
        m.d.comb += factor.eq(Cat(self.low[channel], Const(0, packing.spacing - config.wgt_bits),
                                  self.high[channel]))
        product = Signal(signed(config.inp_bits + len(factor)), name=f"product_{name}",
                         reset_less=True)
        covered = Signal(unsigned(packing.overlap), name=f"covered_{name}", reset_less=True)
        m.d.sync += product.eq(act * factor)
        if packing.overlap:
            m.d.sync += covered.eq(low_bits(act, self.high[channel],
                                            packing.overlap))
        if not kept or self.windows:
            with m.If(self.window if kept else self.depthwise):
                m.d.sync += [product.eq(0), covered.eq(0)]
        return product, covered

    def _separate(self, product, covered):
        """Separate two products that overlap: the excess in those bits belongs to the low one."""
        spacing, overlap = self.packing.spacing, self.packing.overlap
        upper = (product[spacing:spacing + overlap] - covered)[:overlap].as_signed()
        return ((product[spacing:].as_signed() - upper)[:len(product) - spacing].as_signed(),
                Cat(product[:spacing], upper).as_signed())


def _tree(m, name, terms, window=None):
    """Adder tree with a register behind every level. `window` is a condition and a value that then
    replaces the first two sums."""
    level = 0
    while len(terms) > 1:
        level += 1
        sums = [even + odd for even, odd in zip(terms[::2], terms[1::2], strict=True)]
        terms = [Signal(each.shape(), name=f"{name}_{level}_{place}", reset_less=True)
                 for place, each in enumerate(sums)]
        m.d.sync += [to.eq(each) for to, each in zip(terms, sums, strict=True)]
        if level == 1 and window is not None:
            with m.If(window[0]):
                m.d.sync += terms[0].eq(window[1])
    return terms[0]
