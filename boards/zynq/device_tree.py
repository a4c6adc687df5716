"""The device tree overlay of a bitstream: what Linux is to know about the accelerator."""

from __future__ import annotations

import math

from ...isa.registers import WINDOW_BYTES
from ..facts.zynq7000 import INTERRUPT, REGISTERS, SHARED_INTERRUPTS

LEVEL_HIGH = 4
PLL_HZ = 1_000_000_000          # what FCLK0 is divided from, by whole numbers
# The clock controller of the processors calls FCLK0 number 15.
OVERLAY = """\
/dts-v1/;
/plugin/;

// Loads the bitstream, sets FCLK0 and offers the registers to a driver in user space (UIO).
&fpga_full {{
    firmware-name = "{image}";
    #address-cells = <1>;
    #size-cells = <1>;
    ranges;

    clocking0 {{
        compatible = "xlnx,fclk";
        clocks = <&clkc 15>;
        assigned-clocks = <&clkc 15>;
        assigned-clock-rates = <{hz}>;
    }};

    microtron@{address:x} {{
        compatible = "microtron,accelerator", "generic-uio";
        reg = <{address:#010x} {size:#x}>;
        interrupt-parent = <&intc>;
        interrupts = <0 {interrupt} {level}>;
        clocks = <&clkc 15>;
    }};
}};
"""


def fabric_hz(most: float) -> int:
    """The fastest clock up to `most` that the processors can give; Linux would take the nearest."""
    return int(PLL_HZ // math.ceil(PLL_HZ / most))


def format_overlay(image: str, hz: int) -> str:
    """Source for `dtc -@`, with the bitstream's name in /lib/firmware and the clock to set."""
    return OVERLAY.format(image=image, hz=hz, address=REGISTERS, size=WINDOW_BYTES,
                          interrupt=INTERRUPT - SHARED_INTERRUPTS, level=LEVEL_HIGH)
