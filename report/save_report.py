"""The report as a call: models, programs or inspections in, one HTML file out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from ..base.argument_checks import check_callable, check_path
from ..base.atomic_files import check_folder, write_atomically
from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..base.keywords import check_keywords
from ..compiler.operators.kernel import Kernel
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..runtime.clock import Clock
from ..runtime.models.compiled_model import CompiledModel
from ..runtime.reports.layers import Inspection, TimeHost, inspect_model
from ..sim.arguments import check_memory
from .extra_plot import ExtraPlot
from .extra_table import ExtraTable
from .page import page_of
from .pareto import Pareto
from .programs import model_of_program
from .run_data import run_data

Source = CompiledModel | Program | Kernel | Inspection
MOST_RUNS = 16              # side by side in one page


@check_keywords
def save_report(runs: Source | Sequence[Source] | Mapping[str, Source], path: str | PathLike[str],
                *, memory: MemoryTiming | None = None, mhz: float | None = None,
                limit: int | None = None, title: str | None = None,
                progress: Callable[[str], None] | None = None) -> None:
    """Write a report as one HTML file, to be opened in a browser.

    runs        a Model, Program, Kernel or Inspection; or several, to compare: a list, or a
                dict from names to them
    path        file to write
    memory      timing of the DRAM; what a model was compiled for unless given
    mhz         clock of the accelerator, which turns cycles into seconds; 100 unless given
    limit       cycles of one program after which to give up
    title       of the page
    progress    called with a line on what is being done

    Models and programs are simulated; an Inspection, as `inspect` returns it, is shown as it is.
    """
    target = check_path("path", path)
    check_memory(memory)
    check_callable("progress", progress)
    clock = None if mhz is None else Clock(mhz, "given")
    named = _name_runs(runs)
    check_folder(target)
    found = {name: inspect_source(each, name, memory, clock=clock, limit=limit, progress=progress)
             for name, each in named.items()}
    write_report(found, target, title)


def write_report(found: Mapping[str, Inspection], path: Path, title: str | None = None,
                 tables: Sequence[ExtraTable] = (), plots: Sequence[ExtraPlot] = (),
                 pareto: Pareto | None = None) -> None:
    """Write the report on runs that have been inspected, if any; and plots and tables below."""
    from .. import __version__

    write_atomically(path, page_of(title or " and ".join(found), __version__,
                                   [run_data(name, each) for name, each in found.items()],
                                   [each.to_dict() for each in tables],
                                   [each.to_dict() for each in plots],
                                   None if pareto is None else pareto.to_dict()))


def inspect_source(source: Source, name: str, memory: MemoryTiming | None = None, *,
                   clock: Clock | None = None, limit: int | None = None,
                   time_host: TimeHost | None = None,
                   progress: Callable[[str], None] | None = None) -> Inspection:
    """Inspect whatever a report can be written on."""
    if isinstance(source, Inspection):
        return source
    if isinstance(source, Kernel):
        source = model_of_program(source.program, name, source.form.work)
    elif isinstance(source, Program):
        source = model_of_program(source, name)
    return inspect_model(source, memory, clock=clock, limit=limit, time_host=time_host,
                         progress=progress)


def _name_runs(runs: Source | Sequence[Source] | Mapping[str, Source]) -> dict[str, Source]:
    if isinstance(runs, CompiledModel | Program | Kernel | Inspection):
        runs = [runs]
    if isinstance(runs, Mapping):
        named = dict(runs)
    elif isinstance(runs, Sequence) and not isinstance(runs, str | bytes):
        named = {}
        for each in runs:
            named[_fresh(_name(each), named)] = each
    else:
        raise MicrotronError(f"runs is {quote(runs)}, but must be a Model, a Program, a Kernel, an "
                             f"Inspection, or several of these in a list or a dict")
    if not 1 <= len(named) <= MOST_RUNS:
        raise MicrotronError(f"a report shows 1 to {MOST_RUNS} runs, but there are {len(named)}")
    for name, each in named.items():
        if not isinstance(name, str):
            raise MicrotronError(f"the name of a run is {quote(name)}, but must be text")
        if not isinstance(each, CompiledModel | Program | Kernel | Inspection):
            raise MicrotronError(f"the run {quote(name)} is {quote(each)}, but must be a Model, a "
                                 f"Program, a Kernel or an Inspection")
    return named


def _name(source: object) -> str:
    if isinstance(source, Inspection):
        source = source.model
    if isinstance(source, CompiledModel):
        return source.name or "model"
    return "kernel" if isinstance(source, Kernel) else "program"


def _fresh(name: str, taken: Mapping[str, object]) -> str:
    number, found = 1, name
    while found in taken:
        number, found = number + 1, f"{name} ({number + 1})"
    return found
