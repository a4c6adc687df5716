"""Layers: nodes compiled for the accelerator, each seen with the layouts of what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...isa.config import Config
from ...isa.program import Program
from ...isa.timing import MemoryTiming
from ..errors import CompileError
from ..graph.types import Array, Shape
from ..operators.catalogue import operator_of
from ..operators.choice import INSTRUCTIONS, Cost, different, ranked
from ..operators.conv2d import Conv2d, plain_forms
from ..operators.dense import Dense
from ..operators.description import LARGEST
from ..operators.elementwise import Elementwise
from ..operators.first_layer import FoldedForm
from ..operators.form import Form
from ..operators.kernel import OUTPUT, Built, Kernel, Options
from ..operators.layout import Layout, tiled_images
from ..operators.packing import checked
from .interleave import halved
from .task import RefusalError, Task

CYCLES_PER_TRIED = 128          # of a layer, for each instruction of schedules that are tried
REMEMBERED = 16                 # layouts whose positions are kept


class Misfit(Exception):        # noqa: N818    # no error: the layer begins another program
    """A layer wants a tensor in another layout than the program has it."""


@dataclass(frozen=True, eq=False)
class CompiledLayer:
    """A node's kernel, the layouts in which it reads and writes tensors of the graph, and its
    constants, packed."""

    node: str
    kernel: Kernel
    reads: Mapping[str, tuple[str, Layout]]         # tensor of the program → tensor, layout
    output: Layout
    constants: Mapping[str, Array]
    parts: tuple[str, ...] = ()                     # other nodes that are computed with it
    with_next: bool = False                         # at the same time as the layer after it


@dataclass
class LayerCompiler:
    """Compiles layers, each kind once."""

    config: Config
    cost: Cost | None = None
    memory: MemoryTiming | None = None

    def __post_init__(self) -> None:
        self.kernels: dict[tuple[Any, bool, bool], Kernel] = {}
        self.times: dict[int, tuple[Program, int]] = {}       # by the identity of their code
        self.built: Built = {}
        self.together: dict[tuple[int, int, tuple[str, ...]], int] = {}     # by two kernels

    def kernel(self, spec: Any, *, plain: bool = False, half: bool = False) -> Kernel:
        """The kernel of a description; `plain`, if the host cannot fold the input; `half`, if it
        has half of every scratchpad."""
        key = spec, plain, half
        if key not in self.kernels:
            config = halved(self.config) if half else self.config
            any_form = not plain or not isinstance(self.kernel(spec).form, FoldedForm)
            if plain and any_form and not half:
                return self.kernel(spec)
            # Beside another layer one behaves unlike alone: then estimates decide.
            found = self._best(spec, config, None if any_form else plain_forms(spec, config)[0],
                               None if half or self.cost is None else self._time)
            self.kernels[key] = replace(found, program=replace(found.program, config=self.config))
        return self.kernels[key]

    def estimate(self, spec: Any) -> float:
        """What a description takes, roughly, without compiling it."""
        operator = operator_of(spec)
        return ranked(operator.template, operator.forms_of(spec, self.config),
                      self.memory or MemoryTiming())[0].estimate

    def least(self, spec: Any) -> float:
        """What no schedule of a description can do without."""
        return min(form.work.bound(self.config, self.memory or MemoryTiming()).cycles
                   for form in operator_of(spec).forms(spec, self.config))

    def _best(self, spec: Any, config: Config, form: Form | None, cost: Cost | None) -> Kernel:
        """The longer a layer takes, the more schedules are tried."""
        timing, operator = self.memory or MemoryTiming(), operator_of(spec)
        least = min(each.work.bound(config, timing).cycles for each in (
            operator.forms_of(spec, config) if form is None else (form,)))
        return operator.compiled(spec, config, Options(
            form=form, cost=cost, memory=timing, built=self.built,
            effort=max(INSTRUCTIONS, int(least / CYCLES_PER_TRIED))))

    def alternatives(self, kernel: Kernel, most: int) -> Iterator[Kernel]:
        """Other schedules of the same form, the most promising first, of `most` that differ."""
        form: Any = kernel.form
        operator = operator_of(form.description)
        if operator.compile is not None:
            return                                  # one of its own, with parts of their own
        ordered = ranked(operator.template, [form], self.memory or MemoryTiming())
        for candidate in (ordered[0], *different(ordered, most)):
            if candidate.knobs != kernel.knobs:
                try:
                    other = operator.compiled(form.description, form.config, Options(
                        form=form, knobs=candidate.knobs, built=self.built))
                except CompileError:
                    continue                        # too many instructions
                yield replace(other, program=replace(other.program, config=self.config))

    def cycles(self, kernel: Kernel) -> float:
        """What a kernel takes alone: as the cost says, or at least."""
        return self.bound(kernel) if self.cost is None else self._time(kernel.program)

    def bound(self, kernel: Kernel) -> float:
        """What no schedule of its form can do without."""
        return kernel.form.work.bound(self.config, self.memory or MemoryTiming()).cycles

    def _time(self, program: Program) -> int:
        """What a program costs. Whoever chose a kernel has asked already."""
        assert self.cost is not None, "there is a cost to ask"
        known = self.times.get(id(program.code))
        if known is None:                           # kept, so that no other gets its identity
            known = self.times[id(program.code)] = program, self.cost(program)
        return known[1]

    def layer(self, node: str, task: Task, shapes: Mapping[str, Shape], result: Shape,
              made: Mapping[str, Layout], *, half: bool = False) -> CompiledLayer:
        """A node's layer, where some tensors are in a program already. Raises Misfit if one of
        them lies there in another layout than the layer can take."""
        if isinstance(task.spec, Elementwise):
            return self._elementwise(node, task, shapes, made, half=half)
        tensor = task.reads["data"]
        one_row = isinstance(task.spec, Dense) and task.spec.rows == self.config.batch == 1
        if one_row and tensor in made and made[tensor].size % self.config.block_in == 0:
            task = self._by_positions(task, made[tensor])
            kernel = self.kernel(task.spec, half=half)
            layouts = {**kernel.form.layouts, "data": made[tensor]}
        else:
            kernel = self.kernel(task.spec, half=half,
                                 plain=type(task.spec) is Conv2d and tensor in made)
            layouts = {name: layout if task.axes is None else layout.on(
                result if name == OUTPUT else shapes[task.reads[name]], task.axes)
                for name, layout in kernel.form.layouts.items()}
        reads = {operand: (each, layouts[operand]) for operand, each in task.reads.items()}
        if any(each in made and not same_bytes(made[each], layout)
               for each, layout in reads.values()):
            raise Misfit
        return CompiledLayer(node, kernel, reads, layouts[OUTPUT], self._constants(kernel, task))

    def _constants(self, kernel: Kernel, task: Task) -> dict[str, Array]:
        """Weights and parameters as the program takes them."""
        form = kernel.form
        blank = {each.name: np.zeros(each.shape, np.int8) for each in form.operands
                 if each.name in task.reads}
        packed = form.pack(checked(form.operands, {**blank, **task.constants}))
        return {name: each for name, each in packed.items() if name not in task.reads}

    def _by_positions(self, task: Task, layout: Layout) -> Task:
        """A fully connected layer of one row over tiles as they lie: its weights are moved to where
        their inputs are."""
        spec = task.spec
        assert isinstance(spec, Dense), "others have no free order of inputs"
        where = positions(layout)
        weights = task.constants["weights"]
        moved = np.where(where > 0, weights[:, np.maximum(where - 1, 0)], 0).astype(np.int8)
        return replace(task, spec=replace(spec, inputs=layout.size),
                       constants={**task.constants, "weights": moved})

    def _elementwise(self, node: str, task: Task, shapes: Mapping[str, Shape],
                     made: Mapping[str, Layout], *, half: bool) -> CompiledLayer:
        """Tile by tile, in whatever layout the operands have."""
        present = [made[tensor] for tensor in task.reads.values() if tensor in made]
        if any(not same_bytes(present[0], other) for other in present[1:]):
            raise Misfit
        shape = next(iter(shapes[tensor] for tensor in task.reads.values()))
        layout = present[0] if present else self.natural(shape)
        kernel = self.kernel(self.spec_of(task, layout), half=half)
        return CompiledLayer(node, kernel, {operand: (tensor, layout) for operand, tensor
                                            in task.reads.items()}, layout,
                             self._constants(kernel, task))

    def spec_of(self, task: Task, layout: Layout) -> Elementwise:
        """An element-wise operation on all tiles of a layout."""
        lanes = self.config.batch * self.config.block_out
        if layout.size % lanes:
            raise RefusalError(f"tiles of {lanes} lanes do not hold a tensor of {layout.size}")
        tiles = layout.size // lanes
        rows = next(rows for rows in range(-(-tiles // LARGEST), tiles + 1) if tiles % rows == 0)
        assert isinstance(task.spec, Elementwise), "others have a layout of their own"
        return replace(task.spec, channels=self.config.block_out, images=self.config.batch,
                       height=rows, width=tiles // rows)

    def natural(self, shape: Shape) -> Layout:
        """The layout of a tensor that only element-wise operations read: its last axis in
        lanes."""
        *rows, channels = shape if shape else (1,)
        count = int(np.prod(rows, dtype=np.int64))
        return tiled_images(1, channels, 1, count, self.config.batch,
                            self.config.block_out).on((1, 1, count, channels), (0, 3, 1, 2))


def same_bytes(one: Layout, other: Layout) -> bool:
    """Whether tensors of the same elements lie in the same bytes in both layouts. What lies
    between elements does not matter: whoever reads it multiplies it with zero."""
    if one == other:
        return True
    return one.size == other.size and not _is_filled(one) and not _is_filled(other) and bool(
        (positions(one) == positions(other)).all())


def _is_filled(layout: Layout) -> bool:
    """Whether elements that are not there have a meaning: a border that the host adds."""
    return any(stage.fill for stage in layout.stages)


@lru_cache(REMEMBERED)
def positions(layout: Layout) -> Array:
    """For each element of the tiles, which element of the tensor it is, counted from 1; 0 where
    there is none."""
    count = int(np.prod(layout.source, dtype=np.int64))
    return layout.pack(np.arange(1, count + 1, dtype=np.int64)).ravel()
