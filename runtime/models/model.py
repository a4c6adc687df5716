"""Compiled models that run: arrays in, arrays out, on any device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ...base.checked_values import show_name
from .compiled_model import CompiledModel
from .host import HostBackend
from .result import Result
from .session import Session


@dataclass(frozen=True, eq=False, repr=False)
class Model(CompiledModel):
    """A compiled network, ready to run. `microtron.compile` and `microtron.load` make one."""

    def __repr__(self) -> str:
        """In a line: what goes in and out, and who computes."""
        inputs, outputs = (
            ", ".join(f"{show_name(name)}: {type_.plain()}" for name, type_ in each.items())
            for each in (self.inputs, self.outputs))
        return (f"<Model {show_name(self.name) or 'without a name'}: ({inputs}) → ({outputs}), "
                f"{len(self.programs)} programs, {len(self.host_nodes)} of {len(self.nodes)} nodes "
                f"on the CPU>")

    def run(self, inputs: Any, device: str = "cycle", **options: Any) -> Result:
        """The outputs for some inputs, and what the run did.

        Inputs are a mapping from names to arrays, or the only input alone: arrays of NumPy, or of
        anything with `__dlpack__` or `__array__`. They have the types of `inputs`; real numbers
        for a quantized input are quantized by its own scale. `options` are those of the session
        (`backend`, `allow_nan`) and of the device: `limit`, or another `timing` than the one that
        the model was compiled for.
        """
        with self.session(device, **options) as session:
            return session.run(inputs)

    def run_many(self, batches: Iterable[Any], device: str = "cycle",
                 **options: Any) -> list[Result]:
        """The results for many inputs, in their order. The accelerator runs one inference while
        the CPU works on its neighbours."""
        with self.session(device, **options) as session:
            return session.run_many(batches)

    def session(self, device: str = "cycle", *, backend: HostBackend | None = None,
                allow_nan: bool = False, **options: Any) -> Session:
        """The model loaded on a device, for repeated inference. `backend` runs what the CPU
        computes; inputs with NaN are refused unless `allow_nan`."""
        return Session(self, device, backend=backend, allow_nan=allow_nan, **options)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model image, which `microtron.load` and the commands take. What was at `path`
        stays until the new file is complete."""
        from .model_image import save
        save(self, path)


def load_model(path: str | PathLike[str]) -> Model:
    """The model in an image. Files from strangers are safe to load."""
    from .model_image import load
    return Model(**vars(load(path)))
