"""Compiled operators: from a description to a program, with every step in between to look at.

    description ─ forms ─► candidates ─ the fastest ─► nest ─► program
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy.typing as npt

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ..errors import CompileError
from .choice import Candidate, Cost, fastest, rank_candidates
from .description import Description
from .ends.cut_ends import WHOLE, best_ends, cut_ends
from .form import Form, FormKey, FormT, KnobsT, Template
from .knob_checks import check_knobs
from .packing import Array, check_operands
from .program_cache import cached_program
from .segment_sizes import OUTPUT, check_sizes

if TYPE_CHECKING:
    from ..nest.nest import Nest

REMEMBERED = 64             # descriptions whose forms are kept


DescriptionT = TypeVar("DescriptionT", bound=Description)
KernelKey: TypeAlias = tuple[FormKey, object]       # of a form, and knobs
Built = dict[KernelKey, "Kernel"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to compile: options that apply to every operator."""

    form: Form | None = None    # the one to take; by default the one that is expected to be best
    knobs: object = None        # of its template; by default the best that are found
    hide_latency: bool = True   # without it, engines take turns, on the same schedule
    cost: Cost | None = None    # cycles of a program; without it, estimates decide
    memory: MemoryTiming = field(default_factory=MemoryTiming)      # that estimates are made for
    alone: bool = False         # no other operator reads or writes its tensors: any layout will do
    built: Built | None = None  # kernels that are there already; others are added

    def __post_init__(self) -> None:
        for name, kind in (("form", Form | None), ("hide_latency", bool), ("alone", bool),
                           ("memory", MemoryTiming)):
            if not isinstance(getattr(self, name), kind):
                raise CompileError(f"{name} is {getattr(self, name)!r}, but must be a "
                                   f"{getattr(kind, '__name__', 'Form')}")
        if self.cost is not None and not callable(self.cost):
            raise CompileError(f"cost is {self.cost!r}, but must be a function of a program")


@dataclass(frozen=True)
class Kernel:
    """A compiled operator: the form and the knobs that were chosen, and its program."""

    form: Form
    knobs: Any                  # of its template, or of each phase
    program: Program
    loops: Callable[[], Nest] = field(repr=False, compare=False)

    @property
    def key(self) -> KernelKey:
        """Identifies a kernel within a network, by value."""
        return self.form.key, self.knobs

    @property
    def nest(self) -> Nest:
        """Its loop nest, built on demand if the program came from the cache."""
        return self.loops()

    def pack(self, given: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
        """The inputs of the program, made from a user's operands, which are checked."""
        return self.form.pack_inputs(check_operands(self.form.operands, given))

    def unpack(self, outputs: Mapping[str, Array]) -> Array:
        """The result in the user's layout, made from the program's output."""
        return self.form.unpack(outputs[OUTPUT])


@dataclass(frozen=True, kw_only=True)
class Operator(Generic[DescriptionT, FormT, KnobsT]):
    """All that is known about an operator: its description, its forms on a configuration, the most
    promising first, the template of their schedules, and how it is compiled. Forms in layouts that
    no other operator has are for those `alone`, as is what may take the place of their kernel
    `instead`, if it is faster."""

    description: type[DescriptionT]
    forms: Callable[[DescriptionT, Config], Iterable[FormT]]
    template: Template[FormT, KnobsT]
    compile: Callable[[Operator[DescriptionT, FormT, KnobsT], DescriptionT, Config, Options],
                      Kernel] | None = None
    alone: Callable[[DescriptionT, Config], Iterable[FormT]] | None = None
    instead: Callable[[Operator[DescriptionT, FormT, KnobsT], DescriptionT, Kernel, Options],
                      Kernel | None] | None = None

    @property
    def name(self) -> str:
        return self.description.operator

    def forms_of(self, spec: DescriptionT, config: Config, *,
                 alone: bool = False) -> tuple[FormT, ...]:
        """Its forms, cached; those for an operator `alone` come last."""
        forms: tuple[FormT, ...] = _forms(self, spec, config, alone)
        return forms

    def compile_spec(self, spec: DescriptionT, config: Config, options: Options) -> Kernel:
        """The kernel of a description."""
        if not options.alone:
            return self._compile_schedule(spec, config, options)
        if options.cost is None or options.form is not None or options.knobs is not None:
            kernel = self._compile_schedule(spec, config, options)
            ends = WHOLE if options.form is None else options.form.ends
        else:
            kernel = self._compile_schedule(spec, config, replace(options, hide_latency=True))
            other = None if self.instead is None else self.instead(self, spec, kernel, options)
            if not options.hide_latency:
                return other or self._compile_schedule(spec, config, options)
            kernel = other or kernel
            ends = best_ends(kernel.program, options.cost)
        if not options.hide_latency or ends == WHOLE:
            return kernel
        return replace(kernel, form=replace(kernel.form, ends=ends),
                       program=cut_ends(kernel.program, ends))

    def _compile_schedule(self, spec: DescriptionT, config: Config, options: Options) -> Kernel:
        """The kernel of a description, with whole ends."""
        if options.form is not None and options.knobs is not None:
            kernel: Kernel | None = _fitting(options.form, spec, config).build(
                options.knobs, hide_latency=options.hide_latency)
            if kernel is not None:
                return kernel
        return (self.compile or compile_by_form)(self, spec, config, options)


AnyOperator: TypeAlias = Operator[Any, Any, Any]        # one of them all


@lru_cache(REMEMBERED)
def _forms(operator: AnyOperator, spec: Description, config: Config,
           alone: bool) -> tuple[Any, ...]:
    others = operator.alone(spec, config) if alone and operator.alone is not None else ()
    return tuple(replace(form, number=number)
                 for number, form in enumerate((*operator.forms(spec, config), *others)))


def compile_by_form(operator: Operator[DescriptionT, FormT, KnobsT], spec: DescriptionT,
                    config: Config, options: Options) -> Kernel:
    """An operator that is one tensor expression."""
    forms = [*operator.forms_of(spec, config, alone=options.alone)] if options.form is None else [
        _fitting(options.form, spec, config)]
    check_sizes(forms[-1])
    return best_kernel(operator.template, forms, options)


def _fitting(form: Form, spec: Description, config: Config) -> Any:
    """The given form, which must be one of this operator on this configuration."""
    if type(form.description) is not type(spec) or form.description != spec:
        raise CompileError(f"form is of {form.description}, but must be of {spec}")
    if form.config != config:
        raise CompileError("form is for another configuration than the one that is asked for")
    return form


def best_kernel(template: Template[FormT, KnobsT], forms: list[FormT], options: Options) -> Kernel:
    """The fastest of several forms of the same operator, with the given knobs, or with the best
    that are found."""
    if options.knobs is not None:
        form = min(forms, key=lambda each: each.handicap)       # all of it by the accelerator
        knobs = check_knobs(template, form, options.knobs)
        return _kernel(template, Candidate(0, form, knobs), options)
    ordered = rank_candidates(template, forms, options.memory)
    least = min(replace(form.work, parameters=0).bound(form.config, options.memory).cycles
                for form in forms)      # a stream loads parameters while the layer before runs
    hiding = replace(options, hide_latency=True)
    chosen, kernel = fastest(ordered, lambda each: _kernel(template, each, hiding), least,
                             options.cost, thorough=options.alone)
    return kernel if options.hide_latency else _kernel(template, chosen, options)


def _kernel(template: Template[FormT, KnobsT], candidate: Candidate[FormT, KnobsT],
            options: Options) -> Kernel:
    """From a schedule to a nest and its program."""
    form, knobs, built = candidate.form, candidate.knobs, options.built
    if built is None or not options.hide_latency:
        return _build_kernel(template, form, knobs, options.hide_latency)
    key = form.key, knobs
    if key not in built:
        built[key] = _build_kernel(template, form, knobs, True)
    return built[key]


def _build_kernel(template: Template[FormT, KnobsT], form: FormT, knobs: KnobsT,
                  hide_latency: bool) -> Kernel:
    @cache
    def loops() -> Nest:
        return build_nest(template, form, knobs)

    program = cached_program(lambda: emit_kernel(form, loops(), hide_latency=hide_latency),
                             form.config, template.schedule, form, knobs, hide_latency)
    return Kernel(form, knobs, program, loops)


def build_nest(template: Template[FormT, KnobsT], form: FormT, knobs: KnobsT) -> Nest:
    """The loop nest of a form with knobs."""
    from ..accelerator.lower_schedule import lower_to_intrinsics  # most programs are cached

    return lower_to_intrinsics(template.schedule(form, knobs), form.config, form.intrinsics)


def emit_kernel(form: FormT, nest: Nest, *, hide_latency: bool = True) -> Program:
    """The program of a form's nest."""
    from ..accelerator.emission.emit import emit

    return emit(nest, form.config, form.intrinsics, hide_latency=hide_latency,
                interleaves=form.interleaves, tables=len(form.tables))
