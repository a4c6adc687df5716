"""Views for a waveform: which signals GTKWave and Surfer show at first, by engine and bus.

The files go beside the waveform, under its name with .gtkw and .sucl, unless there are some:
somebody may have arranged signals in them. Signals are those of the accelerator's ports, which
every configuration has.
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


def surfer_view(waveform: Path) -> str:
    """Commands with which Surfer shows a waveform: a divider for each group, and its signals.
    Formats come last: what is added goes below a signal in focus."""
    lines, positions, number = [f"load_file {waveform.name}"], [], 0
    for name, signals in signal_groups().items():
        lines.append(f"divider_add {name.replace(' ', '_')}")       # one word
        number += 1
        for signal in signals:
            plain, bits, _ = signal.partition("[")
            lines.append(f"variable_add {TOP}.{plain}")
            positions += [number] if bits else []
            number += 1
    for each in positions:
        lines += [f"item_focus {_letters(each)}", "item_set_format Unsigned"]
    return "\n".join([*lines, "item_unfocus", "zoom_fit"]) + "\n"


def _letters(number: int) -> str:
    """What Surfer calls a line: hexadecimal with the letters a to p for digits."""
    return "".join(chr(ord("a") + int(digit, 16)) for digit in f"{number:x}")


VIEWS = {".gtkw": gtkwave_view, ".sucl": surfer_view}


def write_views(waveform: Path) -> list[Path]:
    """Write views of a waveform beside it, where there are none. Returns those that are new."""
    found = {waveform.with_suffix(ending): view for ending, view in VIEWS.items()}
    fresh = [path for path in found if not path.exists()]
    for path in fresh:
        write_atomically(path, found[path](waveform).encode())
    return fresh
