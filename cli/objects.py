"""The objects of a network for a board's own processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..base.errors import MicrotronError
from .files import say

if TYPE_CHECKING:
    from ..runtime.models.model import Model


def check_objects(cpu: str, folder: Path | None) -> None:
    """Refuse one option without the other, or a processor that there is not, before anything takes
    time."""
    if bool(cpu) != (folder is not None):
        raise MicrotronError("--cpu and --emit-objects go together, as in --cpu rv32imac "
                             "--emit-objects objects")
    if cpu:
        from ..base.processor import target
        target(cpu)


def write_network_objects(model: Model, cpu: str, folder: Path, *, force: bool) -> list[str]:
    """Write a network for a processor; the files."""
    from ..base.processor import target
    from ..base.progress import report_progress
    from ..runtime.aot.objects import write_objects

    with report_progress(f"compiling for {cpu}"):
        return [str(path) for path in write_objects(model, target(cpu), folder,
                                                         force=force)]


def write_network(model: Model, cpu: str, folder: Path, *, force: bool,
                  as_json: bool = False) -> None:
    written = write_network_objects(model, cpu, folder, force=force)
    if as_json:
        typer.echo(json.dumps({"objects": written}))
    else:
        say(f"{folder}: {len(written)} files for {cpu}")
