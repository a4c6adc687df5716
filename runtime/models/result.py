"""What a model gave: outputs by name, what the accelerator's runs did, and what ran where."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.checked_values import list_names, show_name
from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ...base.notebooks.html_table import html_table
from ...compiler.graph.types import Array, TensorType
from ...compiler.network.network import Where
from ...sim.report import Report
from ..clock import DEFAULT_MHZ, Clock
from .compiled_model import NodeReport
from .tensors import real

SHOWN = 8                   # elements of an output, in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of one inference: `result["name"]` is an output in the model's own type,
    `result.real("name")` the same as real numbers."""

    outputs: Mapping[str, Array]
    types: Mapping[str, TensorType]
    reports: tuple[Report, ...]             # of the programs, in order
    device: str
    nodes: tuple[NodeReport, ...]           # what ran where, and why
    cpu_seconds: float = 0.0                # that the CPU's nodes took in this run, on this machine
    repack_seconds: float = 0.0             # that moving tensors in and out of tiles took

    def __repr__(self) -> str:
        """In a line: what came out, and after how long."""
        outputs = ", ".join(f"{show_name(name)}: {type_.plain()}" for name,
                            type_ in self.types.items())
        time = "" if self.cycles is None else f", {self.cycles:,} cycles"
        return f"<Result ({outputs}) of the {self.device} device{time}>"

    def _repr_html_(self) -> str:
        """In a notebook: the outputs, how long they took, and what ran where."""
        time = "" if self.cycles is None else (
            f", {self.cycles:,} cycles, {self.utilization or 0:.1%} of the MAC array")
        rows = [(name, str(self.types[name]), _range(array), _first(array))
                for name, array in self.outputs.items()]
        return html_table(f"Outputs on the {self.device} device{time}; "
                          f"{self.cpu_seconds * 1e3:.3g} ms on the CPU",
                          ("output", "type", "range", "first elements"), rows)

    def __getitem__(self, name: str) -> Array:
        """An output."""
        return self.outputs[self._check_name(name)]

    def real(self, name: str | None = None) -> Array:
        """The real numbers of an output; of the only one, if none is named."""
        if name is None:
            if len(self.outputs) != 1:
                raise MicrotronError(f"there are {len(self.outputs)} outputs, so one must be "
                                     f"named: {list_names(list(map(show_name, self.outputs)))}")
            name = next(iter(self.outputs))
        return real(self.outputs[self._check_name(name)], self.types[name])

    def _check_name(self, name: str) -> str:
        if name not in self.outputs:
            raise MicrotronError(f"there is no output {show_name(name)}; there are "
                                 f"{list_names(list(map(show_name, self.outputs)))}")
        return name

    @property
    def cycles(self) -> int | None:
        """Of all programs together; None on a device without a clock."""
        cycles = [each.cycles for each in self.reports]
        return None if None in cycles else sum(each or 0 for each in cycles)

    @property
    def utilization(self) -> float | None:
        """Of the accelerator alone: multiplications that its layers need, of those that the MAC
        array could have done while it ran. What the CPU computes does not count."""
        if not self.cycles:
            return None
        macs = sum(each.macs for each in self.nodes if each.where == Where.ACCELERATOR)
        return macs / (self.cycles * self.reports[0].config.macs_per_cycle)

    def end_to_end_seconds(self, mhz: float = DEFAULT_MHZ) -> float | None:
        """From inputs to outputs, with the accelerator at a clock and the CPU as in this run; None
        on a device without a clock."""
        if self.cycles is None:
            return None
        return Clock(mhz).seconds(self.cycles) + self.cpu_seconds + self.repack_seconds

    def to_dict(self) -> dict[str, object]:
        """Everything but the outputs, fit for JSON."""
        return {"device": self.device, "cycles": self.cycles,
                "accelerator_utilization": self.utilization,
                "cpu_seconds": self.cpu_seconds, "repack_seconds": self.repack_seconds,
                "programs": [each.to_dict() for each in self.reports],
                "nodes": [{"name": each.name, "origin": each.origin, "operator": each.operator,
                           "where": each.where.value, "reason": each.reason}
                          for each in self.nodes]}


def _range(array: Array) -> str:
    return f"{array.min()} to {array.max()}" if array.size else "empty"


def _first(array: Array) -> str:
    values = " ".join(f"{each:.5g}" if isinstance(each, float) else str(each)
                      for each in array.ravel()[:SHOWN].tolist())
    return values + (" …" if array.size > SHOWN else "")
