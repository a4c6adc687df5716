"""Names of a system's files; system_steps.py says what each is."""

from __future__ import annotations

PROCESSOR = "VexRiscv.v"
TOP = "soc"
CHIP = "chip.v"
ROM, SRAM, FACTS = "soc_rom.init", "soc_sram.init", "soc.json"
PINS = {"ecp5": "soc.lpf", "gowin": "soc.cst"}          # by flow
