"""The accelerator's Verilog: several tests want the same, and to write it takes seconds."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from microtron.hw.top import verilog
from microtron.isa.config import Config, tiny
from microtron.runtime.devices.rtl_build import TOP, cached_build, generator

# Two rows of activations, weights of 4 bits, the widest bus and long addresses; and little room for
# everything that waits.
MIXED = replace(tiny, batch=2, block_in=8, wgt_bits=4, bus_bits=256, address_bits=40, acc_banks=2,
                queue_depth=2, reads_in_flight=2, writes_in_flight=1)
CONFIGS = {"tiny": tiny, "mixed": MIXED}


@cache
def emitted(config: Config) -> str:
    """The Verilog of a configuration, from the cache of builds while the hardware is the same."""
    def make(folder: Path, log: Path) -> None:
        (folder / f"{TOP}.v").write_text(verilog(config))

    folder = cached_build(f"verilog-{config.digest}", (generator(),), make)
    return (folder / f"{TOP}.v").read_text()
