"""Convolutions of images that the host cuts into patches, where channels do not fill tiles.

A tile of 16 lanes with 4 channels is a quarter full. So the host gives it a patch of 2 × 2 pixels,
and takes patches of the result, too:

    data'[n, (i, j, c), y, x]   = padded[n, c, y × p + i, x × q + j]        patches of p × q pixels
    output'[n, (a, b, o), y, x] = output[n, o, y × u + a, x × v + b]        patches of u × v results

What remains is an ordinary convolution with more channels and fewer taps, and without a border. Its
weights are those of the taps that a result sees, and zeros. A kernel of 3 × 3 over groups of 4
channels takes 4 tile products for 2 × 2 results, instead of 9 for results of four groups.

Patches of the input may overlap: along an axis, a patch can have all pixels that its results see.
Five rows of three channels then fill a tile for three rows of a 3 × 3 kernel's results, and all
pixels of a window fill tiles where one has 40 channels. Pixels that no result sees are in none: a
kernel of 1 × 1 with stride 2 needs every other one.
No other operator reads or writes such tiles: this is for layers between a host and a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import Buffer
from ..description import LARGEST
from ..form import blocks_of
from ..layout import Layout, Stage
from ..packing import PARAMETERS, Array, Operand, parameter_operands, weight_operand
from ..work import Work, parameter_bytes
from .conv2d import Conv2d, convolution_bytes, output_bytes, plain_forms
from .first_layer import WORTH, RearrangedForm, fold_convolution
from .first_layer import candidates as folds_of

SIZES = (1, 2, 3, 4, 6, 8, 16, 32)      # of patches of the result, along an axis
PAIR = 2                                # pixels of more channels than a tile has lanes
MOST_LANES = 512                        # of patches that overlap
MOST_PATCHES = 3                        # whose schedules are looked at

SpecT = TypeVar("SpecT", bound=Conv2d)


@dataclass(frozen=True)
class Patch:
    """Pixels of the input that share tiles, and results that do. Patches of the input overlap where
    they have all pixels that their results see, and other patches have some of them, too."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]

    @property
    def pixels(self) -> int:
        return self.inputs[0] * self.inputs[1]

    @property
    def results(self) -> int:
        return self.outputs[0] * self.outputs[1]


UNPATCHED = USED = Patch((1, 1), (1, 1))     # the latter without pixels that no result sees


def groups_of(spec: Conv2d) -> int:
    """Groups of channels; a plain convolution is one."""
    return int(getattr(spec, "groups", 1))


@dataclass(frozen=True)
class Along:
    """One axis of a convolution of patches."""

    size: int           # patches of the input
    step: int           # pixels from one of them to the next
    before: int         # patches of border
    after: int
    taps: int
    stride: int
    outputs: int        # patches of the result


def along(spec: Conv2d, axis: int, pixels: int, results: int) -> Along:
    """Patches along an axis. A border of whole patches is none of the host's."""
    inside, pad, stride = (spec.height, spec.width)[axis], spec.pad[2 * axis], spec.stride[axis]
    reach, outputs = seen(spec, axis, results), blocks_of(spec.out_shape[axis], results)
    if pixels == reach:                 # patches overlap, or some pixels are in none
        return Along(outputs, results * stride, 0, 0, 1, 1, outputs)
    assert results * stride % pixels == 0, "other patches follow one another"
    taps, step = blocks_of(reach, pixels), results * stride // pixels
    size = (outputs - 1) * step + taps
    before = pad // pixels
    if pad % pixels or size <= before:              # the latter sees nothing but the border
        return Along(size, pixels, 0, 0, taps, step, outputs)
    own = min(blocks_of(inside, pixels), size - before)
    return Along(own, pixels, before, size - before - own, taps, step, outputs)


def seen(spec: Conv2d, axis: int, results: int) -> int:
    """Pixels that so many neighbouring results see."""
    return (results - 1) * spec.stride[axis] + spec.reach(axis)


def patch_convolution(spec: SpecT, patch: Patch) -> SpecT:
    """The convolution of patches."""
    y, x = (along(spec, axis, patch.inputs[axis], patch.outputs[axis]) for axis in range(2))
    return replace(spec, height=y.size, width=x.size, kernel=(y.taps, x.taps),
                   channels_in=spec.channels_in * patch.pixels,
                   channels_out=spec.channels_out * patch.results, stride=(y.stride, x.stride),
                   dilation=(1, 1), pad=(y.before, y.after, x.before, x.after))


@dataclass(frozen=True, kw_only=True)
class PatchedForm(RearrangedForm):
    """The convolution of patches that the host makes."""

    patch: Patch

    @property
    def note(self) -> str:
        inputs, outputs = (" × ".join(map(str, each)) for each in (
            self.patch.inputs, self.patch.outputs))
        return f"the host packs {inputs} pixels and takes {outputs} results in a tile"

    @property
    def work(self) -> Work:
        image = self.image
        return replace(super().work, macs=image.macs, bytes=convolution_bytes(
            image, image.channels_in // groups_of(image), self.config),
            written=output_bytes(image),
            parameters=parameter_bytes(image.channels_out, self.config))

    @property
    def operands(self) -> tuple[Operand, ...]:
        image = self.image
        depth = image.channels_in // groups_of(image)
        return (Operand("data", (image.images, image.channels_in, image.height, image.width)),
                weight_operand((image.channels_out, depth, *image.kernel), self.config),
                *parameter_operands(image.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        """The image is cut into patches, then into tiles; so is the result."""
        tiles = super().layouts
        return {"data": Layout((self._data_stage(), *tiles["data"].stages)),
                "output": Layout((self._output_stage(), *tiles["output"].stages))}

    def _data_stage(self) -> Stage:
        image, (rows, columns) = self.image, self.patch.inputs
        down, across = (along(image, axis, *each).step for axis, each in enumerate(
            zip(self.patch.inputs, self.patch.outputs, strict=True)))
        return _patch_stage((image.images, image.channels_in, image.height, image.width),
                            groups_of(image), self.patch.inputs, (down, across),
                            (self.spec.height, self.spec.width),
                            (self.spec.pad[0] * rows - image.pad[0],
                             self.spec.pad[2] * columns - image.pad[2]), image.zero_point_in)

    def _output_stage(self) -> Stage:
        image = self.image
        return _patch_stage((image.images, image.channels_out, *image.out_shape), groups_of(image),
                            self.patch.outputs, self.patch.outputs, self.spec.out_shape, (0, 0), 0)

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        spec = self.spec
        data = self._data_stage().apply(given["data"])
        return super().pack({
            **given, **{name: self._repeat(given[name]) for name in PARAMETERS},
            "data": data.reshape(spec.images, spec.channels_in, spec.height, spec.width),
            "weights": patch_weights(given["weights"], self.image, self.patch)})

    def _repeat(self, values: Array) -> Array:
        """Numbers of channels, for all results of a patch."""
        groups = values.reshape(groups_of(self.image), 1, -1)
        return np.repeat(groups, self.patch.results, axis=1).ravel()

    def unpack(self, output: Array) -> Array:
        return self.layouts["output"].unpack(output)


def _patch_stage(shape: tuple[int, int, int, int], groups: int, patch: tuple[int, int],
                 steps: tuple[int, int], size: tuple[int, int], starts: tuple[int, int],
                 fill: int) -> Stage:
    """(n, channel, y, x) → (n, group, i, j, channel of the group, y, x)"""
    images, channels = shape[:2]
    own = channels // groups
    return Stage(shape, (images, groups, *patch, own, *size),
                 ((0, 1), (1, own), (2, 1), (3, 1), (1, 1), (2, steps[0]), (3, steps[1])),
                 (0, 0, *starts), fill)


def patch_weights(weights: Array, spec: Conv2d, patch: Patch) -> Array:
    """(outputs, inputs, y, x) → (outputs of patches, inputs of patches, y, x)"""
    after, groups = patch_convolution(spec, patch), groups_of(spec)
    outputs, depth = len(weights) // groups, weights.shape[1]
    found = np.zeros((groups, *patch.outputs, outputs, *patch.inputs, depth, *after.kernel),
                     weights.dtype)
    plain = weights.reshape(groups, outputs, *weights.shape[1:])
    for a, b, i, j in product(*map(range, (*patch.outputs, *spec.kernel))):
        (y, row), (x, column) = (
            divmod(result * step + tap * dilation, pixels) for result, step, tap, dilation, pixels
            in zip((a, b), spec.stride, (i, j), spec.dilation, patch.inputs, strict=True))
        found[:, a, b, :, row, column, :, y, x] = plain[:, :, :, i, j]
    return found.reshape(-1, patch.pixels * depth, *after.kernel)


def patches_of(spec: Conv2d, config: Config) -> Iterator[Patch]:
    """Patches without the pixels that no result sees, and patches for channels that leave lanes
    empty: of the results as many as tiles hold, with patches of the input between which results
    repeat, or of all that they see."""
    inputs, outputs = (each // groups_of(spec) for each in (spec.channels_in, spec.channels_out))
    if _leaves_pixels(spec):
        yield USED
    if _fill_tiles(spec, inputs, outputs, config) or spec.planes > 1 or (
            spec.wide or max(spec.columns_in, spec.columns_out) > 1):
        return
    few = max(config.block_in, inputs if inputs % config.block_in == 0 else PAIR * inputs)
    for rows, columns in product(*([each for each in SIZES if each <= max(1, size)]
                                   for size in spec.out_shape)):
        if not rows * columns <= max(config.block_in, config.block_out):
            continue
        for down, across in product(sizes_of(spec, 0, rows), sizes_of(spec, 1, columns)):
            patch = Patch((down, across), (rows, columns))
            overlaps = bool(rows * spec.stride[0] % down or columns * spec.stride[1] % across)
            if (patch.results == 1 and (groups_of(spec) == 1 or not overlaps)) or not (
                    patch.pixels * inputs <= (MOST_LANES if overlaps else few)):
                continue                # the former is a plain convolution, perhaps a folded one
            if _is_within_limits(spec, patch):
                yield patch


def sizes_of(spec: Conv2d, axis: int, results: int) -> list[int]:
    """Sizes of patches of the input: parts of what lies between results, or all that these see."""
    step, all_of_it = results * spec.stride[axis], seen(spec, axis, results)
    own = _divisors(step)
    return own if all_of_it in own else [*own, all_of_it]


def _leaves_pixels(spec: Conv2d) -> bool:
    """Whether a kernel of one tap leaves pixels between its results out."""
    return (spec.kernel == (1, 1) and max(spec.stride) > 1 and spec.planes == 1 and not spec.wide
            and max(spec.columns_in, spec.columns_out) == 1)


def _fill_tiles(spec: Conv2d, inputs: int, outputs: int, config: Config) -> bool:
    """Whether channels fill their tiles. The last tile of a group is partly empty as often as there
    are groups; of a plain convolution, it is one of many."""
    if groups_of(spec) == 1:
        return inputs >= config.block_in and outputs >= config.block_out
    return inputs % config.block_in == 0 and outputs % config.block_out == 0


def _is_within_limits(spec: Conv2d, patch: Patch) -> bool:
    """Whether extents of the convolution of patches are those that a convolution may have."""
    sizes = (along(spec, axis, patch.inputs[axis], patch.outputs[axis]).size for axis in range(2))
    return max(*sizes, spec.channels_in * patch.pixels,
               spec.channels_out * patch.results) <= LARGEST


def _divisors(step: int) -> list[int]:
    return [each for each in range(1, step + 1) if step % each == 0]


def least_cycles(spec: Conv2d, config: Config, patch: Patch, products: int) -> float:
    """Of a convolution of patches with so many tile products for a pixel and tap, on the array or
    the bus."""
    y, x = (along(spec, axis, patch.inputs[axis], patch.outputs[axis]) for axis in range(2))
    inputs, outputs = (blocks_of(each, block) for each, block in (
        (spec.channels_in * patch.pixels, config.block_in),
        (spec.channels_out * patch.results, config.block_out)))
    images, taps = blocks_of(spec.images, config.batch), y.taps * x.taps
    pixels = images * y.outputs * x.outputs
    moved = (images * inputs * y.size * x.size * config.tile_bytes(Buffer.INP)
             + pixels * outputs * config.tile_bytes(Buffer.OUT)
             + products * taps * config.tile_bytes(Buffer.WGT))
    return max(pixels * taps * products, moved / config.bus_bytes)


def _least_plain(spec: Conv2d, config: Config, patch: Patch) -> float:
    products = blocks_of(spec.channels_in * patch.pixels, config.block_in) * blocks_of(
        spec.channels_out * patch.results, config.block_out)
    return least_cycles(spec, config, patch, products)


def forms_of(spec: Conv2d, config: Config) -> Iterable[PatchedForm]:
    """The most promising patches of a convolution; none where they gain nothing."""
    ordered = sorted(patches_of(spec, config), key=lambda patch: _least_plain(spec, config, patch))
    if not ordered:
        return
    best = min(_least_plain(fold_convolution(spec, fold), config, UNPATCHED)
               for fold in folds_of(spec, config))
    for patch in ordered[:MOST_PATCHES]:
        if patch == USED or _least_plain(spec, config, patch) < WORTH * best:
            for form in plain_forms(patch_convolution(spec, patch), config):
                yield PatchedForm(**vars(form), image=spec, patch=patch)
