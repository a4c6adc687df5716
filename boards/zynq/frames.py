"""From FASM to frames: what place and route switches on, as bits of configuration memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...base.errors import MicrotronError
from .fasm import Feature, parse_fasm
from .xray import WORD_BITS, Xray, open_xray

FRAME_WORDS = 101
SHOWN = 5                   # features that a message names
Frames = Mapping[int, npt.NDArray[np.uint32]]


def build_frames(database: Xray, switched_on: Iterable[Feature]) -> Frames:
    """All frames of a part, by address. A feature that the database does not know is an error: a
    bitstream without it would do something else."""
    frames = {address: np.zeros(FRAME_WORDS, np.uint32) for address in database.frames()}
    decided: dict[tuple[int, int], tuple[bool, Feature]] = {}
    unknown = []
    for feature in switched_on:
        _check_tile(feature)
        bits = database.bits(feature)
        if bits is None:
            unknown.append(feature)
            continue
        for bit in bits:
            is_set, earlier = decided.setdefault((bit.frame, bit.place), (bit.is_set, feature))
            if is_set != bit.is_set:
                raise MicrotronError(f"{earlier} and {feature} contradict each other: bit "
                                     f"{bit.place} of frame {bit.frame:#010x}")
            if is_set:
                word, place = divmod(bit.place, WORD_BITS)
                frames[bit.frame][word] |= np.uint32(1 << place)
    if unknown:
        named = ", ".join(f"{each} (line {each.line})" for each in unknown[:SHOWN])
        more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
        raise MicrotronError(f"the database of {database.part} does not know {named}{more}")
    return frames


def _check_tile(feature: Feature) -> None:
    """Pins have settings of whole banks, which place and route does not write."""
    if "IOB33" in feature.tile:
        raise MicrotronError(f"{feature} (line {feature.line}): designs with pins of their own are "
                             "not supported; all pins belong to the processors")


def format_frames(frames: Frames) -> str:
    """As xc7frames2bit reads them: a line for each, address and words."""
    return "".join(f"{address:#010x} {','.join(f'{int(word):#010x}' for word in words)}\n"
                   for address, words in sorted(frames.items()))


def write_frames(fasm: str, frames: str, family: str, part: str) -> None:
    """The step of a build, from one file to another; `family` is the folder of the database."""
    database = open_xray(Path(family), part)
    text = Path(fasm).read_text(encoding="utf-8")
    switched_on = chain(parse_fasm(text, fasm),
                        parse_fasm(database.required, "required_features.fasm"))
    Path(frames).write_text(format_frames(build_frames(database, switched_on)), encoding="utf-8")
