"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Memory = Annotated[str, typer.Option(
    metavar="NAME=VALUE,…",
    help="How memory behaves, for devices with a clock: as read_latency=64,stalls=9.")]

Limit = Annotated[int | None, typer.Option(
    help="Refuse or give up a run that takes more: cycles, or tile operations on the functional "
         "device. 10,000,000,000 unless given.")]

ModelConfig = Annotated[str, typer.Option(
    "--config", help="For a .tflite or .onnx file: the accelerator to compile for, a preset or a "
                     ".toml file; base unless given.")]

ModelShapes = Annotated[list[str] | None, typer.Option(
    "--shape", metavar="INPUT=N,N,…",
    help="For an .onnx file: the shape of an input that it leaves open, as x=1,3,224,224.")]
