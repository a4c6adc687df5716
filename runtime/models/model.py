"""Compiled models that run: arrays in, arrays out, on any device."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.argument_checks import check_path
from ...base.checked_values import show_name
from ...base.classes.dataclass import dataclass
from ...base.keywords import check_keywords
from ...base.notebooks.html_table import html_table
from ...isa.memory_timing import MemoryTiming
from .compiled_model import CompiledModel
from .host import HostBackend
from .result import Result
from .session import Session

if TYPE_CHECKING:
    from ...sim.functional.order import Order


@dataclass(frozen=True, eq=False, repr=False)
class Model(CompiledModel):
    """A compiled network, ready to run. `microtron.compile` and `microtron.load` make one."""

    def __repr__(self) -> str:
        """In a line: what goes in and out, and who computes."""
        inputs, outputs = (
            ", ".join(f"{show_name(name)}: {type_.plain()}"
                      for name, type_ in each.items())
            for each in (self.inputs, self.outputs))
        return (f"<Model {show_name(self.name) or 'without a name'}: ({inputs}) → ({outputs}), "
                f"{len(self.programs)} programs, {len(self.host_nodes)} of {len(self.nodes)} nodes "
                f"on the CPU>")

    def _repr_html_(self) -> str:
        """In a notebook: what goes in and out, and where each node runs."""
        ends = [(kind, name, "", str(type_), "", "") for kind, types in
                (("input", self.inputs), ("output", self.outputs))
                for name, type_ in types.items()]
        nodes = [("node", node.title, node.operator, str(node.type.plain()), node.where.value,
                  node.reason) for node in self.nodes]
        return html_table(
            f"{self.name or 'A model'}: {len(self.programs)} programs, {len(self.host_nodes)} of "
            f"{len(self.nodes)} nodes on the CPU",
            ("", "name", "operator", "type", "on", "reason"), [*ends, *nodes])

    @check_keywords
    def run(self, inputs: object, device: str = "cycle", *, backend: HostBackend | None = None,
            allow_nan: bool = False, memory: MemoryTiming | None = None, limit: int | None = None,
            order: Order | None = None, waveform: Path | str | None = None) -> Result:
        """Run one inference.

        inputs      an array for a model with one input, else a mapping from names to arrays:
                    NumPy's, or anything with `__dlpack__` or `__array__`
        device      "functional", "cycle", "rtl" or a board, as `open_device` takes it
        backend     runs what falls back to the CPU; machine code unless given
        allow_nan   accept inputs with NaN
        memory, limit, order, waveform      options of the device, as `open_device` has them

        Arrays have the types of `Model.inputs`. Real numbers for a quantized input are quantized
        with its scale.
        """
        with self.session(device, backend=backend, allow_nan=allow_nan, memory=memory, limit=limit,
                          order=order, waveform=waveform) as session:
            return session.run(inputs)

    @check_keywords
    def run_many(self, batches: Iterable[object], device: str = "cycle", *,
                 backend: HostBackend | None = None, allow_nan: bool = False,
                 memory: MemoryTiming | None = None, limit: int | None = None,
                 order: Order | None = None, waveform: Path | str | None = None) -> list[Result]:
        """Run many inferences; results in the order of the inputs. The accelerator runs one while
        the CPU works on its neighbours. Options are those of `run`."""
        with self.session(device, backend=backend, allow_nan=allow_nan, memory=memory, limit=limit,
                          order=order, waveform=waveform) as session:
            return session.run_many(batches)

    @check_keywords
    def session(self, device: str = "cycle", *, backend: HostBackend | None = None,
                allow_nan: bool = False, memory: MemoryTiming | None = None,
                limit: int | None = None, order: Order | None = None,
                waveform: Path | str | None = None) -> Session:
        """Load the model on a device, for repeated inference. Options are those of `run`."""
        return Session(self, device, backend=backend, allow_nan=allow_nan, memory=memory,
                       limit=limit, order=order, waveform=waveform)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model image (.mt) for `microtron.load` and the command line. The file is replaced
        atomically."""
        from .model_image import save
        save(self, check_path("path", path))


def load_model(path: str | PathLike[str]) -> Model:
    """The model in an image. Files from strangers are safe to load."""
    from .model_image import load
    return Model(**vars(load(path)))
