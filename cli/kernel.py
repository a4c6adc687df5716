"""The commands that compile one operator each and show what became of it.

Their options follow from the operators' descriptions, so a new operator has its command as soon as
it is registered.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, asdict, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.checked_values import PlainData, quote
from ..base.errors import MicrotronError
from .files import AsJson
from .options import Memory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ..compiler.operators.description import Description
    from ..compiler.operators.kernel import AnyOperator
    from ..isa.config import Config
    from ..isa.memory_timing import MemoryTiming
    from ..runtime.models.kernel import Kernel

LINES = 40                  # of a stream that are shown unless all are wanted
MOST_DIGITS = 20            # of a number: no option takes a longer one
NUMBER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}")
PARTS = ("schedule", "nest", "stream", "cycles")

kernels = typer.Typer(rich_markup_mode=None)


@kernels.callback()
def operators() -> None:
    """Compile one operator; show its schedule, loops and cycles."""


def add_operators() -> None:
    """Give every operator its command. Only `microtron kernel` needs them, and what they import."""
    from ..compiler.operators.catalogue import OPERATORS

    known = {command.name for command in kernels.registered_commands}
    for operator in OPERATORS.values():
        if operator.name not in known:
            kernels.command(operator.name)(_command(operator))


def _command(operator: AnyOperator) -> Callable[..., None]:
    """A function whose parameters are the fields of a description, and those of `_compile`."""
    described = fields(operator.description)
    own = [_parameter(each) for each in described]
    shared = list(inspect.signature(_compile, eval_str=True).parameters.values())[1:]
    own.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)

    def command(**values: Any) -> None:
        given = {each.name: _value(each, values.pop(each.name)) for each in described}
        _compile(operator.description(**given), **values)

    first = " ".join((operator.description.__doc__ or "").partition("\n\n")[0].split())
    needed = " ".join(f"--{each.name.replace('_', '-')} …" for each in described
                      if each.default is MISSING)
    command.__doc__ = (f"{first}\n\nShows schedule, loops, instructions and cycles.\n\n"
                       f"Example: microtron kernel {operator.name} {needed}")
    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
    return command


def _parameter(field: Field[object]) -> inspect.Parameter:
    """A field as an option. Numbers come as text: one for all sides, or one for each."""
    flag = isinstance(field.default, bool)
    default = (inspect.Parameter.empty if field.default is MISSING
               else field.default if flag else _text(field.default))
    annotation = Annotated[bool if flag else str, typer.Option(  # type: ignore[valid-type]
        help=_sentence(field.metadata["doc"]), metavar=None if flag else "VALUE")]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=annotation)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return str(value[0]) if len(set(value)) == 1 else ",".join(map(str, value))
    return value.name.lower() if isinstance(value, Enum) else str(value)


def _value(field: Field[object], given: str | bool) -> object:
    """What an option's text stands for; the description says whether it is right."""
    if isinstance(given, bool):
        return given
    option = f"--{field.name.replace('_', '-')}"
    parts = [_number(option, part) for part in given.split(",")]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _number(option: str, text: str) -> int | float | str:
    """A whole number, or a real one; a word is left to the description."""
    if len(text) > MOST_DIGITS:
        raise MicrotronError(f"{option} is {text[:MOST_DIGITS]}…, which is too long")
    if not text.isascii() or "_" in text:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _compile(
        spec: Any, *,
        name: Annotated[str, typer.Option(
            "--config", help="A preset, a .toml file, or VTA's vta_config.json.")] = "base",
        knobs: Annotated[str, typer.Option(
            metavar="NAME=VALUE,…", help="Knobs of the schedule: blocks=4,rows=7. Others are as "
                                         "the compiler chooses.")] = "",
        hide_latency: Annotated[bool, typer.Option(
            "--latency-hiding/--no-latency-hiding",
            help="Overlap the engines, or make them take turns.")] = True,
        show: Annotated[str, typer.Option(
            metavar="PART,…", help=f"What to print: {', '.join(PARTS)}.")] = ",".join(PARTS),
        everything: Annotated[bool, typer.Option(
            "--all", help=f"Print all instructions, not only {LINES}.")] = False,
        memory: Memory = "",
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Program image to write.")] = None,
        as_json: AsJson = False) -> None:
    parts = [part for part in show.split(",") if part]
    for part in parts:
        if part not in PARTS:
            raise MicrotronError(f"--show: there is no {part!r}; there are {', '.join(PARTS)}")
    from ..isa.config_files import load_config
    from ..isa.memory_timing import parse_timing

    config, timing = load_config(name), parse_timing(memory)
    kernel = _kernel(spec, config, knobs, timing, hide_latency)
    if output is not None:
        from ..isa.image import program_image
        program_image.save(kernel.program, output)
    costs = _costs(spec, kernel, timing) if as_json or "cycles" in parts else {}
    if as_json:
        typer.echo(json.dumps({"operator": spec.operator, "config": name, "spec": _json(spec),
                               "knobs": _to_json(kernel.knobs), "form": kernel.form.note,
                               "hide_latency": hide_latency,
                               "instructions": len(kernel.program.code), **costs}))
        return
    shown = {"schedule": lambda: _schedule(kernel), "nest": lambda: _nest(kernel),
             "stream": lambda: _stream(kernel, everything), "cycles": lambda: _cycles(costs)}
    for number, part in enumerate(part for part in PARTS if part in parts):
        typer.echo(("\n" if number else "") + "\n".join(shown[part]()))


def _kernel(spec: Description, config: Config, knobs: str, timing: MemoryTiming,
            hide_latency: bool) -> Kernel:
    """With the fastest schedule, or what the text says instead of it."""
    from .. import compile_op
    best = compile_op(spec, config, memory=timing, hide_latency=hide_latency)
    given = _parse_knobs(knobs, best.knobs)
    if not given:
        return best
    own, = _each(best.knobs)
    return compile_op(spec, config, form=best.form, knobs=replace(own, **given),
                      memory=timing, hide_latency=hide_latency)


def _parse_knobs(text: str, best: object) -> dict[str, int]:
    """Knobs by name; the compiler says whether their values are right."""
    if not text:
        return {}
    if not is_dataclass(best):
        raise MicrotronError("--knobs: this operator has several parts, each with its own; none "
                             "can be given")
    names = [each.name for each in fields(best) if isinstance(getattr(best, each.name), int)]
    given: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in names or name in given or not NUMBER.fullmatch(value):
            raise MicrotronError(f"--knobs: {quote(part)} must be one of {', '.join(names)}, once, "
                                 f"and a number, as in {names[0]}=2")
        flag = isinstance(getattr(best, name), bool) and value in ("0", "1")
        given[name] = value == "1" if flag else int(value)
    return given


def _json(spec: Description) -> dict[str, object]:
    """A description's fields, with enumerations by name, as they are given."""
    return {name: value.name.lower() if isinstance(value, Enum) else value
            for name, value in asdict(spec).items()}


def _to_json(knobs: object) -> object:
    plain = [asdict(each) for each in _each(knobs)]
    return plain if isinstance(knobs, tuple) else plain[0]


def _each(knobs: object) -> list[DataclassInstance]:
    """The knobs of each part."""
    every = knobs if isinstance(knobs, tuple) else (knobs,)
    return [each for each in every if is_dataclass(each) and not isinstance(each, type)]


def _schedule(kernel: Kernel) -> Iterator[str]:
    """The knobs that were chosen, of each part, and what else is special."""
    single = not isinstance(kernel.knobs, tuple)
    for number, knobs in enumerate(_each(kernel.knobs)):
        place = "schedule: " if single else f"{'schedule:' if not number else '         '} part " \
                                            f"{number}: "
        yield place + " ".join(f"{name}={_text(value)}" for name, value in asdict(knobs).items()
                               if value)
    if kernel.form.note:
        yield f"    {kernel.form.note}"


def _nest(kernel: Kernel) -> Iterator[str]:
    from ..compiler.nest.listing import listing
    yield "nest:"
    yield from (f"    {line}" for line in listing(kernel.nest).rstrip("\n").split("\n"))


def _stream(kernel: Kernel, everything: bool) -> Iterator[str]:
    from ..isa.assembly.disassembler import format_instruction
    from ..isa.stream import decode
    code = kernel.program.code
    yield f"stream: {len(code)} instructions"
    wanted = len(code) if everything else LINES
    for position, instruction in enumerate(decode(code[:wanted])):
        yield f"{position:6}  {format_instruction(instruction, kernel.program.segments)}"
    if len(code) > wanted:
        yield f"        and {len(code) - wanted} more; --all shows them"


def _costs(spec: Description, kernel: Kernel, timing: MemoryTiming) -> PlainData:
    from ..compiler.compile import work_of
    from ..sim.simulate import simulate
    config = kernel.program.config
    cycles = simulate(kernel.program, memory=timing).cycles
    assert cycles is not None
    work = work_of(spec, config, timing)
    least = work.bound(config, timing)
    return {**asdict(work), "bound": least.cycles, "bounds": least.limits, "limit": least.limit,
            "cycles": cycles, "efficiency": least.cycles / cycles,
            "utilization": work.utilization(cycles, config)}


def _cycles(costs: PlainData) -> Iterator[str]:
    """Measured, and compared with what no schedule undercuts."""
    from ..runtime.reports.tables import LIMITS

    used = f"; {100 * costs['utilization']:.1f} % MAC utilization" if costs["macs"] else ""
    yield f"cycles: {costs['cycles']:,}, {100 * costs['efficiency']:.1f} % of the bound{used}"
    bounds = costs["bounds"]
    yield f"    bound: {costs['bound']:,.0f} cycles, limited by {LIMITS[costs['limit']]}:"
    yield (f"    {costs['products']:,} tile products; {costs['bytes']:,} bytes in "
           f"{bounds['memory']:,.0f} cycles;")
    yield f"    {costs['passes']:,} vectors through the ALU in {bounds['alu']:,.0f} cycles"
