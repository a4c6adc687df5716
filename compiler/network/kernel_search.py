"""Kernels of descriptions: the schedule of each is chosen once, and timings are cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from itertools import islice, zip_longest

from ...base.checked_values import quote
from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ...isa.program_key import program_digest
from ..errors import CompileError
from ..operators.catalogue import operator_of
from ..operators.choice import (
    Cost,
    at_once,
    diverse_candidates,
    longest_steps,
    rank_candidates,
)
from ..operators.description import Description
from ..operators.form import Form
from ..operators.kernel import Built, Kernel, Options
from ..operators.layout import Layout
from .linking.equal_timing import Shape, shape_of, take_equally_long
from .linking.interleave_layers import halve_scratchpads
from .linking.on_chip_analysis import input_of, is_multiplied

AT_ONCE = 2                     # kernels that take their input at once, of each configuration ...
LOOKED_AT = 8                   # ... among this many
MOST_TIMED = 1 << 20            # cycles of layers in a stream; tuning longer ones gains little

Progress = Callable[[str], None]      # what is being done now
Schedules = Mapping[Description, tuple[int, object]]        # the number of a form, and its knobs


def silent(doing: str) -> None:
    """Ignore progress."""


@dataclass
class KernelSearch:
    """Finds kernels, each kind once. Without a cost, estimates decide."""

    config: Config
    cost: Cost | None = None
    memory: MemoryTiming | None = None
    say: Progress = silent
    schedules: Schedules = field(default_factory=dict)        # to begin with, where they are given

    def __post_init__(self) -> None:
        self.timing = self.memory or MemoryTiming()
        self.kernels: dict[tuple[Description, bool, bool], Kernel] = {}
        self.times: dict[str, int] = {}                       # by the digest of a program
        self.estimates: dict[Description, float] = {}
        self.bounds: dict[Description, float] = {}
        self.best: dict[tuple[Shape, Config, bool, bool], Kernel] = {}
        self.built: Built = {}
        self.whole: dict[Description, list[Kernel]] = {}      # that load their input at once
        self.used: set[Description] = set()                   # of the schedules that were given

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
            found = (None if half else self._given_kernel(spec, plain)) or self._choose_schedule(
                spec, config, None if any_form else _plain_form(spec, config),
                None if half or self.cost is None else self._time)
            self.kernels[key] = replace(found, program=replace(found.program, config=self.config))
        return self.kernels[key]

    def _given_kernel(self, spec: Description, plain: bool) -> Kernel | None:
        """The kernel with the schedule that was given, if one was, and it does not leave to the
        host what the host cannot do. A wrong one is no reason to compute the layer elsewhere."""
        if spec not in self.schedules:
            return None
        self.used.add(spec)
        number, knobs = self.schedules[spec]
        operator = operator_of(spec)
        forms = operator.forms_of(spec, self.config)
        if number not in range(len(forms)):
            raise MicrotronError(f"{spec.operator}: the schedule's form is {quote(number)}, but "
                                 f"must be from 0 to {len(forms) - 1}")
        form: Form = forms[number]
        if plain and form.handicap != 1:
            return None
        try:
            return operator.compile_spec(spec, self.config,
                                         Options(form=form, knobs=knobs, built=self.built))
        except CompileError as error:
            raise MicrotronError(f"the schedule that was given cannot be used: {error}") from None

    def check_schedules(self) -> None:
        """Refuse schedules of which none is for a layer of the network."""
        if self.schedules and not self.used:
            raise MicrotronError(f"none of the {len(self.schedules)} schedules is for a layer of "
                                 f"this network")

    def estimate(self, spec: Description) -> float:
        """Estimated cycles of a description, which is not compiled."""
        if spec not in self.estimates:
            operator = operator_of(spec)
            self.estimates[spec] = rank_candidates(
                operator.template, operator.forms_of(spec, self.config), self.timing)[0].estimate
        return self.estimates[spec]

    def bound_of(self, spec: Description) -> float:
        """A lower bound of the cycles of a description, whatever its schedule."""
        if spec not in self.bounds:
            forms: Iterable[Form] = operator_of(spec).forms_of(spec, self.config)
            self.bounds[spec] = min(form.work.bound(self.config, self.timing).cycles
                                    for form in forms)
        return self.bounds[spec]

    def _choose_schedule(self, spec: Description, config: Config, form: Form | None,
                         cost: Cost | None) -> Kernel:
        """The kernel with the best schedule, which is searched once for all layers of a shape."""
        key = shape_of(spec), config, form is None, cost is None
        known = self.best.get(key)
        found = None if known is None else self._with_schedule_of(known, spec, config)
        if found is None:
            found = self.best[key] = operator_of(spec).compile_spec(spec, config, Options(
                form=form, cost=cost, memory=self.timing, built=self.built))
        return found

    def _with_schedule_of(self, known: Kernel, spec: Description, config: Config) -> Kernel | None:
        """The kernel of a layer with the schedule of another one, if it takes as long."""
        operator = operator_of(spec)
        if operator.compile is not None:
            return None                             # one of its own, with parts of their own
        forms = [each for each in operator.forms_of(spec, config)
                 if each.number == known.form.number]
        for form in forms:
            with suppress(CompileError):
                found = operator.compile_spec(spec, config, Options(
                    form=form, knobs=known.knobs, built=self.built))
                if take_equally_long(known.program, found.program):
                    if (name := program_digest(known.program)) in self.times:
                        self.times[program_digest(found.program)] = self.times[name]
                    return found
        return None

    def alternatives(self, kernel: Kernel, most: int) -> Iterator[Kernel]:
        """Other schedules of the same form, `most` of them: those that were timed alone, the
        fastest first, and those with the best estimates, which differ."""
        form = kernel.form
        operator = operator_of(form.description)
        if operator.compile is not None:
            return                                  # one of its own, with parts of their own
        ordered = rank_candidates(operator.template, [form], self.timing)
        promising = [each.knobs for each in (ordered[0], *diverse_candidates(ordered, most))]
        for knobs in [*self._timed_knobs(form), *promising][:most]:
            if knobs != kernel.knobs:
                yield from self._compile_scheduled(form, knobs)

    def _timed_knobs(self, form: Form) -> list[object]:
        """Knobs of a form that were timed alone, the fastest first."""
        times = {knobs: self.times.get(program_digest(kernel.program))
                 for (key, knobs), kernel in self.built.items() if key == form.key}
        return sorted((knobs for knobs, cycles in times.items() if cycles is not None),
                      key=lambda knobs: times[knobs] or 0)

    def with_long_steps(self, kernel: Kernel) -> Iterator[Kernel]:
        """The kernel with the longest steps of those that are nearly as fast, if it is another.
        Beside a layer that takes longer, one need not be fast, but each of its steps is in the way
        of the other's."""
        form = kernel.form
        operator = operator_of(form.description)
        if operator.compile is None:
            knobs = longest_steps(operator.template, form, self.timing)
            if knobs != kernel.knobs:
                yield from self._compile_scheduled(form, knobs)

    def whole_kernel(self, kernel: Kernel) -> Iterator[Kernel]:
        """The kernel of one that has half of every scratchpad with all of it, if that is compiled
        already and its tensors lie the same way."""
        form = kernel.form
        whole = self.kernels.get((form.description, False, False))
        if form.config != self.config and whole is not None and (
                whole.form.layouts == form.layouts):
            yield whole

    def _compile_scheduled(self, form: Form, knobs: object) -> Iterator[Kernel]:
        """The kernel of a form with these knobs, if it can be compiled: there may be too many
        instructions, or no room."""
        operator = operator_of(form.description)
        with suppress(CompileError):
            kernel = operator.compile_spec(form.description, form.config,
                                           Options(form=form, knobs=knobs, built=self.built))
            yield replace(kernel, program=replace(kernel.program, config=self.config))

    def at_once(self, kernel: Kernel) -> list[Kernel]:
        """Kernels of the same description and layouts that load all of their input at once, as if
        there were room; the most promising first, some of them on half of the scratchpads."""
        spec = kernel.form.description
        if spec not in self.whole:
            layouts = kernel.form.layouts
            ways = [list(islice(self._single_load_kernels(spec, config, layouts), AT_ONCE))
                    for config in self._configs_with_room()]
            found = [each for some in zip_longest(*ways) for each in some if each]
            self.whole[spec] = [*{program_digest(each.program): each
                                  for each in reversed(found)}.values()][::-1]
        return self.whole[spec]

    def _configs_with_room(self) -> Iterator[Config]:
        """Half of the scratchpads, and all of them, but for activations: what is on the chip
        already needs no room there."""
        with suppress(CompileError):                # too small to be divided
            yield replace(halve_scratchpads(self.config), inp_bytes=max(
                self.config.inp_bytes, self.config.out_bytes))
        yield replace(self.config, inp_bytes=max(self.config.inp_bytes, self.config.out_bytes))

    def _single_load_kernels(self, spec: Description, config: Config,
                             layouts: Mapping[str, Layout]) -> Iterator[Kernel]:
        operator = operator_of(spec)
        if operator.compile is not None:
            return
        for form in operator.forms_of(spec, config):
            if form.layouts == layouts:
                for knobs in at_once(operator.template, form, self.timing)[:LOOKED_AT]:
                    found = [*self._compile_scheduled(form, knobs)]
                    yield from (each for each in found
                                if input_of(each.program, "data") is not None)
                    if not all(is_multiplied(each.program, "data") for each in found):
                        break               # nor is it with other knobs

    def cycles(self, kernel: Kernel) -> float:
        """Cycles of a kernel alone; without a cost, a lower bound."""
        return self.lower_bound(kernel) if self.cost is None else self._time(kernel.program)

    def lower_bound(self, kernel: Kernel) -> float:
        """Cycles that every schedule of its form takes."""
        return kernel.form.work.bound(self.config, self.timing).cycles

    def can_tune(self, kernels: Iterable[Kernel]) -> bool:
        """Whether streams of these layers can be timed, and are short enough for it."""
        return self.cost is not None and sum(map(self.lower_bound, kernels)) <= MOST_TIMED

    def _time(self, program: Program) -> int:
        """The cost of a program, which may be known already."""
        assert self.cost is not None, "there is a cost to ask"
        name = program_digest(program)
        if name not in self.times:
            self.times[name] = self.cost(program)
        return self.times[name]


def _plain_form(spec: Description, config: Config) -> Form:
    """The first form of a description that leaves nothing to the host."""
    form: Form = next(each for each in operator_of(spec).forms_of(spec, config)
                      if each.handicap == 1)
    return form
