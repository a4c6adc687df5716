"""The command that compiles one operator and shows what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cli_devices import Memory
from .cli_files import AsJson
from .isa.errors import MicrotronError

if TYPE_CHECKING:
    from .compiler.operators.build import Kernel
    from .compiler.operators.conv2d import Conv2d
    from .compiler.operators.conv2d_schedule import Knobs
    from .isa.config import Config
    from .isa.timing import MemoryTiming

LINES = 40                  # of a stream that are shown unless all are wanted
PARTS = ("schedule", "nest", "stream", "cycles")

kernels = typer.Typer(rich_markup_mode=None)


@kernels.callback()
def operators() -> None:
    """Compile one operator; show its schedule, loops, stream and cycles."""


@kernels.command()
def conv2d(
        height: Annotated[int, typer.Option(help="Rows of the input.")],
        width: Annotated[int, typer.Option(help="Columns of the input.")],
        channels_in: Annotated[int, typer.Option(help="Channels of the input.")],
        channels_out: Annotated[int, typer.Option(help="Channels of the output.")],
        kernel: Annotated[str, typer.Option(
            metavar="SIZE", help="Of the kernel: 3, or 3,5 for rows and columns.")] = "3",
        stride: Annotated[str, typer.Option(metavar="STEP", help="One number or two.")] = "1",
        dilation: Annotated[str, typer.Option(
            metavar="STEP", help="From tap to tap; one number or two.")] = "1",
        pad: Annotated[str, typer.Option(
            metavar="PIXELS", help="Around the input: 1, or 0,1,0,1 for top, bottom, left and "
                                   "right.")] = "0",
        images: Annotated[int, typer.Option(help="Images at once.")] = 1,
        name: Annotated[str, typer.Option(
            "--config", help="A preset, a .toml file, or VTA's vta_config.json.")] = "base",
        knobs: Annotated[str, typer.Option(
            metavar="NAME=VALUE,…", help="How much is computed at once, as blocks=4,rows=7; what "
                                         "is not given is as by default.")] = "",
        hide_latency: Annotated[bool, typer.Option(
            "--latency-hiding/--no-latency-hiding",
            help="Let engines overlap, or make them take turns.")] = True,
        show: Annotated[str, typer.Option(
            metavar="PART,…", help=f"What to print: {', '.join(PARTS)}.")] = ",".join(PARTS),
        everything: Annotated[bool, typer.Option(
            "--all", help=f"Print the whole stream, not only {LINES} lines of it.")] = False,
        memory: Memory = "",
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Image to write, for the other commands.")] = None,
        as_json: AsJson = False) -> None:
    """Compile a convolution of int8 tensors and show its schedule, loops, stream and cycles.

    Example: microtron kernel conv2d --height 56 --width 56 --channels-in 64 --channels-out 64
    --pad 1 --show schedule,cycles
    """
    parts = [part for part in show.split(",") if part]
    for part in parts:
        if part not in PARTS:
            raise MicrotronError(f"--show: there is no {part!r}; there are {', '.join(PARTS)}")
    from .compiler.operators.conv2d import Conv2d
    from .isa.config_files import load_config
    from .isa.timing import parse_timing

    config, timing = load_config(name), parse_timing(memory)
    spec = Conv2d(height=height, width=width, channels_in=channels_in, channels_out=channels_out,
                  kernel=_pair("--kernel", kernel), stride=_pair("--stride", stride),
                  dilation=_pair("--dilation", dilation), pad=_border(pad), images=images)
    compiled = _compiled(spec, config, knobs, timing, hide_latency)
    if output is not None:
        from .isa import image
        image.save(compiled.program, output)
    if as_json:
        typer.echo(json.dumps({"config": name, "spec": asdict(spec),
                               "knobs": asdict(compiled.knobs), "hide_latency": hide_latency,
                               "instructions": len(compiled.program.code),
                               **_costs(spec, compiled, timing)}))
        return
    shown = {"schedule": lambda: _schedule(spec, config, compiled.knobs),
             "nest": lambda: _nest(compiled),
             "stream": lambda: _stream(compiled, everything),
             "cycles": lambda: _cycles(_costs(spec, compiled, timing), config)}
    for number, part in enumerate(part for part in PARTS if part in parts):
        typer.echo(("\n" if number else "") + "\n".join(shown[part]()))


def _schedule(spec: Conv2d, config: Config, knobs: Knobs) -> Iterator[str]:
    """The knobs, each with all that there is of it."""
    blocks, depth = -(-spec.channels_out // config.block_out), -(-spec.channels_in
                                                                // config.block_in)
    rows, columns = knobs.taps(spec.kernel)
    yield "schedule: " + " ".join(f"{name}={value}" for name, value in asdict(knobs).items()
                                  if value)
    yield (f"    a step has {knobs.blocks} of {blocks} output blocks, {knobs.rows} of "
           f"{spec.out_height} rows, {knobs.columns} of {spec.out_width} columns, and sums over "
           f"{knobs.depth} of {depth} input blocks and {rows} × {columns} taps at a time"
           f"{', one output block after the other' if knobs.one_by_one else ''}")


def _nest(compiled: Kernel) -> Iterator[str]:
    from .compiler.nest.listing import listing
    yield "nest:"
    yield from (f"    {line}" for line in listing(compiled.nest).rstrip("\n").split("\n"))


def _stream(compiled: Kernel, everything: bool) -> Iterator[str]:
    from .isa.disassembly import format_instruction
    from .isa.stream import decode
    code = compiled.program.code
    yield f"stream: {len(code)} instructions"
    wanted = len(code) if everything else LINES
    for position, instruction in enumerate(decode(code[:wanted])):
        yield f"{position:6}  {format_instruction(instruction, compiled.program.segments)}"
    if len(code) > wanted:
        yield f"        and {len(code) - wanted} more; --all shows them"


def _costs(spec: Conv2d, compiled: Kernel, timing: MemoryTiming) -> dict[str, Any]:
    from .compiler.operators.roofline import bound, convolution_bytes
    from .sim.simulate import simulate
    cycles = simulate(compiled.program, memory=timing).cycles
    assert cycles is not None
    least = bound(spec.macs, convolution_bytes(spec), compiled.program.config, timing)
    return {"macs": spec.macs, "bytes": convolution_bytes(spec), "bound": least.cycles,
            "limit": least.limit, "cycles": cycles, "efficiency": least.cycles / cycles}


def _cycles(costs: dict[str, Any], config: Config) -> Iterator[str]:
    yield f"cycles: {costs['cycles']:,}, {100 * costs['efficiency']:.1f} % of the best possible"
    yield (f"    {costs['macs']:,} products at {config.macs_per_cycle} a cycle, {costs['bytes']:,} "
           f"bytes: at least {costs['bound']:,.0f} cycles for {costs['limit']}")


def _compiled(spec: Conv2d, config: Config, knobs: str, timing: MemoryTiming,
              hide_latency: bool) -> Kernel:
    """With the fastest schedule, or what the text says instead of it."""
    from . import simulated_cost
    from .compiler.operators.build import compile_conv2d
    given = _given(knobs)
    best = compile_conv2d(spec, config, hide_latency=hide_latency, memory=timing,
                          cost=simulated_cost(timing))
    if not given:
        return best
    return compile_conv2d(spec, config, hide_latency=hide_latency,
                          knobs=replace(best.knobs, **given))


def _given(text: str) -> dict[str, int]:
    """Knobs by name."""
    from .compiler.operators.conv2d_schedule import Knobs
    names, given = [field.name for field in fields(Knobs)], {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in names or not value.isdecimal() or int(value) < 1:
            raise MicrotronError(f"--knobs: {part!r} must be one of {', '.join(names)} and a "
                                 f"number from 1 on, as in {names[0]}=2")
        given[name] = int(value)
    return given


def _numbers(option: str, text: str, counts: tuple[int, ...]) -> list[int]:
    parts = text.split(",")
    if len(parts) not in counts or not all(part.isdecimal() for part in parts):
        raise MicrotronError(f"{option} is {text!r}, but must be "
                             f"{' or '.join(str(count) for count in counts)} numbers, as in "
                             f"{','.join('1' * counts[-1])}")
    return [int(part) for part in parts]


def _pair(option: str, text: str) -> tuple[int, int]:
    numbers = _numbers(option, text, (1, 2))
    return numbers[0], numbers[-1]


def _border(text: str) -> tuple[int, int, int, int]:
    numbers = _numbers("--pad", text, (1, 4))
    top, bottom, left, right = numbers * (4 // len(numbers))
    return top, bottom, left, right
