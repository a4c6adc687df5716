"""A view for a waveform: which signals GTKWave shows at first, in groups by engine and bus.

The file goes beside the waveform, under its name with .gtkw, unless there is one: somebody may have
arranged signals in it. Signals are those of the accelerator's ports, which every configuration has.
"""

from __future__ import annotations

from pathlib import Path

from ...base.atomic_files import write_atomically
from ...isa.instructions import Engine

TOP = "top"                             # what Verilator calls the outermost scope
CHANNELS = {"read": ("ar", "r"), "write": ("aw", "w", "b")}
BIT, DECIMAL = "@28", "@24"             # how GTKWave writes signals of one bit and numbers
BEGIN, END = "@800200", "@1000200"      # of a group


def signal_groups() -> dict[str, list[str]]:
    """Groups and their signals, with the bits of those that have several."""
    groups = {"run": ["clk", "rst", "trace_running"]}
    for engine in Engine:
        name = engine.name.lower()
        groups[name] = [f"trace_{name}_{event}{what}" for event in ("start", "end")
                        for what in ("", "_position[31:0]")]
    for direction, channels in CHANNELS.items():
        groups[f"memory {direction}"] = [f"m_axi_{channel}{signal}" for channel in channels
                                         for signal in ("valid", "ready")]
    return groups


def gtkwave_view(waveform: Path) -> str:
    """The save file for a waveform."""
    lines = [f'[dumpfile] "{waveform.name}"', "[timestart] 0"]
    for name, signals in signal_groups().items():
        lines += [BEGIN, f"-{name}"]
        flags = BEGIN
        for signal in signals:
            wanted = DECIMAL if "[" in signal else BIT
            lines += [f"{TOP}.{signal}"] if wanted == flags else [wanted, f"{TOP}.{signal}"]
            flags = wanted
        lines += [END, f"-{name}"]
    return "\n".join(lines) + "\n"


def write_view(waveform: Path) -> Path | None:
    """Write the view of a waveform beside it; none, if there is one."""
    path = waveform.with_suffix(".gtkw")
    if path.exists():
        return None
    write_atomically(path, gtkwave_view(waveform).encode())
    return path
