"""The command line: a thin skin over functions. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .. import __version__
from ..base.errors import MicrotronError
from .boards import boards, build
from .devices import compare, profile, run
from .entry import BAD_INPUT, run_command
from .explore.codesign import explore
from .explore.cost import fit
from .explore.data import dataset, records
from .explore.tuning import tune
from .files import AsJson, ProgramFile, check_table, name_beside, say, write_table, write_text
from .firmware import firmware
from .kernel import add_operators, kernels
from .machine.completion import completion
from .machine.doctor import doctor
from .machine.self_test import selftest
from .model import check_unused, compile_, inspect, is_model
from .networks import disassemble_model, verdicts_of_model
from .options import (
    ModelConfig,
    ModelInputs,
    ModelShapes,
    ModelStates,
    ModelValues,
    TableFile,
)
from .parsing.help import GroupedCommands
from .parsing.plain_values import convert_plainly
from .quantization import quantize
from .report import report

if TYPE_CHECKING:
    from ..isa.verification.verifier import Verdict

SETTINGS: dict[str, Any] = {
    "name": "microtron", "cls": GroupedCommands, "add_completion": False, "rich_markup_mode": None,
    "help": "A co-design kit for small tensor accelerators: compile networks, simulate them "
            "exactly, generate the hardware and build bitstreams."}

app = typer.Typer(**SETTINGS)


@app.callback(invoke_without_command=True)
def about(context: typer.Context,
          version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
          ) -> None:
    if version:
        typer.echo(f"microtron {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def asm(source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Assembly text.")],
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Image to write. [default: SOURCE with .mt]")] = None,
        tokens: Annotated[bool, typer.Option(
            "--tokens", help="Derive tokens from data dependences, replacing those in the text.",
        )] = False) -> None:
    """Assemble a program.

    Example: microtron asm matmul.asm -o matmul.mt
    """
    from ..isa.program_files import assemble_file, save_program

    program = assemble_file(source)
    if tokens:
        from ..isa.verification.derive_tokens import with_tokens
        program = with_tokens(program)
    target = output or name_beside(source, ".mt")
    save_program(program, target)
    say(f"{target}: {len(program.code)} instructions, {len(program.segments)} segments")


@app.command()
def disasm(program: ProgramFile,
           output: Annotated[Path | None, typer.Option(
               "--output", "-o", help="File to write. [default: standard output]")] = None,
           name: ModelConfig = "",
           shapes: ModelShapes = None,
           values: ModelValues = None,
           states: ModelStates = None) -> None:
    """Disassemble a program.

    The text assembles to the same image. A network gives all of its programs.

    Example: microtron disasm matmul.mt
    """
    from ..isa.assembly.disassembler import disassemble
    from ..isa.program_files import load_program

    if is_model(program):
        text = disassemble_model(program, name, ModelInputs(shapes, values, states=states))
    else:
        check_unused(name, ModelInputs(shapes, values, states=states), f"{program} is a program")
        text = disassemble(load_program(program))
    write_text(text, output)


@app.command()
def verify(program: ProgramFile,
           name: ModelConfig = "",
           shapes: ModelShapes = None,
           values: ModelValues = None,
           states: ModelStates = None,
           as_json: AsJson = False) -> None:
    """Prove a program free of deadlocks, races and stray accesses.

    Also of overflows of token counters. Each finding names the two instructions, the range and
    the missing order; exit code 2 if there is one. A network is verified program by program.

    Example: microtron verify matmul.mt
    """
    from ..isa.program_files import load_program
    from ..isa.verification.verifier import inspect as judge

    if is_model(program):
        verdicts = verdicts_of_model(program, name, ModelInputs(shapes, values, states=states))
    else:
        check_unused(name, ModelInputs(shapes, values, states=states), f"{program} is a program")
        verdicts = [(str(program), judge(load_program(program)))]
    if as_json:
        found = [{"file": place, "safe": not each.findings, **vars(each)}
                 for place, each in verdicts]
        typer.echo(json.dumps({"file": str(program), "programs": found,
                               "safe": not any(each.findings for _, each in verdicts)}
                              if is_model(program) else found[0]))
    for place, verdict in verdicts:
        if not as_json and not verdict.findings:
            _print_safe(place, verdict)
        for finding in verdict.findings if not as_json else ():
            say(f"{place}: {finding}", err=True)
    if any(each.findings for _, each in verdicts):
        raise typer.Exit(BAD_INPUT)


app.command("compile")(compile_)
app.command()(inspect)
app.command()(quantize)
app.command()(run)
app.command()(profile)
app.command()(report)
app.command()(compare)
app.command()(boards)
app.command()(build)
app.command()(firmware)
app.command()(selftest)
app.command()(dataset)
app.command()(records)
app.command()(fit)
app.command()(explore)
app.command()(tune)
app.command()(doctor)
app.command()(completion)
app.add_typer(kernels, name="kernel")


@app.command()
def config(name: Annotated[str, typer.Argument(
               metavar="NAME", help="A preset, a .toml file, or VTA's vta_config.json; all "
                                    "presets if left out.")] = "",
           output: Annotated[Path | None, typer.Option(
               "--output", "-o", help="TOML file to write.")] = None,
           table: TableFile = None,
           as_json: AsJson = False) -> None:
    """Show, convert or save a configuration.

    Example: microtron config vta_config.json -o mine.toml
    """
    from ..isa.config import PRESETS
    from ..isa.config_files import format_toml, load_with_notes, save_config

    check_table(table)
    chosen = dict(PRESETS)
    if name:
        found, notes = load_with_notes(name)
        chosen = {name: found}
        for note in notes:
            say(note, err=True)
    if output is not None and not name:
        raise MicrotronError("--output needs the name of one configuration to save")
    write_table(table, [{"name": each, **found.to_dict(), "digest": found.digest}
                        for each, found in chosen.items()], silent=as_json)
    if output is not None:
        save_config(chosen[name], output)
    elif as_json:
        typer.echo(json.dumps({each: {**found.to_dict(), "digest": found.digest}
                               for each, found in chosen.items()}))
    elif name:
        write_text(format_toml(chosen[name]))
    else:
        from ..runtime.reports.tables import show_configs
        show_configs(chosen)


@app.command()
def verilog(name: Annotated[str, typer.Option(
                "--config", help="A preset, a .toml file, or VTA's vta_config.json.")] = "base",
            target: Annotated[str | None, typer.Option(
                help="Map multipliers for an FPGA family: xc7, ecp5 or gowin.")] = None,
            output: Annotated[Path | None, typer.Option(
                "--output", "-o", help="File to write. [default: standard output]")] = None,
            ) -> None:
    """Generate the accelerator as Verilog.

    Module `microtron`, an AXI4 master and an AXI4-Lite slave. Needs the extra `hw`.

    Example: microtron verilog --config small --target xc7 -o small.v
    """
    from ..hw.targets import check_target
    from ..isa.config_files import load_config
    from ..runtime.devices.rtl_build import cache_folder
    from ..runtime.devices.verilog import write_verilog

    check_target(target)
    text = write_verilog(load_config(name), cache_folder().parent / "verilog.log", target)
    write_text(text, output)


@app.command()
def isa(instruction: Annotated[str, typer.Argument(
            metavar="INSTRUCTION", help="The one to explain; a summary of all if left out.")] = "",
        as_manual: Annotated[bool, typer.Option(
            "--manual", help="Print the manual as Markdown.")] = False,
        as_header: Annotated[bool, typer.Option(
            "--header", help="Print the C header.")] = False,
        table: TableFile = None) -> None:
    """Look up an instruction; print the manual or the C header.

    Example: microtron isa gemm
    """
    from ..isa import c_header, manual

    check_table(table)
    if table is not None and (as_manual or as_header or instruction):
        raise MicrotronError("--table is for the summary of all instructions; leave out the others")
    if as_manual:
        write_text(manual.manual())
    elif as_header:
        write_text(c_header.c_header())
    elif instruction:
        from ..runtime.reports.tables import show_section
        show_section(manual.explain(instruction))
    else:
        from ..runtime.reports.tables import show
        write_table(table, [{"instruction": each, "summary": text}
                            for each, text in manual.summary()])
        show("Instructions", manual.summary())


def _print_safe(path: str, verdict: Verdict) -> None:
    most = max(verdict.most_tokens.values(), default=0)
    say(f"{path}: safe: {verdict.instructions} instructions, {verdict.tokens} tokens, at "
               f"most {most} in a counter, {verdict.accesses} accesses")


WITH_OPERATORS = (["kernel"], ["completion"])       # commands that list them all


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point. Bad input is one line on standard error and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run_command(lambda: _parser_for(given[:1]), given))


def _parser_for(first: list[str]) -> Any:
    """The parser of the command that is named first; of all, if none is."""
    named = [each for each in app.registered_commands if [_name_of(each)] == first]
    if not named or first in WITH_OPERATORS:
        return parser(with_operators=first in WITH_OPERATORS)
    alone = typer.Typer(**SETTINGS)
    alone.callback(invoke_without_command=True)(about)
    alone.registered_commands += named
    found: Any = typer.main.get_command(alone)
    for each in (found, found.commands[first[0]]):
        convert_plainly(each)
    return found


def _name_of(command: Any) -> str:
    return str(command.name or command.callback.__name__)


@cache
def parser(*, with_operators: bool) -> Any:
    """All commands, read from the functions' signatures."""
    if with_operators:
        add_operators()
    return typer.main.get_command(app)


if __name__ == "__main__":
    main()
