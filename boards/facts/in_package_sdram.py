"""Memory in the package of a Gowin FPGA: its wires, by the names that Gowin's tools know."""

from __future__ import annotations

INSIDE = {"clk": ("O_sdram_clk", 1), "cke": ("O_sdram_cke", 1), "cs_n": ("O_sdram_cs_n", 1),
          "cas_n": ("O_sdram_cas_n", 1), "ras_n": ("O_sdram_ras_n", 1),
          "we_n": ("O_sdram_wen_n", 1), "dm": ("O_sdram_dqm", 4), "a": ("O_sdram_addr", 11),
          "ba": ("O_sdram_ba", 2), "dq": ("IO_sdram_dq", 32)}
DEVICE_NAMES = {"GW2AR-LV18": "GW2AR-18C"}          # of a part with such a memory
