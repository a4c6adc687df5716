"""The accelerator's Verilog, as a step of a build writes it."""

from __future__ import annotations

from pathlib import Path

from ...isa.config import Config


def write_verilog(config: dict[str, int], target: str | None = None,
                  multipliers: int | None = None) -> None:
    """Write microtron.v, with multipliers as a part has them."""
    from ...hw.targets import find_target
    from ...hw.top import verilog

    part = None if target is None else find_target(target, multipliers)
    Path("microtron.v").write_text(verilog(Config(**config), part), encoding="utf-8")
