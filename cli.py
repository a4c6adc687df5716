"""The command line: a thin skin over functions. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from . import __version__
from .isa.errors import MicrotronError

if TYPE_CHECKING:
    from .isa.program import Program
    from .isa.verifier import Verdict
    from .runtime.device import Device

BAD_INPUT = 2

app = typer.Typer(
    name="microtron", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    help="A co-design kit for small tensor accelerators: assemble, verify and run programs.")

ProgramFile = Annotated[Path, typer.Argument(
    metavar="PROGRAM", help="A program: an image (.mt) or assembly (any other name).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
          ) -> None:
    if version:
        typer.echo(f"microtron {__version__}")
        raise typer.Exit


@app.command()
def asm(source: Annotated[Path, typer.Argument(help="Assembly text.")],
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Image to write; the source with .mt unless given.")] = None,
        tokens: Annotated[bool, typer.Option(
            "--tokens", help="Derive waits and posts from the data, replacing those written.",
        )] = False) -> None:
    """Assemble a text into a program image.

    Example: microtron asm matmul.asm -o matmul.mt
    """
    from .isa import image

    program = _assembled(source)
    if tokens:
        from .isa.tokens import with_tokens
        program = with_tokens(program)
    target = output or source.with_suffix(".mt")
    image.save(program, target)
    typer.echo(f"{target}: {len(program.code)} instructions, {len(program.segments)} segments")


@app.command()
def disasm(program: ProgramFile,
           output: Annotated[Path | None, typer.Option(
               "--output", "-o", help="File to write; the terminal unless given.")] = None) -> None:
    """Print a program as assembly that assembles to the same image.

    Example: microtron disasm matmul.mt
    """
    from .isa.atomic import write_atomically
    from .isa.disassembly import disassemble

    text = disassemble(_program(program))
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())


@app.command()
def verify(program: ProgramFile, as_json: AsJson = False) -> None:
    """Prove that a program cannot deadlock, race, overflow a token counter or leave its buffers.

    Every finding names the instructions, the range and the order that is missing. Exit code 2
    if there is one. Example: microtron verify matmul.mt
    """
    from .isa.verifier import inspect

    verdict = inspect(_program(program))
    if as_json:
        typer.echo(json.dumps({"file": str(program), "safe": not verdict.findings,
                               **vars(verdict)}))
    elif not verdict.findings:
        _print_safe(program, verdict)
    else:
        for finding in verdict.findings:
            typer.echo(f"{program}: {finding}", err=True)
    if verdict.findings:
        raise typer.Exit(BAD_INPUT)


@app.command()
def run(program: ProgramFile,
        device: Annotated[str, typer.Option(
            help="Where to run: functional, cycle (exact timing), or rtl (the hardware under "
                 "Verilator).",
        )] = "functional",
        inputs: Annotated[list[str] | None, typer.Option(
            "--input", "-i", metavar="TENSOR=FILE.npy", help="Fill a tensor before the run.",
        )] = None,
        outputs: Annotated[list[str] | None, typer.Option(
            "--output", "-o", metavar="TENSOR=FILE.npy", help="Save a tensor after the run.",
        )] = None,
        seed: Annotated[int | None, typer.Option(
            help="Interleave the engines adversarially, as the tokens allow.")] = None,
        memory: Annotated[str, typer.Option(
            metavar="NAME=VALUE,…", help="With cycle or rtl: as read_latency=64,stalls=9.",
        )] = "",
        trace: Annotated[Path | None, typer.Option(
            help="With cycle or rtl: write when each instruction ran to a .json file, for "
                 "Perfetto, or a .npz file.")] = None,
        waveform: Annotated[Path | None, typer.Option(
            help="With rtl: write all signals to a .vcd or .fst file.")] = None,
        check: Annotated[bool, typer.Option(help="Verify the program first.")] = True,
        as_json: AsJson = False) -> None:
    """Run a program on a device and print what it did.

    Example: microtron run matmul.mt -i a=a.npy -o c=c.npy
    """
    from .isa.verifier import verify as prove
    from .runtime import files
    from .runtime.device import run as execute

    loaded = _program(program)
    if check:
        prove(loaded)
    if trace is not None:
        from .runtime.trace import writer_for
        writer_for(trace)
    given = {name: files.read_array(path) for name, path in _pairs(inputs or []).items()}
    wanted = _pairs(outputs or [])
    for name in wanted:
        loaded.tensor(name)
    results, report = execute(loaded, given,
                              _device(device, seed, memory, trace, waveform, loaded))
    for name, path in wanted.items():
        files.write_array(path, results[name] if name in results else given[name])
    if trace is not None:
        from .runtime.trace import save_trace
        save_trace(trace, loaded, report)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        from .runtime.tables import report_rows, show
        show(f"{program} on {report.device}", report_rows(report))


@app.command()
def profile(program: ProgramFile,
            memory: Annotated[str, typer.Option(
                metavar="NAME=VALUE,…", help="As read_latency=64,stalls=9.")] = "",
            as_json: AsJson = False) -> None:
    """Say where a program's cycles go: by engine and cause, and how far from the best possible.

    Example: microtron profile matmul.mt --memory read_latency=64
    """
    from .isa.timing import parse_timing
    from .runtime.profile import profile as measure

    found = measure(_program(program), parse_timing(memory))
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        from .runtime.tables import show_profile
        show_profile(str(program), found)


@app.command()
def config(name: Annotated[str, typer.Argument(
               help="A preset, a .toml file, or VTA's vta_config.json.")] = "",
           output: Annotated[Path | None, typer.Option(
               "--output", "-o", help="Save it as TOML.")] = None,
           as_json: AsJson = False) -> None:
    """Show a configuration, or all presets; convert VTA's.

    Example: microtron config vta_config.json -o mine.toml
    """
    from .isa.config import PRESETS
    from .isa.config_files import format_toml, load_config, save_config

    chosen = {name: load_config(name)} if name else dict(PRESETS)
    if output is not None:
        if not name:
            raise MicrotronError("--output needs the name of one configuration to save")
        save_config(chosen[name], output)
    elif as_json:
        typer.echo(json.dumps({each: {**found.to_dict(), "digest": found.digest}
                               for each, found in chosen.items()}))
    elif name:
        typer.echo(format_toml(chosen[name]), nl=False)
    else:
        from .runtime.tables import show_configs
        show_configs(chosen)


@app.command()
def verilog(name: Annotated[str, typer.Option(
                "--config", help="A preset, a .toml file, or VTA's vta_config.json.")] = "base",
            output: Annotated[Path | None, typer.Option(
                "--output", "-o", help="File to write; the terminal unless given.")] = None,
            ) -> None:
    """Write the accelerator as Verilog: module `microtron`, an AXI4 master and an AXI4-Lite slave.

    Needs the extra `hw`. Example: microtron verilog --config small -o small.v
    """
    from .isa.atomic import write_atomically
    from .isa.config_files import load_config

    chosen = load_config(name)
    try:
        from .hw.top import verilog as convert
    except ModuleNotFoundError as error:
        raise MicrotronError(f"{error.name} is not installed; install microtron[hw]") from None
    text = convert(chosen)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())


@app.command()
def isa(instruction: Annotated[str, typer.Argument(
            help="One instruction to explain; all in short if left out.")] = "",
        as_manual: Annotated[bool, typer.Option(
            "--manual", help="Print the whole manual as Markdown.")] = False,
        as_header: Annotated[bool, typer.Option(
            "--header", help="Print the C header.")] = False) -> None:
    """Explain the instruction set: a summary, one instruction, the manual or a C header.

    Example: microtron isa gemm
    """
    from .isa import header, manual

    if as_manual:
        typer.echo(manual.manual(), nl=False)
    elif as_header:
        typer.echo(header.c_header(), nl=False)
    elif instruction:
        typer.echo(manual.explain(instruction), nl=False)
    else:
        from .runtime.tables import show
        show("Instructions", manual.summary())


def _program(path: Path) -> Program:
    from .isa import image
    return image.load(path) if path.suffix == ".mt" else _assembled(path)


def _assembled(path: Path) -> Program:
    from .isa.assembly import assemble
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MicrotronError(f"{path}: not UTF-8 text; images are named .mt") from None
    return assemble(text, place=str(path))


def _pairs(options: list[str]) -> dict[str, Path]:
    pairs = {}
    for option in options:
        name, separator, path = option.partition("=")
        if not (name and separator and path):
            raise MicrotronError(f"{option!r} must be a tensor and a file, as in c=c.npy")
        pairs[name] = Path(path)
    return pairs


def _device(name: str, seed: int | None, memory: str, trace: Path | None, waveform: Path | None,
            program: Program) -> Device:
    """The device that the options of `run` describe; an option it has no use for is refused."""
    from .runtime.device import open_device

    timed = ("cycle", "rtl")
    for option, given, owners in (("--seed", seed is not None, ("functional",)),
                                  ("--memory", memory != "", timed),
                                  ("--trace", trace is not None, timed),
                                  ("--waveform", waveform is not None, ("rtl",))):
        if given and name not in owners:
            raise MicrotronError(f"{option} is for the {' or '.join(owners)} device, not for "
                                 f"{name}")
    if seed is not None:
        from .runtime.functional import FunctionalDevice
        from .sim.order import Adversarial
        if seed < 0:
            raise MicrotronError(f"--seed is {seed}, but must not be negative")
        return FunctionalDevice(program.config, order=Adversarial(seed))
    if name not in timed:
        return open_device(name, program.config)
    from .isa.timing import parse_timing
    timing = parse_timing(memory)
    if name == "cycle":
        from .runtime.cycle import CycleDevice
        return CycleDevice(program.config, timing=timing)
    from .runtime.rtl import RtlDevice
    return RtlDevice(program.config, timing=timing, waveform=waveform)


def _print_safe(path: Path, verdict: Verdict) -> None:
    most = max(verdict.most_tokens.values(), default=0)
    typer.echo(f"{path}: safe: {verdict.instructions} instructions, {verdict.tokens} tokens, at "
               f"most {most} in a counter, {verdict.accesses} accesses")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point. Bad input is one line on standard error and exit code 2."""
    command: Any = typer.main.get_command(app)
    try:
        sys.exit(command.main(arguments, standalone_mode=False))
    except MicrotronError as error:
        message = str(error)
    except typer.Abort:
        sys.exit(130)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except Exception as error:
        if not hasattr(error, "format_message"):    # the parser's own complaints have it
            raise
        message = error.format_message()
    print(f"microtron: {message}".replace("\n", " "), file=sys.stderr)
    sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
