"""A board: facts about its FPGA, clock, memory and pins, as a TOML file gives them. No logic.

    title, flow, part, cpu, preset, load        what it is, how it is built, and how it is loaded
    cpu_mhz             the clock of a hard processor; a soft one has the design's
    like                a board that comes with the kit; the file says only what differs
    ethernet = false    where that one is on the network, but this one is not to be
    [clock]             the oscillator's pin, and the frequency that the design is to run at
    [memory]            what the accelerator works in; [memory.timing] how it behaves, measured
    [resources]         of the part, where parts.toml does not have it
    [ethernet]          where it answers on the network, if it does (ethernet.py)
    [pins.GROUP]        the places of signals that a shell uses
    [routed]            MHz that a preset's bitstream reached; where the accelerator has a clock of
                        its own, what that was set to
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...base.checked_values import PlainData
from ...isa.config import PRESETS
from ...isa.memory_timing import MemoryTiming
from .errors import BoardError
from .ethernet import Ethernet, read_ethernet
from .toml_table import TomlTable, merge_tables, read_toml

FLOWS = ("ecp5", "gowin", "zynq", "vivado", "quartus")
MEMORIES = ("none", "sdr", "ddr3", "processor")     # the last: a hard processor has it
# Kinds of resources, as keys and in words.
RESOURCES = {"lut": "LUTs", "register": "registers", "dsp": "multipliers", "bram": "blocks of RAM"}
NAME = re.compile(r"[a-z][a-z0-9_-]*")
PARTS = Path(__file__).parent / "parts.toml"
KIT = Path(__file__).parent / "files"               # boards that come with the kit
MOST_HZ = 1_000_000_000
ETHERNET_PINS = ("ethernet", "ethernet_clocks")


@dataclass(frozen=True, kw_only=True)
class Part:
    """An FPGA as it is ordered: device, speed and package."""

    name: str                   # LFE5U-85F-6BG381C
    device: str                 # the die: LFE5U-85F
    idcode: int                 # what it calls itself over JTAG; 0 where nothing here checks it
    bram_bits: int              # of one block
    resources: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Clock:
    pin: str                    # of the oscillator; empty where a hard processor gives the clock
    hz: int                     # of the oscillator
    system_hz: int              # what the design is to run at
    standard: str
    accelerator_hz: int | None = None   # of the accelerator, if it has a clock of its own

    @property
    def is_crossed(self) -> bool:
        """Whether the accelerator has a clock of its own."""
        return self.accelerator_hz is not None

    @property
    def compute_hz(self) -> int:
        """What the accelerator is to run at."""
        return self.system_hz if self.accelerator_hz is None else self.accelerator_hz


@dataclass(frozen=True, kw_only=True)
class Memory:
    kind: str
    bytes: int
    chip: str                   # LiteDRAM's name of it, for memory that the design itself drives
    rate: str                   # of its clock to the design's, as LiteDRAM writes it
    timing: MemoryTiming | None     # as measured; None where nobody has


@dataclass(frozen=True)
class Wire:
    """A signal, or a vector of them from bit 0 on."""

    places: tuple[str, ...]
    standard: str
    options: tuple[str, ...]    # as the constraints file writes them: SLEWRATE=FAST


@dataclass(frozen=True, kw_only=True)
class Board:
    name: str
    title: str
    flow: str
    part: Part
    cpu: str
    preset: str                 # what is built unless a configuration is given
    load: str                   # the command, with {bitstream}
    clock: Clock
    memory: Memory
    pins: Mapping[str, Mapping[str, Wire]]
    routed: Mapping[str, float]
    ethernet: Ethernet | None = None        # None: not on the network
    cpu_mhz: float | None = None            # None: the design's clock, or unknown


def load_board(path: Path) -> Board:
    """The board that a file describes, under the file's name."""
    if not NAME.fullmatch(path.stem):
        raise BoardError(f"{path}: a board is named by its file, in small letters, digits, - and _")
    known = ("like", "title", "flow", "part", "cpu", "cpu_mhz", "preset", "load", "clock", "memory",
             "resources", "pins", "routed", "ethernet")
    facts = TomlTable(_read_facts(path), str(path), known)
    routed = facts.inner("routed", PRESETS)
    return Board(
        name=path.stem, title=facts.text("title"), flow=facts.text("flow", choices=FLOWS),
        part=read_part(facts), cpu=facts.text("cpu"),
        preset=facts.text("preset", choices=list(PRESETS)), load=_read_load_command(facts),
        clock=_read_clock(facts), memory=_read_memory(facts), pins=_read_pins(facts),
        routed={name: routed.positive(name) for name in routed.table},
        ethernet=read_ethernet(facts),
        cpu_mhz=facts.positive("cpu_mhz") if "cpu_mhz" in facts.table else None)


def _read_facts(path: Path) -> PlainData:
    """What a file says, and where it is `like` another board, what that says of the rest. What was
    measured there is not taken over."""
    table = read_toml(path)
    if "like" not in table:
        return table
    name = TomlTable(table, str(path)).text("like", choices=[
        each.stem for each in KIT.glob("*.toml")])
    other = _read_facts(KIT / f"{name}.toml")
    other.pop("routed", None)
    other["memory"].pop("timing", None)
    found = merge_tables(other, {key: table[key] for key in table if key != "like"})
    if found.get("ethernet") is False:
        found.pop("ethernet")
        groups = TomlTable(found, str(path)).inner("pins").table
        found["pins"] = {group: groups[group] for group in groups if group not in ETHERNET_PINS}
    return found


def read_part(facts: TomlTable) -> Part:
    """The part, with what is known of its device, or what the file says of it."""
    name = facts.text("part")
    devices = read_toml(PARTS)
    table, device = facts.table.get("resources"), name
    place = f"{facts.place}: resources"
    if table is None:
        found = [each for each in devices if name.lower().startswith(each.lower())]
        if not found:
            raise BoardError(f"{facts.place}: part is {name!r}, which is none of "
                             f"{', '.join(devices)}; describe it in [resources]")
        device = max(found, key=len)
        table, place = devices[device], f"{PARTS.name}: {device}"
    given = TomlTable(table, place, (*RESOURCES, "idcode", "bram_bits"))
    return Part(name=name, device=device, idcode=given.number("idcode", 0, (1 << 32) - 1, 0),
                bram_bits=given.number("bram_bits", 1, 1 << 20),
                resources={each: given.number(each, 0, 10_000_000) for each in RESOURCES})


def _read_load_command(facts: TomlTable) -> str:
    command = facts.text("load")
    if "{bitstream}" not in command:
        raise facts.wrong("load", "must be a command with {bitstream} where the file comes")
    return command


def _read_clock(facts: TomlTable) -> Clock:
    clock = facts.inner("clock", ("pin", "hz", "system_hz", "accelerator_hz", "standard"))
    return Clock(pin=clock.text("pin", ""), hz=clock.number("hz", 1_000_000, MOST_HZ),
                 system_hz=clock.number("system_hz", 1_000_000, MOST_HZ),
                 standard=clock.text("standard", "LVCMOS33"),
                 accelerator_hz=clock.number("accelerator_hz", 1_000_000, MOST_HZ)
                 if "accelerator_hz" in clock.table else None)


def _read_memory(facts: TomlTable) -> Memory:
    memory = facts.inner("memory", ("kind", "bytes", "chip", "rate", "timing"))
    timing = None
    if "timing" in memory.table:
        fields = [field.name for field in dataclasses.fields(MemoryTiming)]
        given: PlainData = dict(memory.inner("timing", fields).table)
        try:
            timing = MemoryTiming(**given)
        except ValueError as error:
            raise BoardError(f"{facts.place}: {error}") from None
    return Memory(kind=memory.text("kind", choices=MEMORIES),
                  bytes=memory.number("bytes", 0, 1 << 40), chip=memory.text("chip", ""),
                  rate=memory.text("rate", "1:1", ("1:1", "1:2", "1:4")), timing=timing)


def _read_pins(facts: TomlTable) -> dict[str, dict[str, Wire]]:
    groups = {}
    for name in facts.inner("pins").table:
        group = facts.inner("pins").inner(name)
        standard, options = group.text("standard", "LVCMOS33"), group.texts("options")
        groups[name] = {signal: _read_wire(group, signal, standard, options)
                        for signal in group.table if signal not in ("standard", "options")}
    return groups


def _read_wire(group: TomlTable, signal: str, standard: str, options: tuple[str, ...]) -> Wire:
    """A signal's places as a text, or a table that also says what is special about it."""
    if isinstance(group.table[signal], str):
        return Wire(tuple(group.text(signal).split()), standard, options)
    given = group.inner(signal, ("at", "standard", "options"))
    return Wire(tuple(given.text("at").split()), given.text("standard", standard),
                (*options, *given.texts("options")))
