"""Every operation of the graph can be computed by the CPU."""

from __future__ import annotations

import microtron.compiler.graph.operations  # noqa: F401, makes them known
from microtron.compiler.cpu.registry import LOWERINGS, NEST_LOWERINGS
from microtron.compiler.graph.operation import OPERATIONS

from . import lowered  # noqa: F401, registers lowerings

WITHOUT: dict[str, str] = {}        # operations that have no lowering, and why


def test_every_operation_has_a_lowering():
    # Operations that tests declare are not the graph's.
    own = {name for name, kind in OPERATIONS.items() if kind.__module__.startswith("microtron.")}
    lacking = {name for name in own
               if OPERATIONS[name] not in LOWERINGS and OPERATIONS[name] not in NEST_LOWERINGS}
    assert lacking == set(WITHOUT)
