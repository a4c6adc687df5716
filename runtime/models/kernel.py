"""Compiled operators that run: plain arrays in, plain arrays out, on any device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy.typing as npt

from ...base.classes.dataclass import dataclass
from ...compiler.operators.kernel import Kernel as CompiledKernel
from ...compiler.operators.packing import Array
from ...sim.report import Report
from ..devices.device import Device, run


@dataclass(frozen=True)
class Kernel(CompiledKernel):
    """A compiled operator, ready to run."""

    def run(self, inputs: Mapping[str, npt.ArrayLike],
            device: str | Device = "functional") -> tuple[Array, Report]:
        """The result for some inputs, and what the run did.

        Inputs have plain layouts: those of a convolution are `data` (images, channels, rows,
        columns), `weights` (outputs, inputs, rows, columns), and for each channel a `bias`, which
        may be left out, and a `multiplier` and a `shift`, or a real `scale` instead of both.
        `form.operands` lists what another operator takes. Packing into tiles, and what zero points
        add to the bias, happens here.
        """
        outputs, report = run(self.program, self.pack(inputs), device)
        return self.unpack(outputs), report
