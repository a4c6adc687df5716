"""The accelerator's Verilog, as a step of a build writes it."""

from __future__ import annotations

from pathlib import Path

from ...isa.config import Config


def write(config: dict[str, int]) -> None:
    """Write microtron.v."""
    from ...hw.top import verilog

    Path("microtron.v").write_text(verilog(Config(**config)), encoding="utf-8")
