"""The delays that nextpnr writes in SDF for every cell and wire of a placed design."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from ..build.static_timing import Delays

PIN = r"((?:\\.|[^\s()/\\])+)"
WIRE = re.compile(rf"\s*\(INTERCONNECT {PIN}/{PIN} {PIN}/{PIN} \(\d+:\d+:(\d+)\)")
ARC = re.compile(rf"\s*\(IOPATH {PIN} {PIN} \(\d+:\d+:(\d+)\)")
CHECK = re.compile(rf"\s*\(SETUPHOLD \(posedge {PIN}\) \(posedge {PIN}\) \(-?\d+:-?\d+:(-?\d+)\)")
INSTANCE = re.compile(rf"\s*\(INSTANCE {PIN}\)")
PICOSECONDS = 1000


def read_sdf(path: Path) -> Delays:
    """From a file compressed with gzip."""
    found = Delays()
    cell = ""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if match := WIRE.match(line):
                driver, out, sink, pin, time = match.groups()
                delay = int(time) / PICOSECONDS
                found.wires[_unescape(sink), pin] = (_unescape(driver), out), delay
            elif match := ARC.match(line):
                found.arcs.setdefault(cell, []).append(
                    (match[1], match[2], int(match[3]) / PICOSECONDS))
            elif match := CHECK.match(line):
                found.setups[cell, match[1]] = int(match[3]) / PICOSECONDS
                found.clocks.add((cell, match[2]))
            elif match := INSTANCE.match(line):
                cell = _unescape(match[1])
    return found


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)
