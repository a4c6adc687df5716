"""Kernels of 1 × 1 that stand alone, as a matrix product: pixels are rows, whatever their image.

    output[pixel, out] = requantize(Σ data[pixel, in] × weights[out, in])

A step takes any number of pixels, not whole rows of the image. Where the host writes all channels
of a pixel side by side, those of a step are one run in memory, as are its results; a convolution's
are a run for each channel block. Pixels between strides are left out.

No other operator reads or writes pixels so: this is for layers between a host and a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ...nest.nest import Interleave
from ..choice import CLOSE
from ..dense.dense import Dense, DenseForm, blocks_first
from ..dense.dense import form_of as dense_form_of
from ..dense.dense_schedule import TEMPLATE, Knobs
from ..description import LARGEST
from ..form import Form
from ..kernel import AnyOperator, Kernel, Options, best_kernel
from ..layout import Layout, Stage
from ..packing import Array, Operand, parameter_operands, weight_operand
from ..segment_sizes import fits_segments
from ..work import Work
from .conv2d import Conv2d

WORTH = 0.98                # the part of the cycles otherwise at which it is tried


@dataclass(frozen=True, kw_only=True)
class PointwiseForm(Form):
    """A convolution as a matrix product. `own` is the work of the convolution."""

    spec: Conv2d
    product: DenseForm
    own: Work

    @property
    def note(self) -> str:
        first = "pixels" if self.product.asked is None else "channel blocks"
        return f"pixels are rows of a matrix product, and the host packs {first} first"

    @property
    def work(self) -> Work:
        return self.own

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self.product.shapes

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return self.product.interleaves

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, spec.channels_in, 1, 1), self.config),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, tiles = self.spec, self.product.layouts
        return {"data": Layout((self._pixels_first(spec.channels_in, spec.height, spec.width,
                                                   spec.stride), *tiles["data"].stages)),
                "output": Layout((self._pixels_first(spec.channels_out, *spec.out_shape, (1, 1)),
                                  *tiles["output"].stages))}

    def _pixels_first(self, channels: int, height: int, width: int,
                      stride: tuple[int, int]) -> Stage:
        """(n, channel, y, x) → (n, y, x, channel), of the pixels that are used"""
        images = self.spec.images
        return Stage((images, channels, height, width), (images, *self.spec.out_shape, channels),
                     ((0, 1), (2, stride[0]), (3, stride[1]), (1, 1)), (0,) * 4)

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        rows = self._pixels_first(self.spec.channels_in, self.spec.height, self.spec.width,
                                  self.spec.stride).apply(given["data"])
        return self.product.pack({**given, "weights": given["weights"][:, :, 0, 0],
                                  "data": rows.reshape(-1, self.spec.channels_in)})

    def unpack(self, output: Array) -> Array:
        rows = self.product.unpack(output)
        return self._pixels_first(self.spec.channels_out, *self.spec.out_shape,
                                  (1, 1)).invert(rows)

    def build(self, knobs: Knobs, *, hide_latency: bool) -> Kernel:
        found = best_kernel(TEMPLATE, [self.product], Options(knobs=knobs,
                                                              hide_latency=hide_latency))
        return replace(found, form=self)


def forms_of(spec: Conv2d, config: Config, own: Work) -> list[PointwiseForm]:
    """Its forms as a product, with pixels or channel blocks first; none of other convolutions."""
    if spec.kernel != (1, 1) or any(spec.pad) or spec.planes > 1 or (
            max(spec.columns_in, spec.columns_out) > 1):
        return []
    rows = spec.images * spec.out_height * spec.out_width
    if rows > LARGEST:
        return []
    product = Dense(rows=rows, inputs=spec.channels_in, outputs=spec.channels_out,
                    zero_point_in=spec.zero_point_in, zero_point_out=spec.zero_point_out,
                    low=spec.low, high=spec.high, rounding=spec.rounding, wide=spec.wide,
                    lookup=spec.lookup)
    return [PointwiseForm(spec=spec, config=config, product=each, own=own)
            for each in (dense_form_of(product, config), *blocks_first(product, config))
            if fits_segments(each)]


def multiply_pixels(operator: AnyOperator, spec: Conv2d, kernel: Kernel,
                    options: Options) -> Kernel | None:
    """If the kernel of an operator alone is far from its bound, one that is a matrix product, if
    that is faster."""
    cost, config, memory = options.cost, kernel.program.config, options.memory
    assert cost is not None, "whoever calls this has one"
    cycles, work = cost(kernel.program), kernel.form.work
    if cycles <= CLOSE * work.bound(config, memory).cycles:
        return None
    forms = [each for each in forms_of(spec, config, work)
             if each.product.work.bound(config, memory).cycles <= WORTH * cycles]
    if not forms:
        return None
    found = best_kernel(TEMPLATE, [each.product for each in forms],
                        replace(options, hide_latency=True))
    if cost(found.program) >= cycles:
        return None
    chosen = next(each for each in forms if each.product is found.form)
    return chosen.build(found.knobs, hide_latency=options.hide_latency)
