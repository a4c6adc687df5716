"""Layers: nodes compiled for the accelerator, each seen with the layouts of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, zip_longest

import numpy as np

from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ...isa.program_key import program_digest
from ..errors import CompileError
from ..graph.types import Array, Shape
from ..operators.catalogue import operator_of
from ..operators.choice import INSTRUCTIONS, Cost, at_once, diverse_candidates, rank_candidates
from ..operators.convolution.conv2d import Conv2d
from ..operators.dense.dense import Dense
from ..operators.depthwise.conv_separable import ConvSeparable
from ..operators.description import LARGEST, Description
from ..operators.elementwise.lanewise import Lanewise
from ..operators.form import Form, FormKey
from ..operators.kernel import OUTPUT, Built, Kernel, KernelKey, Options
from ..operators.layout import Layout, memory_block, tile_images
from ..operators.packing import check_operands
from .linking.interleave_layers import halve_scratchpads
from .linking.on_chip_analysis import input_of
from .task import IMAGE_AXES, RefusalError, Task, image_axes

CYCLES_PER_TRIED = 128          # of a layer, for each instruction of schedules that are tried
REMEMBERED = 16                 # layouts whose positions are kept
AT_ONCE = 2                     # kernels that take their input at once, of each configuration ...
LOOKED_AT = 8                   # ... among this many
FOLDABLE = (Conv2d, ConvSeparable)      # descriptions with forms whose input the host folds


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
    stays: bool = False                             # its result, on the chip, for that one alone


Say = Callable[[str], None]      # what is being done now


def silent(doing: str) -> None:
    """Nobody wants to know."""


@dataclass
class LayerCompiler:
    """Compiles layers, each kind once."""

    config: Config
    cost: Cost | None = None
    memory: MemoryTiming | None = None
    say: Say = silent         # is told what is being done
    channel_axis: int | None = None         # of all images of a network

    def __post_init__(self) -> None:
        self.kernels: dict[tuple[Description, bool, bool], Kernel] = {}
        self.times: dict[str, int] = {}                       # by the digest of a program
        self.built: Built = {}
        self.whole: dict[Description, list[Kernel]] = {}            # that take their input at once
        self.packed: dict[tuple[str, FormKey], tuple[Mapping[str, Array], dict[str, Array]]] = {}
        self.together: dict[tuple[KernelKey, KernelKey, tuple[str, ...]], int] = {}

    def kernel(self, spec: Description, *, plain: bool = False, half: bool = False) -> Kernel:
        """The kernel of a description; `plain`, if the host cannot fold the input; `half`, if it
        has half of every scratchpad."""
        key = spec, plain, half
        if key not in self.kernels:
            config = halve_scratchpads(self.config) if half else self.config
            any_form = not plain or self.kernel(spec).form.handicap == 1
            if plain and any_form and not half:
                return self.kernel(spec)
            # Beside another layer one behaves unlike alone: then estimates decide.
            found = self._best(spec, config, None if any_form else _plain_form(spec, config),
                               None if half or self.cost is None else self._time)
            self.kernels[key] = replace(found, program=replace(found.program, config=self.config))
        return self.kernels[key]

    def estimate(self, spec: Description) -> float:
        """What a description takes, roughly, without compiling it."""
        operator = operator_of(spec)
        return rank_candidates(operator.template, operator.forms_of(spec, self.config),
                               self.memory or MemoryTiming())[0].estimate

    def least(self, spec: Description) -> float:
        """What no schedule of a description can do without."""
        forms: Iterable[Form] = operator_of(spec).forms(spec, self.config)
        return min(form.work.bound(self.config, self.memory or MemoryTiming()).cycles
                   for form in forms)

    def _best(self, spec: Description, config: Config, form: Form | None,
              cost: Cost | None) -> Kernel:
        """The longer a layer takes, the more schedules are tried."""
        timing, operator = self.memory or MemoryTiming(), operator_of(spec)
        least = min(each.work.bound(config, timing).cycles for each in (
            operator.forms_of(spec, config) if form is None else (form,)))
        return operator.compile_spec(spec, config, Options(
            form=form, cost=cost, memory=timing, built=self.built,
            effort=max(INSTRUCTIONS, int(least / CYCLES_PER_TRIED))))

    def alternatives(self, kernel: Kernel, most: int) -> Iterator[Kernel]:
        """Other schedules of the same form, the most promising first, of `most` that differ."""
        form = kernel.form
        operator = operator_of(form.description)
        if operator.compile is not None:
            return                                  # one of its own, with parts of their own
        ordered = rank_candidates(operator.template, [form], self.memory or MemoryTiming())
        for candidate in (ordered[0], *diverse_candidates(ordered, most)):
            if candidate.knobs != kernel.knobs:
                yield from self._compile_scheduled(form, candidate.knobs)

    def _compile_scheduled(self, form: Form, knobs: object) -> Iterator[Kernel]:
        """The kernel of a form with some knobs, if it can be compiled: there may be too many
        instructions, or no room."""
        with suppress(CompileError):
            kernel = operator_of(form.description).compile_spec(form.description, form.config,
                                                                Options(
                form=form, knobs=knobs, built=self.built))
            yield replace(kernel, program=replace(kernel.program, config=self.config))

    def at_once(self, kernel: Kernel) -> list[Kernel]:
        """Kernels of the same description and layouts that load all of their input at once, as if
        there were room; the most promising first, some of them on half of the scratchpads."""
        spec = kernel.form.description
        if spec not in self.whole:
            ways = [list(islice(self._whole(spec, config, kernel.form.layouts), AT_ONCE))
                    for config in self._roomy()]
            self.whole[spec] = [each for some in zip_longest(*ways) for each in some if each]
        return self.whole[spec]

    def _roomy(self) -> Iterator[Config]:
        """Half of the scratchpads, and all of them, but for activations: what is on the chip
        already need not find room there."""
        with suppress(CompileError):                # too small to be divided
            yield replace(halve_scratchpads(self.config), inp_bytes=max(
                self.config.inp_bytes, self.config.out_bytes))
        yield replace(self.config, inp_bytes=max(self.config.inp_bytes, self.config.out_bytes))

    def _whole(self, spec: Description, config: Config,
               layouts: Mapping[str, Layout]) -> Iterator[Kernel]:
        operator, timing = operator_of(spec), self.memory or MemoryTiming()
        if operator.compile is not None:
            return
        for form in operator.forms_of(spec, config):
            if form.layouts == layouts:
                for knobs in at_once(operator.template, form, timing)[:LOOKED_AT]:
                    yield from (each for each in self._compile_scheduled(form, knobs)
                                if input_of(each.program, "data") is not None)

    def with_kernel(self, layer: CompiledLayer, task: Task, kernel: Kernel) -> CompiledLayer:
        """A layer over a tensor of its program, computed by another kernel of its description."""
        if self._is_one_row(task, layer.reads["data"][1]):
            task = self._by_positions(task, layer.reads["data"][1])
        return replace(layer, kernel=kernel,
                       constants=self._constants(layer.node, kernel, task))

    def cycles(self, kernel: Kernel) -> float:
        """What a kernel takes alone: as the cost says, or at least."""
        return self.lower_bound(kernel) if self.cost is None else self._time(kernel.program)

    def lower_bound(self, kernel: Kernel) -> float:
        """What no schedule of its form can do without."""
        return kernel.form.work.bound(self.config, self.memory or MemoryTiming()).cycles

    def _time(self, program: Program) -> int:
        """What a program costs. Whoever chose a kernel has asked already."""
        assert self.cost is not None, "there is a cost to ask"
        name = program_digest(program)
        if name not in self.times:
            self.times[name] = self.cost(program)
        return self.times[name]

    def layer(self, node: str, task: Task, shapes: Mapping[str, Shape], result: Shape,
              made: Mapping[str, Layout], *, half: bool = False) -> CompiledLayer:
        """A node's layer, where some tensors are in a program already. Raises Misfit if one of
        them lies there in another layout than the layer can take."""
        if isinstance(task.spec, Lanewise):
            return self._lanewise(node, task, shapes, made, half=half)
        tensor = task.reads.get("data", "")
        if tensor in made and self._is_one_row(task, made[tensor]):
            task = self._by_positions(task, made[tensor])
            kernel = self.kernel(task.spec, half=half)
            layouts = {**kernel.form.layouts, "data": made[tensor]}
        else:
            kernel = self.kernel(task.spec, half=half,
                                 plain=type(task.spec) in FOLDABLE and tensor in made)
            layouts = {name: layout if task.axes is None else layout.on(
                result if name == OUTPUT else shapes[task.reads[name]], task.axes)
                for name, layout in kernel.form.layouts.items() if name in (OUTPUT, *task.reads)}
        reads = {operand: (each, layouts[operand]) for operand, each in task.reads.items()}
        if any(each in made and not same_bytes(made[each], layout)
               for each, layout in reads.values()):
            raise Misfit
        return CompiledLayer(node, kernel, reads, layouts[OUTPUT],
                             self._constants(node, kernel, task))

    def _constants(self, node: str, kernel: Kernel, task: Task) -> dict[str, Array]:
        """Weights and parameters as the program takes them, which are packed once for each form: a
        node is asked for again, with half of the scratchpads or another schedule."""
        form = kernel.form
        given, known = self.packed.get((node, form.key), (None, {}))
        if given is not task.constants:             # those of another task of the node
            blank = {each.name: np.zeros(each.shape, np.int8) for each in form.operands
                     if each.name in task.reads}
            packed = form.packed(check_operands(form.operands, {**blank, **task.constants}))
            known = {name: each for name, each in packed.items() if name not in task.reads}
            self.packed[node, form.key] = task.constants, known
        return known

    def _is_one_row(self, task: Task, layout: Layout) -> bool:
        """Whether it is a fully connected layer that takes tiles as they lie."""
        return isinstance(task.spec, Dense) and task.spec.rows == self.config.batch == 1 and (
            layout.size % self.config.block_in == 0)

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

    def _lanewise(self, node: str, task: Task, shapes: Mapping[str, Shape],
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
                             self._constants(node, kernel, task))

    def spec_of(self, task: Task, layout: Layout) -> Lanewise:
        """An element-wise operation on all tiles of a layout."""
        lanes = self.config.batch * self.config.block_out
        if layout.size % lanes:
            raise RefusalError(f"tiles of {lanes} lanes do not hold a tensor of {layout.size}")
        tiles = layout.size // lanes
        rows = next(rows for rows in range(-(-tiles // LARGEST), tiles + 1) if tiles % rows == 0)
        assert isinstance(task.spec, Lanewise), "others have a layout of their own"
        return replace(task.spec, channels=self.config.block_out, images=self.config.batch,
                       height=rows, width=tiles // rows)

    def natural(self, shape: Shape) -> Layout:
        """The layout of a tensor that only element-wise operations read: that of images, if it may
        be some, or else with its last axis in lanes."""
        block = memory_block(self.config, self.config.block_out)
        if self.channel_axis is not None and len(shape) == len(IMAGE_AXES):
            axes = image_axes(self.channel_axis)
            images, channels, height, width = (shape[axis] for axis in axes)
            return tile_images(images, channels, height, width, self.config.batch, block).on(
                shape, axes)
        *rows, channels = shape if shape else (1,)
        count = int(np.prod(rows, dtype=np.int64))
        return tile_images(1, channels, 1, count, self.config.batch, block).on(
            (1, 1, count, channels), image_axes(3))


def _plain_form(spec: Description, config: Config) -> Form:
    """The first form of a description that leaves nothing to the host."""
    form: Form = next(each for each in operator_of(spec).forms_of(spec, config)
                      if each.handicap == 1)
    return form


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
