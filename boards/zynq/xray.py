"""The database of Project X-Ray: which bits of configuration memory a feature of a tile sets.

Of its files, for a part such as xc7z020clg400-1:

    xc7z020/tilegrid.json           every tile: its type, and where its bits are on each bus
    segbits_TYPE.db                 features of a type: frame_bit of each, `!` before one to clear
    segbits_TYPE.block_ram.db       the same on the bus that holds the content of block RAM
    ppips_TYPE.db                   features that take no bits
    PART/required_features.fasm     what every design for the part must switch on
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...base.checked_values import PlainData
from ...base.errors import MicrotronError
from .fasm import Feature

PART = re.compile(r"(xc7[a-z]\d+)[a-z]+\d+-\d")
WORD_BITS = 32
FILES = {"CLB_IO_CLK": "segbits_{}.db", "BLOCK_RAM": "segbits_{}.block_ram.db"}


@dataclass(frozen=True, slots=True)
class Bit:
    """A bit of configuration memory, and what it is to become."""

    frame: int
    place: int              # in the frame
    is_set: bool


@dataclass(frozen=True, slots=True)
class Area:
    """Where a tile's bits are on one bus, and whose feature names describe them."""

    base: int               # the address of its first frame
    frames: int
    offset: int             # the place of its first bit in these
    type: str
    sites: Mapping[str, str]


Segment = Mapping[tuple[str, int], tuple[tuple[int, int, bool], ...]]   # (feature, bit) → bits


@dataclass(frozen=True)
class Xray:
    """The database of one family, as far as one part needs it. Types are read when they are met."""

    folder: Path
    part: str
    tiles: Mapping[str, tuple[str, Mapping[str, Area]]]
    required: str
    _segments: dict[tuple[str, str], Segment] = field(default_factory=dict)
    _free: dict[str, frozenset[str]] = field(default_factory=dict)

    def bits(self, feature: Feature) -> list[Bit] | None:
        """What a feature sets and clears; None if the database does not know it."""
        if feature.tile not in self.tiles:
            return None
        kind, areas = self.tiles[feature.tile]
        if f"{kind}.{feature.name}" in self._bitless(kind):
            return []
        for bus, area in areas.items():
            first, _, rest = feature.name.partition(".")
            name = f"{area.sites.get(first, first)}{'.' if rest else ''}{rest}"
            found = self._segment(area.type, bus).get((f"{area.type}.{name}", feature.bit))
            if found is not None:
                return [Bit(area.base + frame, area.offset + place, is_set)
                        for frame, place, is_set in found]
        return None

    def frames(self) -> list[int]:
        """The addresses of all frames, in order."""
        return sorted({area.base + number for _, areas in self.tiles.values()
                       for area in areas.values() for number in range(area.frames)})

    def _segment(self, kind: str, bus: str) -> Segment:
        if (kind, bus) not in self._segments:
            path = self.folder / FILES[bus].format(kind.lower())
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            try:
                self._segments[kind, bus] = dict(_segbits(text))
            except ValueError:
                raise MicrotronError(f"{path}: not a list of features and bits") from None
        return self._segments[kind, bus]

    def _bitless(self, kind: str) -> frozenset[str]:
        if kind not in self._free:
            path = self.folder / f"ppips_{kind.lower()}.db"
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            self._free[kind] = frozenset(line.split()[0] for line in text.splitlines()
                                         if line.strip())
        return self._free[kind]


def open_xray(folder: Path, part: str) -> Xray:
    """The database in a folder such as …/prjxray/database/zynq7, for a part."""
    match = PART.fullmatch(part)
    grid = folder / (match[1] if match else part) / "tilegrid.json"
    if match is None or not grid.is_file():
        known = sorted(path.parent.name for path in folder.glob("*/part.yaml"))
        raise MicrotronError(f"{folder}: there is no part {part}; there are "
                             f"{', '.join(known) or 'none'}")
    try:
        tiles = {name: (tile["type"], dict(_areas(tile)))
                 for name, tile in json.loads(grid.read_text(encoding="utf-8")).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MicrotronError(f"{grid}: not a grid of tiles: {error!r}") from None
    return Xray(folder, part, tiles, _read_required_features(folder, part, match[1]))


def _areas(tile: PlainData) -> Iterator[tuple[str, Area]]:
    for bus, bits in tile["bits"].items():
        alias = bits.get("alias", {"type": tile["type"], "sites": {}, "start_offset": 0})
        yield bus, Area(base=int(bits["baseaddr"], 16), frames=bits["frames"],
                        offset=WORD_BITS * (bits["offset"] - alias["start_offset"]),
                        type=alias["type"], sites=alias["sites"])


def _read_required_features(folder: Path, part: str, device: str) -> str:
    """Of the part, or of another with the same die: packages and grades do not change it."""
    for name in (part, *sorted(path.parent.name for path in folder.glob(f"{device}*/part.yaml"))):
        path = folder / name / "required_features.fasm"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise MicrotronError(f"{folder}: it does not say what every design for {device} must switch on")


def _segbits(text: str) -> Iterator[tuple[tuple[str, int], tuple[tuple[int, int, bool], ...]]]:
    for line in filter(str.strip, text.splitlines()):
        name, *bits = line.split()
        if bits:
            plain, _, number = name.removesuffix("]").partition("[")
            yield (plain, int(number or 0)), tuple(map(_bit, bits))


def _bit(text: str) -> tuple[int, int, bool]:
    frame, _, place = text.lstrip("!").partition("_")
    return int(frame), int(place), not text.startswith("!")
