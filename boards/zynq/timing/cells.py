"""What a signal takes through a cell and has to wait before a clock edge, from the SDF files of
Project X-Ray's database: the slow corner. Where it tells places in a slice apart, the slowest
counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...facts.errors import BoardError
from .routing import LUT, RoutedCell

NUMBER = r"-?\d+\.\d+"
CELL = re.compile(r'\(CELLTYPE "([^"]+)"\)')
ARC = re.compile(rf"\(IOPATH (\w+) (\w+) \([^)]*\)\({NUMBER}::({NUMBER})\)\)")
CHECK = re.compile(rf"\((?:SETUP|RECOVERY) (\w+) \(posedge \w+\) \(({NUMBER})::({NUMBER})\)\)")
CLOCK = re.compile(r"CK|CLK|\w*CLK[LU]?")
DSP_FACT = re.compile(
    r"(ACASCREG|ADREG|ALUMODEREG|AREG|BCASCREG|BREG|CARRYINSELREG|CARRYINREG|CREG|DREG|INMODEREG|"
    r"MREG|OPMODEREG|PREG|A_INPUT|B_INPUT|USE_DPORT|USE_MULT|USE_PATTERN_DETECT)_"
    r"(NO_PATDET|PATDET|[A-Z]+|\d)")
DSP_DEFAULTS = {"A_INPUT": "DIRECT", "B_INPUT": "DIRECT", "USE_DPORT": "FALSE",
                "USE_MULT": "MULTIPLY", "USE_PATTERN_DETECT": "NO_PATDET"}
# Ports of block RAMs, and what the database calls them.
BLOCK_RAM = {"ADDRARDADDR": "ADDRA", "ADDRBWRADDR": "ADDRB", "WEBWE": "WEB",
             "RSTRAMARSTRAM": "RSTRAMA", "REGCEAREGCE": "REGCEA", "RSTREGARSTREG": "RSTREGA"}
UNTIMED = ("BUFGCTRL", "PSEUDO_GND", "PSEUDO_VCC", "BUFG", "BUFHCE")


@dataclass
class Timing:
    """Nanoseconds from pin to pin, and before an edge of the clock."""

    arcs: dict[tuple[str, str], float] = field(default_factory=dict)
    setups: dict[str, float] = field(default_factory=dict)

    def add(self, other: Timing) -> None:
        for pins, delay in other.arcs.items():
            self.arcs[pins] = max(delay, self.arcs.get(pins, delay))
        for pin, time in other.setups.items():
            self.setups[pin] = max(time, self.setups.get(pin, time))


def read_sdf(path: Path) -> list[tuple[str, Timing]]:
    """The cells of a file; one name may come several times."""
    found: list[tuple[str, Timing]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := CELL.search(line):
            found.append((match[1], Timing()))
        elif match := ARC.search(line):
            found[-1][1].add(Timing({(match[1], match[2]): float(match[3])}))
        elif match := CHECK.search(line):
            found[-1][1].add(Timing({}, {match[1]: max(float(match[2]), float(match[3]))}))
    return found


class CellDelays:
    """Of all kinds of cells that nextpnr places."""

    def __init__(self, family: Path):
        self.folder = family / "timings"
        self.known: dict[tuple[object, ...], Timing] = {}

    def timing(self, cell: RoutedCell, ports: frozenset[str]) -> Timing:
        """Between the ports of a cell that are connected."""
        if cell.kind in UNTIMED:
            return Timing()
        key = cell.kind, bool(cell.reads), tuple(sorted(cell.parameters.items())), ports
        if key not in self.known:
            self.known[key] = _expand(self._buses(cell), cell.kind, ports)
        return self.known[key]

    def _buses(self, cell: RoutedCell) -> Timing:
        kind = cell.kind
        if kind in (LUT, "SLICE_FFX", "CARRY4", "SELMUX2_1", "F7MUX", "F8MUX"):
            return self._slices[kind]
        if kind == "DSP48E1_DSP48E1":
            return self._dsp(cell.parameters)
        if kind.startswith(("RAMB18E1", "RAMB36E1")):
            return self._block_ram(cell.parameters)
        if kind == "PS7_PS7":
            return _merge(self._read("PSS2.sdf"), r"PS7")
        raise BoardError(f"how long a {kind} takes is not known")

    def _read(self, *names: str) -> list[tuple[str, Timing]]:
        return [cell for name in names for cell in read_sdf(self.folder / name)]

    @cached_property
    def _slices(self) -> dict[str, Timing]:
        cells = self._read("CLBLL_L.sdf", "CLBLL_R.sdf", "CLBLM_L.sdf", "CLBLM_R.sdf")
        register = _merge(cells, r"REG_INIT_FF(_Q[HL])?|FF_INIT(_Q[HL])?")
        mux = _merge(cells, r"SELMUX2_1")
        return {
            LUT: _merge(cells, r"LUT[56]|LUT_OR_MEM[56](LRAM|SHFREG)"),
            # A reset is taken at the clock's edge: what counts is how long before.
            "SLICE_FFX": Timing({("CK", "Q"): register.arcs["CLK", "Q"]}, {
                "D": register.setups["DIN"], "CE": register.setups["CE"],
                "SR": register.setups["SR"]}),
            "CARRY4": _merge(cells, r"CARRY4\w*"),
            "SELMUX2_1": mux, "F7MUX": mux, "F8MUX": mux}

    def _dsp(self, parameters: dict[str, str]) -> Timing:
        found = Timing()
        for name, timing in self._read("DSP_L.sdf", "DSP_R.sdf"):
            if all(_is(parameters.get(fact, DSP_DEFAULTS.get(fact, "1")), value)
                   for fact, value in DSP_FACT.findall(name)):
                found.add(timing)
        return found

    def _block_ram(self, parameters: dict[str, str]) -> Timing:
        found = Timing()
        for name, timing in self._read("BRAM_L.sdf", "BRAM_R.sdf"):
            registers = re.findall(r"(DO[AB]_REG)_[UL]_(\d)", name)
            if "FIFO18" in name or "ISFIFO_TRUE" in name or "EN_ECC_READ_TRUE" in name or not all(
                    _is(parameters.get(fact, "0"), value) for fact, value in registers):
                continue
            found.add(Timing({(_half(one), _half(other)): delay
                              for (one, other), delay in timing.arcs.items()},
                             {_half(pin): time for pin, time in timing.setups.items()}))
        return found


def _merge(cells: list[tuple[str, Timing]], pattern: str) -> Timing:
    found = Timing()
    for name, timing in cells:
        if re.fullmatch(pattern, name):
            found.add(timing)
    return found


def _is(value: str, wanted: str) -> bool:
    """Numbers are in binary, as Yosys writes them."""
    return (str(int(value, 2)) == wanted if re.fullmatch(r"[01]+", value) else value == wanted)


def _half(pin: str) -> str:
    """A pin of a block RAM without the half that it belongs to."""
    return re.sub(r"\d*[UL]$", "", pin)


def _expand(buses: Timing, kind: str, ports: frozenset[str]) -> Timing:
    """The same for single bits."""
    names: dict[str, list[str]] = {}
    for port in ports:
        names.setdefault(port, []).append(port)
        bus = re.sub(r"\d+$", "", port)
        if kind.startswith("RAMB"):
            bus = BLOCK_RAM.get(half := re.sub(r"[UL]$", "", bus), half)
        if bus != port:
            names.setdefault(bus, []).append(port)
    return Timing(
        {(one, other): delay for (first, second), delay in buses.arcs.items()
         for one in names.get(first, ()) for other in names.get(second, ())},
        {pin: time for bus, time in buses.setups.items() for pin in names.get(bus, ())})


def is_clock(port: str) -> bool:
    return CLOCK.fullmatch(port) is not None
