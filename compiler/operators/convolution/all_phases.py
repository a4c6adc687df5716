"""Transposed convolutions whose phases are all computed in one step, from the same input.

Where every phase has as many taps as the others, and reads as much further on as the one before,
one tensor expression says what all of them are:

    sums[y, py, x, px] = Σ padded[y + py × step + ky, x + px × step + kx] × weights[py, px, ky, kx]

The input is loaded once, not once for each phase, and results of all phases leave in whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...expression.expression import both, select, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Scope
from ...schedule.schedule import Schedule
from ..cost_model import Column, Mask, Steps, all_of
from ..description import Description
from ..divisions import even_sizes, fair_sizes, grid, some_sizes
from ..form import Form, Template, TensorForm, blocks_of, requantize_sum
from ..layout import Layout
from ..packing import Array, Operand
from ..work import Work

MOST_RESIDENT = 0.5         # of the tokens there are, buffers of one kind


@dataclass(frozen=True)
class Side:
    """All phases along one axis. A phase reads `step` elements further on than the one before."""

    phases: int
    taps: int
    dilation: int
    step: int
    before: int             # elements of border before the input
    size: int               # of the input with its border
    outputs: int            # of each phase

    def reach(self, outputs: Column) -> Column:
        """Elements of the input for some outputs of all phases."""
        return (outputs - 1) + (self.phases - 1) * self.step + (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: output blocks, rows and columns of every phase, input
    blocks."""

    blocks: int
    rows: int
    columns: int
    depth: int


@dataclass(frozen=True, kw_only=True)
class AllPhasesForm(TensorForm):
    """All phases in one expression. Tensors are those of `phased`, the form phase by phase."""

    phased: Form
    rows: Side
    columns: Side
    data: Tensor
    padded: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor

    @property
    def phases(self) -> int:
        return self.rows.phases * self.columns.phases

    @property
    def work(self) -> Work:
        return self.phased.work

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.phased.operands

    @property
    def layouts(self) -> dict[str, Layout]:
        return self.phased.layouts

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        return self.phased.pack(given)

    def unpack(self, output: Array) -> Array:
        return self.phased.unpack(output)


def form_of(phased: Form, spec: Description, rows: Side, columns: Side) -> AllPhasesForm:
    """The expression of all phases, on the tensors of a form."""
    config, shapes = phased.config, phased.shapes
    zero_point, function = spec.zero_point_in, spec.requantization()  # type: ignore[attr-defined]
    data, weights = (placeholder(name, shapes[name], "int8") for name in ("data", "weights"))
    parameters = placeholder("parameters", shapes["parameters"], "int32")
    images, depth, height, width, *tile = shapes["data"]
    top, left = rows.before, columns.before
    padded = compute("padded", (images, depth, rows.size, columns.size, *tile),
                     lambda n, c, y, x, b, i: select(
                         both(top <= y, y < top + height, left <= x, x < left + width),
                         data[n, c, y - top, x - left, b, i], zero_point))
    c, ky, kx, k = (reduce_axis(name, extent) for name, extent in (
        ("c", depth), ("ky", rows.taps), ("kx", columns.taps), ("k", config.block_in)))
    outputs = shapes["output"][1]
    shape = (images, outputs, rows.outputs, rows.phases, columns.outputs, columns.phases,
             config.batch, config.block_out)
    sums = compute("sums", shape, lambda n, o, y, py, x, px, b, j: total(
        padded[n, c, y + py * rows.step + ky * rows.dilation,
               x + px * columns.step + kx * columns.dilation, b, k].cast("int32")
        * weights[py * columns.phases + px, o, c, ky, kx, j, k].cast("int32"), c, ky, kx, k))
    output = compute("output", shape, lambda n, o, y, py, x, px, b, j: requantize_sum(
        function, sums[n, o, y, py, x, px, b, j], parameters, (py * columns.phases + px, o),
        (b, j)))
    return AllPhasesForm(spec=spec, config=config, function=function, phased=phased, rows=rows,
                         columns=columns, data=data, padded=padded, weights=weights,
                         parameters=parameters, sums=sums, output=output)


def schedule(form: AllPhasesForm, knobs: Knobs) -> Schedule:
    """The template: weights of some output blocks stay while the image passes by; every step loads
    a box of the input and computes what all phases make of it."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    parameters = plan.cache_read(form.parameters, Scope.ACC, inside)
    weights = plan.cache_read(form.weights, Scope.WGT, form.sums)
    sums, inside, output = (plan.replacement_of(each) for each in (form.sums, inside, form.output))
    plan[form.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, o, y, py, x, px, b, j = last.leaves
    o_far, o_near = last.split(o, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    last.reorder(o_far, n, y_far, x_far, o_near, y_near, py, x_near, px, b, j)
    for tensor in (sums, inside):
        plan[tensor].compute_at(last, x_far)
        plan[tensor].double_buffer(x_far)
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)
    plan[parameters].compute_at(last, o_far)
    plan[parameters].keep(2)

    stage = plan[sums]
    n, o, y, py, x, px, b, j, c, ky, kx, k = stage.leaves
    c_far, c_near = stage.split(c, knobs.depth)
    stage.reorder(c_far, n, py, px, o, y, x, c_near, ky, kx, b, j, k)
    stage.tensorize(b, "gemm")
    plan[form.padded].compute_at(stage, c_far)
    plan[form.padded].keep(int(_resident_inputs(form, knobs)))
    plan[weights].compute_at(stage, c_far)
    plan[weights].keep(int(_resident_weights(form, knobs)))
    plan.load_first(weights)
    for loaded in (form.padded, weights, parameters):
        plan[loaded].dma(plan[loaded].leaves[0])
    last.dma(o_near)
    return plan


def _far(form: AllPhasesForm, knobs: Knobs) -> tuple[Column, Column, Column]:
    """Groups of output blocks, steps in each, and pieces of a step."""
    images, outputs = form.output.shape[:2]
    return (blocks_of(outputs, knobs.blocks),
            images * blocks_of(form.rows.outputs, knobs.rows)
            * blocks_of(form.columns.outputs, knobs.columns),
            blocks_of(form.data.shape[1], knobs.depth))


def _box(form: AllPhasesForm, knobs: Knobs) -> tuple[Column, Column]:
    """Rows and columns of the input that a step needs."""
    return (np.minimum(form.rows.reach(knobs.rows), form.rows.size),
            np.minimum(form.columns.reach(knobs.columns), form.columns.size))


def _tiles(form: AllPhasesForm, knobs: Knobs) -> dict[Buffer, Column]:
    """Tiles of one buffer in each scratchpad: of a piece, or of the sums or results of a step."""
    results = form.phases * knobs.blocks * knobs.rows * knobs.columns
    return {Buffer.INP: knobs.depth * prod(_box(form, knobs)),
            Buffer.WGT: form.phases * knobs.blocks * knobs.depth * form.rows.taps
            * form.columns.taps, Buffer.ACC: results, Buffer.OUT: results}


def _resident_weights(form: AllPhasesForm, knobs: Knobs) -> Column:
    """How many pieces of the weights stay on the chip: all of them, or as many as fit."""
    groups, _, pieces = _far(form, knobs)
    room = form.config.tiles(Buffer.WGT) // _tiles(form, knobs)[Buffer.WGT]
    return np.maximum(1, np.minimum(groups * pieces, np.minimum(room, _most_resident(form))))


def _resident_inputs(form: AllPhasesForm, knobs: Knobs) -> Column:
    """How many pieces of the input stay on the chip: all, for output blocks that follow, or two."""
    _, steps, pieces = _far(form, knobs)
    fit = steps * pieces * _tiles(form, knobs)[Buffer.INP] <= form.config.tiles(Buffer.INP)
    return np.where(fit & (steps * pieces <= _most_resident(form)), steps * pieces, 2)


def _most_resident(form: AllPhasesForm) -> int:
    return max(2, int(MOST_RESIDENT * form.config.token_limit))


def largest(form: AllPhasesForm) -> Knobs:
    return Knobs(blocks=form.output.shape[1], rows=form.rows.outputs,
                 columns=form.columns.outputs, depth=form.data.shape[1])


def grids(form: AllPhasesForm) -> Iterator[Knobs]:
    yield grid(Knobs, blocks=even_sizes(form.output.shape[1]),
               depth=some_sizes(form.data.shape[1]), columns=fair_sizes(form.columns.outputs),
               rows=fair_sizes(form.rows.outputs))


def fits(form: AllPhasesForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room, twice."""
    need = _tiles(form, knobs)
    need[Buffer.ACC] = need[Buffer.ACC] + PARAMETER_TILES * form.phases * knobs.blocks
    return all_of(2 * tiles <= form.config.tiles(buffer) for buffer, tiles in need.items())


def estimate(form: AllPhasesForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly."""
    config, tiles = form.config, _tiles(form, knobs)
    groups, steps, pieces = _far(form, knobs)
    height, width = _box(form, knobs)
    size = {buffer: count * config.tile_bytes(buffer) for buffer, count in tiles.items()}
    stays = _resident_weights(form, knobs) >= pieces
    return Steps(
        groups=groups, steps=steps, pieces=pieces,
        products=tiles[Buffer.ACC] * knobs.depth * form.rows.taps * form.columns.taps,
        vectors=tiles[Buffer.ACC], inp=size[Buffer.INP],
        runs=knobs.depth * np.where(width >= form.data.shape[3], 1, height),
        wgt=size[Buffer.WGT], out=size[Buffer.OUT],
        out_runs=knobs.blocks * np.where(knobs.columns >= form.columns.outputs, 1,
                                         knobs.rows * form.rows.phases),
        parameters=form.phases * knobs.blocks * PARAMETER_TILES * config.tile_bytes(Buffer.ACC),
        inp_stays=(_resident_inputs(form, knobs) >= steps * pieces) & stays, wgt_stays=stays,
        wgt_ahead=(_resident_weights(form, knobs) > pieces) | (groups == 1),
    ).cycles(config, memory)


TEMPLATE: Template[AllPhasesForm, Knobs] = Template(
    knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate, schedule=schedule)
