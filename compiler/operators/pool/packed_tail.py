"""Averages of whole images whose last channels the host packs into tiles, several pixels in each.

40 channels take three tiles of 16 lanes for each pixel, the last of them half empty. Where the host
writes two pixels into it, half as many are loaded, and the MAC array adds both up while it sums:

    tail[y, x, w × 8 + c] = data[32 + c, w × 14 + y, x]        two halves of 28 rows
    sums[32 + c]          = Σ tail[y, x, lane] × fold[c, lane], fold = 1 where lane % 8 = c

All other channels are an average as any. Both are one program. No other operator writes such tiles:
this is for layers between a host and a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.program import Program
from ...accelerator.selection.intrinsic import Intrinsic, requantize
from ...expression.expression import total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Buffer as Memory
from ...nest.nest import Nest, Scope
from ...schedule.schedule import Schedule
from ..choice import CLOSE, columns_of
from ..divisions import even_sizes
from ..form import Form, blocks_of, requantize_sum
from ..kernel import AnyOperator, Kernel, Options, best_kernel, build_nest
from ..layout import Layout, Stage, tile_images
from ..packing import Array, Operand, weights_in_dram
from ..program_cache import cached_program
from ..work import Work
from .average import AverageForm
from .knobs import Knobs
from .pool import Kind, Pool, PoolForm, parameters

MOST_STEPS = 12                     # in which the tail may be loaded
MOST_SIZES = 4                      # of these steps
FOLD = "fold"


def ways_of(pool: Pool, config: Config) -> int:
    """Pixels whose last channels share a tile; 0 where none do."""
    tail = pool.channels % config.block_out
    whole = (pool.kind == Kind.AVERAGE and pool.out_shape == (1, 1) and not any(pool.pad)
             and pool.kernel == (pool.height, pool.width) and not pool.ties_to_even)
    if not whole or not tail or config.block_in != config.block_out:
        return 0
    ways = min(config.block_out // tail, pool.height)
    return ways if ways > 1 else 0


@dataclass(frozen=True, kw_only=True)
class TailForm:
    """The sums of the last channels in tensors, and how many tiles a step takes."""

    config: Config
    data: Tensor
    fold: Tensor
    parameters: Tensor
    sums: Tensor
    output: Tensor
    intrinsics: tuple[Intrinsic, ...]

    def schedule(self, size: int) -> Schedule:
        """Some tiles after the other, in two buffers, are added to one sum."""
        plan = Schedule(self.output)
        inside = plan.cache_write(self.output, Scope.OUT)
        loaded = [plan.cache_read(tensor, scope, plan.replacement_of(reader))
                  for tensor, scope, reader in ((self.parameters, Scope.ACC, inside),
                                                (self.fold, Scope.WGT, self.sums),
                                                (self.data, Scope.INP, self.sums))]
        stage = plan[plan.replacement_of(self.sums)]
        stage.scope = Scope.ACC
        n, c, y, x, b, j, row, column, k = stage.leaves
        far, near = stage.split(row, size)
        stage.reorder(far, n, c, y, x, near, column, b, j, k)
        stage.tensorize(b, "gemm")
        plan[loaded[-1]].compute_at(stage, far)
        plan[loaded[-1]].double_buffer(far)
        narrow = plan[plan.replacement_of(inside)]
        narrow.tensorize(narrow.leaves[-2], self.intrinsics[0].name)
        for tensor in loaded:
            plan[tensor].dma(plan[tensor].leaves[0])
        last = plan[plan.replacement_of(self.output)]
        last.dma(last.leaves[0])
        return plan


def tail_form(pool: Pool, config: Config) -> TailForm:
    """Sums of tiles with several pixels."""
    images, rows = blocks_of(pool.images, config.batch), blocks_of(pool.height,
                                                                   ways_of(pool, config))
    tile = config.batch, config.block_out
    data = placeholder("data", (images, 1, rows, pool.width, config.batch, config.block_in), "int8")
    fold = placeholder(FOLD, (1, config.block_out, config.block_in), "int8")
    numbers = placeholder("parameters", (1, 1, 1, PARAMETER_TILES, *tile), "int32")
    row, column, k = (reduce_axis(name, extent) for name, extent in (
        ("row", rows), ("column", pool.width), ("k", config.block_in)))
    sums = compute("sums", (images, 1, 1, 1, *tile), lambda n, c, y, x, b, j: total(
        data[n, c, row, column, b, k].cast("int32") * fold[0, j, k].cast("int32"), row, column, k))
    function = pool.requantization()
    output = compute("output", sums.shape, lambda n, c, y, x, b, j: requantize_sum(
        function, sums[n, c, y, x, b, j], numbers, (0, 0, 0), (b, j)))
    return TailForm(config=config, data=data, fold=fold, parameters=numbers, sums=sums,
                    output=output, intrinsics=(requantize(config, function),))


@dataclass(frozen=True, kw_only=True)
class PackedTailForm(Form):
    """An average of which the last channels share tiles. `body` is the form of all others, if there
    are any; `own` is the work of the average, whatever lies in tiles."""

    spec: Pool
    body: PoolForm | AverageForm | None
    own: Work

    @property
    def note(self) -> str:
        return f"the host packs the last channels of {ways_of(self.spec, self.config)} pixels"

    @property
    def work(self) -> Work:
        return self.own

    @property
    def blocks(self) -> int:
        return blocks_of(self.spec.channels, self.config.block_out)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the last block of the data, some rows are not used."""
        spec, config = self.spec, self.config
        images, tile = blocks_of(spec.images, config.batch), (config.batch, config.block_out)
        own = {} if self.body is None else self.body.shapes
        return {**own, FOLD: (1, config.block_out, config.block_in),
                "parameters": (1, 1, 1, PARAMETER_TILES, *tile),
                "data": (images, self.blocks, spec.height, spec.width, *tile),
                "output": (images, self.blocks, 1, 1, *tile)}

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels, spec.height, spec.width)),)

    @property
    def layouts(self) -> dict[str, Layout]:
        """That of the data is none: its last block has pixels in an order of their own."""
        spec, config = self.spec, self.config
        return {"output": tile_images(spec.images, spec.channels, 1, 1, config, config.block_out)}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        spec, config = self.spec, self.config
        images, _, height, width, batch, lanes = self.shapes["data"]
        tail, ways = spec.channels % lanes, ways_of(spec, config)
        last, rows = given["data"][:, spec.channels - tail:], blocks_of(height, ways)
        packed = Stage(last.shape, (images, rows, width, batch, ways, tail),
                       ((0, batch), (2, 1), (3, 1), (0, 1), (2, rows), (1, 1)), (0,) * 4
                       ).apply(last).reshape(images, rows, width, batch, ways * tail)
        data = np.zeros(self.shapes["data"], np.int8)
        data[:, -1, :rows, :, :, :ways * tail] = packed
        own: dict[str, Array] = {}
        if self.body is not None:
            own = self.body.pack({"data": given["data"][:, :-tail]})
            data[:, :-1] = own["data"].reshape(data[:, :-1].shape)
        fold = np.zeros(self.shapes[FOLD], np.int8)
        for lane in range(ways * tail):
            fold[0, lane % tail, lane] = 1
        return {**own, "data": data, FOLD: weights_in_dram(fold, config),
                "parameters": parameters(spec, config)}

    def unpack(self, output: Array) -> Array:
        return self.layouts["output"].unpack(output)

    def build(self, knobs: tuple[Knobs | None, int, bool], *, hide_latency: bool) -> Kernel:
        body, size, tail_first = knobs
        return compile_packed_tail(self, body, size, tail_first=tail_first,
                                   hide_latency=hide_latency)


def compile_packed_tail(form: PackedTailForm, body: Knobs | None, size: int, *, tail_first: bool,
                        hide_latency: bool = True) -> Kernel:
    """Both parts in one program, with knobs of the body, and so many rows of the tail in a step."""
    tail = tail_form(form.spec, form.config)

    @cache
    def loops() -> Nest:
        from ...accelerator.lower_schedule import lower_to_intrinsics
        from .pool_schedule import TEMPLATE
        last = lower_to_intrinsics(tail.schedule(size), form.config, tail.intrinsics)
        nests = {form.blocks - 1: last}
        if form.body is not None and body is not None:
            nests[0] = build_nest(TEMPLATE, form.body, body)
        return _join(form, dict(sorted(nests.items(), reverse=tail_first)))

    intrinsics = {each.name: each for each in (
        *(getattr(form.body, "intrinsics", ())), *tail.intrinsics)}

    def emit_program() -> Program:
        from ...accelerator.emission.emit import emit  # most programs are kept from before
        return emit(loops(), form.config, [*intrinsics.values()], hide_latency=hide_latency,
                    tables=len(form.tables))

    knobs = (body, size, tail_first)
    program = cached_program(emit_program, form.config, compile_packed_tail, form, knobs,
                             hide_latency)
    return Kernel(form, knobs, program, loops)


def _join(form: PackedTailForm, nests: Mapping[int, Nest]) -> Nest:
    """The loops of both parts, each by its first block, on the same tensors."""
    from ...nest.views import View, concatenate
    tensors = {name: Memory(name, shape, "int32" if name == "parameters" else "int8")
               for name, shape in form.shapes.items()}
    parts = [(nest, {buffer: View(tensors[buffer.name], offsets={1: start} if buffer.name in (
                         "data", "output") else {}) for buffer in (*nest.inputs, *nest.outputs)})
             for start, nest in nests.items()]
    inputs = tuple(each for name, each in tensors.items() if name != "output")
    return concatenate(parts, inputs, (tensors["output"],))


def pack_tail(operator: AnyOperator, spec: Pool, kernel: Kernel, options: Options) -> Kernel | None:
    """If the kernel of an average alone is far from its bound, one with a packed tail, if that is
    faster."""
    config, cost = kernel.program.config, options.cost
    assert cost is not None, "whoever calls this has one"
    work, cycles = kernel.form.work, cost(kernel.program)
    if not ways_of(spec, config) or cycles <= CLOSE * work.bound(config, options.memory).cycles:
        return None
    bodies: list[Kernel | None] = [None]
    if spec.channels > config.block_out:
        less = replace(spec, channels=spec.channels // config.block_out * config.block_out)
        bodies = [best_kernel(operator.template, [each], replace(options, hide_latency=True))
                  for each in operator.forms_of(less, config)
                  if not each.interleaves and columns_of(operator.template, each) is not None]
    found = [(cost(packed.program), number, packed) for number, packed in enumerate(
        compile_packed_tail(_form_of(spec, work, config, body), getattr(body, "knobs", None), size,
                            tail_first=first)
        for body in bodies for size in step_sizes(spec, config)
        for first in (False, True)[:1 + (body is not None)])]
    if not found or min(found)[0] >= cycles:
        return None
    _, _, best = min(found)
    packed: Kernel = best if options.hide_latency else best.form.build(
        best.knobs, hide_latency=False)
    return packed


def _form_of(pool: Pool, work: Work, config: Config, body: Kernel | None) -> PackedTailForm:
    form = None if body is None else body.form
    assert form is None or isinstance(form, PoolForm | AverageForm), "what pools have"
    return PackedTailForm(spec=pool, config=config, own=work, body=form)


def step_sizes(pool: Pool, config: Config) -> list[int]:
    """Rows of the tail that a step may take, of which two fit."""
    rows, room = blocks_of(pool.height, ways_of(pool, config)), config.tiles(Buffer.INP)
    return [size for size in even_sizes(rows)
            if 2 * size * pool.width <= room and blocks_of(rows, size) <= MOST_STEPS][:MOST_SIZES]
