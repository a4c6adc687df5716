"""What the commands have in common: programs and other files named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import MicrotronError

if TYPE_CHECKING:
    from ..compiler.graph.graph import Graph
    from ..report.extra_plot import ExtraPlot
    from ..report.extra_table import ExtraTable
    from ..runtime.reports.layers import Inspection

ProgramFile = Annotated[Path, typer.Argument(
    metavar="PROGRAM", help="A program: an image (.mt) or assembly (any other name). Or a "
                            "network: .tflite, .onnx or a model image (.mt).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def say(text: str, *, err: bool = False) -> None:
    """Print lines for people. Names in them may come from anywhere."""
    from ..base.checked_values import printable
    typer.echo("\n".join(map(printable, text.split("\n"))), err=err)


def write_text(text: str, output: Path | None = None) -> None:
    """Write what programs read, to a file or to standard output: UTF-8 in any case."""
    if output is None:
        typer.echo(text.encode(), nl=False)
    else:
        from ..base.atomic_files import write_atomically
        write_atomically(output, text.encode())


def name_beside(path: Path, ending: str) -> Path:
    """The file beside another one that has its name, with this ending."""
    if not path.name:
        raise MicrotronError(f"{path} is a folder, but must be a file")
    return path.with_name(f"{path.stem}{ending}")


def tensor_files(option: str, given: list[str] | None) -> dict[str, Path]:
    """Tensors and their files, as the option names them: c=c.npy."""
    found: dict[str, Path] = {}
    for each in given or []:
        name, separator, path = each.partition("=")
        if not (name and separator and path):
            raise MicrotronError(f"{option} {each!r} must be a tensor and a file, as in c=c.npy")
        if name in found:
            raise MicrotronError(f"{option} names the tensor {name!r} twice")
        found[name] = Path(path)
    return found


def check_distinct(files: Iterable[Path | None]) -> None:
    """Refuse to write two results to the same file."""
    seen: set[Path] = set()
    for path in files:
        if path is not None:
            if path.absolute() in seen:
                raise MicrotronError(f"{path} is to receive two results, but can hold one")
            seen.add(path.absolute())


def check_report(path: Path | None) -> None:
    """Refuse a report that cannot be written before anything takes long."""
    if path is None:
        return
    if path.suffix not in (".html", ".htm"):
        raise MicrotronError(f"{path}: a report is an .html file")
    from ..base.atomic_files import check_folder
    check_folder(path)


def write_inspections(found: Mapping[str, Inspection], path: Path, *,
                      tables: Sequence[ExtraTable] = (), plots: Sequence[ExtraPlot] = (),
                      silent: bool = False) -> None:
    """Write a report, and say so."""
    from ..base.progress import report_progress
    from ..report.save_report import write_report

    with report_progress(f"writing {path}"):
        write_report(found, path, tables=tables, plots=plots)
    if not silent:
        say(f"{path}: a report on {', '.join(found)}; open it in a browser")


def check_table(path: Path | None) -> None:
    """Refuse a table that cannot be written before anything takes long."""
    if path is not None:
        from ..base.atomic_files import check_folder
        from ..runtime.reports.table_files import check_ending
        check_ending(path)
        check_folder(path)


def write_table(path: Path | None, rows: Iterable[Mapping[str, object]], *,
                silent: bool = False) -> None:
    """Write what the table on the screen shows, and say so."""
    if path is None:
        return
    from ..runtime.reports.table_files import flatten, write_rows

    found = [flatten(row) for row in rows]
    write_rows(path, found)
    if not silent:
        say(f"{path}: {len(found)} row{'s' * (len(found) != 1)}")


def write_waveform_views(waveform: Path | None) -> None:
    """Beside a waveform that was written: which signals viewers show at first."""
    if waveform is not None:
        from ..runtime.devices.waveform_view import write_views
        write_views(waveform)


@contextmanager
def dump_passes(folder: Path | None, *, silent: bool) -> Iterator[list[tuple[str, Graph]]]:
    """A list for the graphs after each pass. They are written, if there is a folder, also if what
    follows fails."""
    graphs: list[tuple[str, Graph]] = []
    if folder is not None:
        from ..compiler.graph.dump_graphs import make_folder
        make_folder(folder)
    try:
        yield graphs
    except MicrotronError:
        _dump(graphs, folder, silent=True)
        raise
    _dump(graphs, folder, silent=silent)


def _dump(graphs: Sequence[tuple[str, Graph]], folder: Path | None, *, silent: bool) -> None:
    if folder is None or not graphs:
        return
    from ..base.progress import report_progress
    from ..compiler.graph.dump_graphs import dump_graphs

    with report_progress(f"writing {folder}"):
        dump_graphs(graphs, folder)
    if not silent:
        say(f"{folder}: {len(graphs)} graphs, for Netron")
