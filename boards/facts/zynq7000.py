"""What is fixed in every Zynq-7000: where the fabric meets the processors. Needs no HDL."""

from __future__ import annotations

from ...base.errors import ConfigError
from ...isa.config import Config

SHELL = "microtron_zynq"        # the module that has it all
REGISTERS = 0x4000_0000         # M_AXI_GP0 in the processors' address space: the registers' window
PORT_BITS = 30                  # of addresses that reach M_AXI_GP0: 1 GiB
INTERRUPT = 61                  # IRQ_F2P[0] at the interrupt controller
SHARED_INTERRUPTS = 32          # a device tree counts from here: 61 is number 29
MEMORY_BITS, ADDRESS_BITS = 64, 32      # S_AXI_HP0


def check_config(config: Config) -> None:
    """Refuse an accelerator whose bus is not that of the memory port."""
    for name, right in (("bus_bits", MEMORY_BITS), ("address_bits", ADDRESS_BITS)):
        if getattr(config, name) != right:
            raise ConfigError(f"{name} is {getattr(config, name)}, but the memory port of a "
                              f"Zynq-7000 has {right}")
