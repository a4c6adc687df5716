"""Grouped convolution: channels in groups, each a convolution of its own.

Groups narrower than a block waste lanes, so several may be merged into one convolution whose
weights are block-diagonal:

    4 groups of 4 → 4 channels    merged by 4, on blocks of 16    one group of 16 → 16 channels

Merging by 1 computes one convolution after the other; merging all groups gives one dense
convolution that is mostly zeros.
Tensors are packed as for `conv2d`, with a dimension for merged groups before the channel blocks.
Where merged groups fill whole blocks, this is the layout of a plain convolution. The template is
that of `conv2d` too, group after group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES
from ...expression.expression import both, select, total
from ...expression.tensor import compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..convolution.conv2d import Conv2d, Conv2dForm, convolution_bytes, output_bytes
from ..convolution.conv2d_schedule import TEMPLATE
from ..convolution.first_layer import WORTH as WORTH_PACKING
from ..convolution.patches import (
    MOST_PATCHES,
    UNPATCHED,
    Patch,
    PatchedForm,
    least_cycles,
    patch_convolution,
    patches_of,
)
from ..description import extent
from ..form import blocks_of, requantize_sum
from ..kernel import Operator
from ..layout import Layout, Stage, interleaves, memory_block, tile_layout, wide_tiles
from ..packing import (
    Array,
    Operand,
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    pack_weights,
    pad_axis,
    parameter_operands,
    unpack_activations,
    weight_operand,
)
from ..work import Work, parameter_bytes
from .group_products import least_products

MOST_MERGES = 3             # whose schedules are looked at
WORTH = 0.75                # the part of plain products at which a layout of its own pays


@dataclass(frozen=True, kw_only=True)
class Grouped(Conv2d):
    """A convolution in groups. Weights are (channels_out, channels_in / groups, y, x)."""

    operator: ClassVar[str] = "grouped"

    groups: int = extent("groups of channels, each a convolution of its own")

    def check(self) -> None:
        super().check()
        if self.planes > 1:
            raise self.wrong("planes", self.planes, "1: groups have weights of one plane")
        for name in ("channels_in", "channels_out"):
            if getattr(self, name) % self.groups:
                raise self.wrong(name, getattr(self, name), f"a multiple of groups, which is "
                                                            f"{self.groups}")

    @property
    def group_in(self) -> int:
        return self.channels_in // self.groups

    @property
    def group_out(self) -> int:
        return self.channels_out // self.groups

    @property
    def macs(self) -> int:
        return super().macs // self.groups


@dataclass(frozen=True, kw_only=True)
class GroupedForm(Conv2dForm):
    """A grouped convolution in tensors, with several groups merged into one."""

    spec: Grouped
    merged: int

    @property
    def handicap(self) -> float:
        """On an array with different blocks, a layout of its own is the host's to make."""
        same = self.config.block_in == self.config.block_out
        return 1.0 if same or is_plain(self.spec, self.config, self.merged) else 1 / WORTH

    @property
    def note(self) -> str:
        return f"{self.merged} groups are merged into one" if self.merged > 1 else ""

    @property
    def work(self) -> Work:
        """Lanes that other groups fill are not wasted, but no lane sees what another does not."""
        spec, config = self.spec, self.config
        vectors = (blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width
                   * blocks_of(spec.channels_out, config.block_out))
        return Work(macs=spec.macs, products=least_products(spec, spec.groups, config),
                    bytes=convolution_bytes(spec, spec.group_in, config),
                    written=output_bytes(spec), passes=vectors,
                    parameters=parameter_bytes(spec.channels_out, config))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_out, spec.group_in, *spec.kernel), self.config),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        whole = spec.groups % self.merged == 0      # otherwise the last one is filled up
        if whole and is_plain(spec, config, self.merged):
            return super().layouts
        return {"data": self._group_layout(spec.channels_in, spec.group_in, spec.height, spec.width,
                                           memory_block(config, config.block_in)),
                "output": self._group_layout(spec.channels_out, spec.group_out, *spec.out_shape,
                                             memory_block(config, config.block_out))}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        """Channel blocks of a merged group lie side by side."""
        return interleaves(self.config, dimension=2)

    def _group_layout(self, channels: int, group: int, height: int, width: int,
                      block: int) -> Layout:
        """Each merged group is filled up to whole blocks."""
        images, size = self.spec.images, group * self.merged
        groups = blocks_of(channels, size)
        cut = Stage((images, channels, height, width), (images, groups, size, height, width),
                    ((0, 1), (1, size), (1, 1), (2, 1), (3, 1)), (0,) * 4)
        tiles = tile_layout(cut.shape, range(5), (0, self.config.batch), (2, block),
                            self.config.depthwise_lanes)
        return Layout((cut, *tiles.stages))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        spec, config = self.spec, self.config
        bias = bias_with_zero_point(given["bias"], given["weights"], spec.zero_point_in)
        rows = np.stack([bias, given["multiplier"], given["shift"]])
        block = memory_block(config, config.block_in)
        data = np.stack([pack_activations(group, config, block) for group
                         in self._groups(given["data"], 1, spec.group_in)], axis=1)
        return {
            "data": data.reshape(self.shapes["data"]),
            "weights": np.stack([pack_weights(self._diagonal(group), config) for group
                                 in self._groups(given["weights"], 0, spec.group_out)]),
            "parameters": np.stack([pack_parameters(group[0], group[1], group[2], config)
                                    for group in self._groups(rows, 1, spec.group_out)])}

    def unpack(self, output: Array) -> Array:
        spec, channels = self.spec, self.merged * self.spec.group_out
        output = wide_tiles(output, self.config, self.config.block_out)
        groups = [unpack_activations(output[:, number], self.config, spec.images, channels)
                  for number in range(output.shape[1])]
        return np.ascontiguousarray(np.concatenate(groups, axis=1)[:, :spec.channels_out])

    def _groups(self, array: Array, axis: int, group: int) -> list[Array]:
        """An axis of channels cut into merged groups, the last one filled up."""
        whole = pad_axis(array, axis, group * self.merged)
        return np.split(whole, whole.shape[axis] // (group * self.merged), axis=axis)

    def _diagonal(self, weights: Array) -> Array:
        """The weights of some groups as those of one convolution, with zeros between groups."""
        spec = self.spec
        diagonal = np.zeros((len(weights), self.merged * spec.group_in, *spec.kernel),
                            weights.dtype)
        for number in range(self.merged):
            rows = slice(number * spec.group_out, (number + 1) * spec.group_out)
            columns = slice(number * spec.group_in, (number + 1) * spec.group_in)
            diagonal[rows, columns] = weights[rows]
        return diagonal


def form_of(spec: Grouped, config: Config, merged: int) -> GroupedForm:
    """The form with this many groups merged into one."""
    images, groups = blocks_of(spec.images, config.batch), blocks_of(spec.groups, merged)
    depth, outputs = (blocks_of(merged * spec.group_in, config.block_in),
                      blocks_of(merged * spec.group_out, config.block_out))
    (top, _, left, _), (height, width) = spec.pad, spec.padded
    data = placeholder("data", (images, groups, depth, spec.height, spec.width, config.batch,
                                config.block_in), "int8")
    weights = placeholder("weights", (groups, outputs, depth, *spec.kernel, config.block_out,
                                      config.block_in), "int8")
    parameters = placeholder("parameters", (groups, outputs, PARAMETER_TILES, config.batch,
                                            config.block_out), "int32")
    padded = compute("padded", (*data.shape[:3], height, width, *data.shape[-2:]),
                     lambda n, g, c, y, x, b, i: select(
                         both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
                         data[n, g, c, y - top, x - left, b, i], spec.zero_point_in))
    c, ky, kx, k = (reduce_axis(name, extent) for name, extent in (
        ("c", depth), ("ky", spec.kernel[0]), ("kx", spec.kernel[1]), ("k", config.block_in)))
    shape = (images, groups, outputs, spec.out_height, spec.out_width, config.batch,
             config.block_out)
    (sy, sx), (dy, dx) = spec.stride, spec.dilation
    sums = compute("sums", shape, lambda n, g, o, y, x, b, j: total(
        padded[n, g, c, y * sy + ky * dy, x * sx + kx * dx, b, k].cast("int32")
        * weights[g, o, c, ky, kx, j, k].cast("int32"), c, ky, kx, k))
    function = spec.requantization()
    output = compute("output", shape, lambda n, g, o, y, x, b, j: requantize_sum(
        function, sums[n, g, o, y, x, b, j], parameters, (g, o), (b, j)))
    return GroupedForm(spec=spec, config=config, steps=spec.stride, function=function, data=data,
                       padded=padded, weights=weights, parameters=parameters, sums=sums,
                       output=output, merged=merged)


def is_plain(spec: Grouped, config: Config, merged: int) -> bool:
    """Whether tensors lie in memory as those of a plain convolution do."""
    block_in, block_out = (memory_block(config, block) for block
                           in (config.block_in, config.block_out))
    return merged >= spec.groups or (merged * spec.group_in % block_in == 0
                                     and merged * spec.group_out % block_out == 0)


def tile_products(spec: Grouped, config: Config, merged: int) -> int:
    """Tile products for one pixel and tap."""
    return (blocks_of(spec.groups, merged) * blocks_of(merged * spec.group_in, config.block_in)
            * blocks_of(merged * spec.group_out, config.block_out))


def forms_of(spec: Grouped, config: Config) -> Iterable[GroupedForm]:
    """The forms whose merging takes the fewest products; of equal ones, those that keep the plain
    layout come first."""
    merges = sorted(range(1, spec.groups + 1), key=lambda merged: (
        tile_products(spec, config, merged), not is_plain(spec, config, merged), merged))
    if config.block_in != config.block_out:         # few are plain there, and others end a stream
        plain = [each for each in merges if is_plain(spec, config, each)]
        worth = WORTH * min((tile_products(spec, config, each) for each in plain), default=0)
        merges = [*(each for each in merges[:1] if tile_products(spec, config, each) <= worth),
                  *plain] or merges
    return (form_of(spec, config, merged) for merged in merges[:MOST_MERGES])


@dataclass(frozen=True, kw_only=True)
class PatchedGroupedForm(PatchedForm, GroupedForm):
    """A grouped convolution of patches that the host makes."""

    image: Grouped

    @property
    def work(self) -> Work:
        """Those of the image, whatever lies in tiles."""
        return replace(super().work,
                       products=least_products(self.image, self.image.groups, self.config))


def patched_forms(spec: Grouped, config: Config) -> Iterable[PatchedGroupedForm]:
    """The most promising patches, with groups merged as far as they fit a tile; none where they
    gain nothing."""
    best = min(least_cycles(spec, config, UNPATCHED, tile_products(spec, config, each))
               for each in range(1, spec.groups + 1))
    found: list[tuple[float, int, int, Patch]] = []
    for patch in patches_of(spec, config):
        inputs, outputs = spec.group_in * patch.pixels, spec.group_out * patch.results
        merged = max(1, min(config.block_in // inputs, config.block_out // outputs, spec.groups))
        products = blocks_of(spec.groups, merged) * blocks_of(
            merged * inputs, config.block_in) * blocks_of(merged * outputs, config.block_out)
        found.append((least_cycles(spec, config, patch, products), len(found), merged, patch))
    for cycles, _, merged, patch in sorted(found, key=lambda each: each[:2])[:MOST_PATCHES]:
        if cycles < WORTH_PACKING * best:
            form = form_of(patch_convolution(spec, patch), config, merged)
            yield PatchedGroupedForm(**vars(form), image=spec, patch=patch)


OPERATOR = Operator(description=Grouped, forms=forms_of, template=TEMPLATE, alone=patched_forms)
