"""The functional simulator as a device."""

from __future__ import annotations

from ...base.checked_values import quote
from ...base.errors import ExecutionError, MicrotronError
from ...isa.address_map import place_windows
from ...isa.config import Config
from ...isa.program import Program
from ...sim.functional.order import Order
from ...sim.functional.simulator import Functional
from ...sim.limit import DEFAULT_WORK, check_limit
from ...sim.report import Report
from .device import Address, Bytes, check_config, device_config


class FunctionalDevice:
    """Runs programs for one configuration, or for any if none is given.

    order       how instructions of different engines follow one another: as the program has
                them, unless told otherwise
    limit       tile operations that a run may take, 10,000,000,000 unless told otherwise; a
                program that needs more is refused before it runs
    """

    name = "functional"

    def __init__(self, config: Config | str | None = None, *, order: Order | None = None,
                 limit: int | None = None):
        self.config = device_config(config)
        if order is not None and not callable(getattr(order, "drive", None)):
            raise MicrotronError(f"order is {quote(order)}, but must be an Order, such as "
                                 f"Adversarial(seed)")
        self.order = order
        self.limit = check_limit(limit, DEFAULT_WORK)
        self._machine: Functional | None = None

    def load(self, program: Program) -> None:
        check_config(program, self.config)
        place_windows(program)          # refused here too if it does not fit
        self._machine = Functional(program, limit=self.limit)

    def write(self, address: Address, data: Bytes | bytes) -> None:
        self._require_loaded().memory.write(address.segment, address.offset, data)

    def read(self, address: Address, size: int) -> Bytes:
        return self._require_loaded().memory.read(address.segment, address.offset, size)

    def run(self) -> Report:
        machine = self._require_loaded()
        return Report(device=self.name, config=machine.config, counts=machine.run(self.order))

    def _require_loaded(self) -> Functional:
        if self._machine is None:
            raise ExecutionError("no program is loaded; load one first")
        return self._machine
