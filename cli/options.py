"""Options that several commands have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, NamedTuple, TypedDict

import typer

from ..base.errors import MicrotronError

EXTENT = r"\d{1,10}"
INTEGER = r"[+-]?\d{1,20}"
NUMBER = rf"{INTEGER}|[+-]?(\d{{1,40}}\.?\d{{0,40}}|\.\d{{1,40}})(e[+-]?\d{{1,3}})?|(?i:true|false)"

Memory = Annotated[str, typer.Option(
    metavar="NAME=VALUE,…",
    help="Timing of the DRAM, for devices with a clock: read_latency=64,stalls=9.")]

Limit = Annotated[int | None, typer.Option(
    help="Give up after so many cycles; on the functional device, tile operations. [default: "
         "10,000,000,000]")]

ModelConfig = Annotated[str, typer.Option(
    "--config", help="Configuration to compile a .tflite or .onnx file for: a preset or a .toml "
                     "file. [default: base]")]

ReportFile = Annotated[Path | None, typer.Option(
    "--report", metavar="FILE.html", help="Also write a report: one HTML file for a browser.")]

TableFile = Annotated[Path | None, typer.Option(
    "--table", metavar="FILE", help="Also write the table to a .csv, .parquet or .jsonl file.")]

ModelShapes = Annotated[list[str] | None, typer.Option(
    "--shape", metavar="INPUT=N,N,…",
    help="Shape of a dynamic input of a .tflite or .onnx file: x=1,3,224,224.")]

ModelValues = Annotated[list[str] | None, typer.Option(
    "--value", metavar="INPUT=N,…",
    help="Replace an input of a .tflite or .onnx file by a constant: rate=16000.")]


ModelStates = Annotated[list[str] | None, typer.Option(
    "--state", metavar="OUTPUT=INPUT",
    help="For a .tflite or .onnx file: an output that is an input of the next inference, as "
         "stateN=state. It begins with zeros.")]


ModelBatch = Annotated[int, typer.Option(
    "--batch", metavar="N",
    help="Images at once, for a .tflite or .onnx file that takes one: 1 along the first axis of "
         "its inputs becomes N.")]


class CompileInputs(TypedDict):
    """Options of `microtron.compile`."""

    shapes: dict[str, tuple[int, ...]]
    values: dict[str, object]


class ModelInputs(NamedTuple):
    """What options say about the inputs of a model file."""

    shapes: list[str] | None = None
    values: list[str] | None = None
    data: Path | None = None            # samples, to quantize a float model first
    random_data: bool = False
    preprocess: str = ""
    states: list[str] | None = None
    batch: int = 1

    @property
    def quantizes(self) -> bool:
        return self.data is not None or self.random_data or bool(self.preprocess)

    def parse(self) -> CompileInputs:
        """The options of `microtron.compile`."""
        shapes = _split("--shape", self.shapes, EXTENT, "whole numbers, as in x=1,3,224,224")
        values = _split("--value", self.values, NUMBER, "numbers, as in rate=16000")
        return {"shapes": {name: tuple(map(int, parts)) for name, parts in shapes.items()},
                "values": {name: _numbers(parts) for name, parts in values.items()}}


    def state_pairs(self) -> dict[str, str]:
        """Outputs, and the inputs that they become."""
        found: dict[str, str] = {}
        for each in self.states or []:
            output, equals, name = each.partition("=")
            if not (output and equals and name):
                raise MicrotronError(f"--state {each[:60]!r} must be an output and an input, as in "
                                     f"stateN=state")
            if output in found:
                raise MicrotronError(f"--state names the output {output!r} twice")
            found[output] = name
        return found


def _split(option: str, given: list[str] | None, pattern: str,
           wanted: str) -> dict[str, list[str]]:
    """Names of inputs and the parts of what is said of them."""
    found: dict[str, list[str]] = {}
    for each in given or []:
        name, _, text = each.rpartition("=")
        parts = text.split(",")
        if not name or not all(re.fullmatch(pattern, part, re.ASCII) for part in parts):
            raise MicrotronError(f"{option} {each[:60]!r} must be an input and {wanted}")
        if name in found:
            raise MicrotronError(f"{option} names the input {name!r} twice")
        found[name] = parts
    return found


def _numbers(parts: list[str]) -> object:
    """Numbers of the type that their text has: truth values, integers or reals."""
    if {"true", "false"} & set(map(str.lower, parts)):
        return [{"true": True, "false": False}.get(part.lower(), part) for part in parts]
    integers = all(re.fullmatch(INTEGER, part) for part in parts)
    return [int(part) if integers else float(part) for part in parts]
