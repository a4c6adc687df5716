"""The monitor, which every system has in its ROM: built for the addresses of one system."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from ...base.checked_values import PlainData
from ...runtime.monitor.protocol import c_header
from .riscv_gcc import SOURCE, compile_sources, extract_binary, link

SOURCES = ("start.S", "monitor.c", "machine.c", "leveling.c", "serial.c", "bytes.c")
PLACES = ("rom", "sram", "main_ram", "registers", "csr")


def write_rom(facts: str, output: str) -> None:
    """A step of a build: the ROM's words, as Verilog reads them, from a system's facts."""
    Path(output).write_text(format_rom(build_monitor(json.loads(Path(facts).read_text()))))


def format_rom(code: bytes) -> str:
    words = np.frombuffer(code + bytes(-len(code) % 4), "<u4")
    return "".join(f"{word:08x}\n" for word in words)


def build_monitor(facts: PlainData) -> bytes:
    """The monitor of a system as it lies in ROM."""
    with tempfile.TemporaryDirectory(prefix="microtron-monitor-") as name:
        folder = Path(name)
        (folder / "system.h").write_text(system_header(facts))
        (folder / "protocol.h").write_text(c_header())
        objects = compile_sources(folder, [SOURCE / each for each in SOURCES],
                           data_cache=facts["data_cache"])
        memories = facts["memories"]
        symbols = {f"{place.upper()}_{key.upper()}": memories[place][key]
                   for place in ("rom", "sram") for key in ("base", "size")}
        link(folder, "monitor.elf", "monitor.ld", objects, symbols, "-nostdlib", "-lgcc")
        extract_binary(folder, "monitor.elf", "monitor.bin")
        return (folder / "monitor.bin").read_bytes()


def system_header(facts: PlainData) -> str:
    """Where everything is, for the monitor."""
    lines = ["/* Generated from soc.json. */", "#ifndef SYSTEM_H", "#define SYSTEM_H", "",
             f'#define BOARD "{facts["board"]}"', f"#define CLOCK_HZ {facts['clock_hz']}u"]
    lines += [f"#define {place.upper()}_{key.upper()} {facts['memories'][place][key]:#x}u"
              for place in PLACES for key in ("base", "size")]
    lines += [f"#define CSR_{name.upper()} {address:#x}u"
              for name, address in facts["registers"].items()]
    lines += [f"#define INTERRUPT_{name.upper()} {number}"
              for name, number in facts["interrupts"].items()]
    steps = ", ".join(f"{{ {each['address']:#x}, {each['bank']}, {each['command']}, "
                      f"{int(each['is_control'])}, {each['wait']} }}"
                      for each in facts["dram"]["start"])
    lines += [f"#define DRAM_{name.upper()} {facts['dram'][name]}u"
              for name in ("modules", "bitslips", "delays")]
    return "\n".join([*lines, f"#define DRAM_START {steps}", "", "#endif"]) + "\n"
