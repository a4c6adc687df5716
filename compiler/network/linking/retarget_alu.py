"""Instructions of the ALU that write elsewhere: other loops for the same iterations, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from ....isa.instructions import AluI, Opcode, Requantize
from ....isa.stream import Stream, from_bytes, join
from ...graph.types import Array

Triple = tuple[int, int, int]

KINDS: dict[int, type[AluI | Requantize]] = {Opcode.ALUI: AluI, Opcode.REQUANTIZE: Requantize}
REMEMBERED = 4096           # instructions and where they write
FARTHEST = (1 << 15) - 1    # tiles that a loop goes in one step


def iteration_tiles(first: int, loops: Iterable[int], strides: Iterable[int]) -> Array:
    """The tile of each iteration of three loops."""
    outer, middle, inner = (np.arange(int(count), dtype=np.int64) for count in loops)
    far, near, next_one = (int(stride) for stride in strides)
    tiles: Array = (first + far * outer)[:, None, None] + (
        (near * middle)[:, None] + next_one * inner)
    return tiles


def retarget(word: Stream, tiles: Array) -> Stream | None:
    """An instruction, as a stream of one, that writes these tiles in the order of its iterations:
    one or, if three loops do not reach all of them so, one for each iteration of the outer loop.
    None if that is not enough, or if what it reads moves with what it writes."""
    found = _retarget(word.tobytes(), tiles.astype(np.int64).tobytes())
    return None if found is None else from_bytes(found)


@lru_cache(REMEMBERED)
def _retarget(encoded: bytes, places: bytes) -> bytes | None:
    """The same as bytes: layers are tried in many streams, and mostly in the same places."""
    word, tiles = from_bytes(encoded), np.frombuffer(places, np.int64)
    kind = KINDS.get(int(word["opcode"][0]))
    if kind is None:
        return None
    shaped = tiles.reshape(*word.view(kind.dtype())["loops"][0])
    whole = _retarget_one(word, kind, shaped)
    if whole is not None:
        return whole.tobytes()
    parts = [_retarget_one(_iteration(word, kind, number), kind, shaped[number:number + 1])
             for number in range(len(shaped))]
    found = [each for each in parts if each is not None]
    return join(found).tobytes() if len(found) == len(parts) else None


def _iteration(word: Stream, kind: type[AluI | Requantize], number: int) -> Stream:
    """One iteration of the outer loop."""
    cut = word.copy()
    fields = cut.view(kind.dtype())
    fields["loops"][0, 0] = 1
    fields["src"] += (number * fields["src_stride"][0, 0]).astype(np.uint16)
    if kind is Requantize:
        fields["params"] += np.uint16(number) * fields["params_stride"]
    return cut


def _retarget_one(word: Stream, kind: type[AluI | Requantize], tiles: Array) -> Stream | None:
    """One instruction, its loops divided anew if need be."""
    fitted = word.copy()
    fields = fitted.view(kind.dtype())
    outer, middle, inner = (int(each) for each in fields["src_stride"][0])
    for loops, reads in _divisions(tiles.shape, (outer, middle, inner)):
        shaped = tiles.reshape(loops)
        steps = [int(shaped[index] - shaped[0, 0, 0]) for index in (
            (min(1, loops[0] - 1), 0, 0), (0, min(1, loops[1] - 1), 0),
            (0, 0, min(1, loops[2] - 1)))]
        first = int(shaped[0, 0, 0])
        if max(map(abs, (*steps, *reads))) <= FARTHEST and (
                iteration_tiles(first, loops, steps) == shaped).all():
            fields["dst"], fields["loops"], fields["dst_stride"] = first, loops, steps
            fields["src_stride"] = reads
            if kind is Requantize and tiles.shape[0] == 1:
                fields["params_stride"] = 0             # the outer loop may be another one now
            return fitted
    return None


def _divisions(loops: tuple[int, ...], strides: Triple) -> Iterator[tuple[Triple, Triple]]:
    """Loops that read the same tiles in the same order, with their steps: as they are, or the inner
    ones divided elsewhere. The outer loop stays, since parameters follow it, unless it is none."""
    outer, middle, inner = loops
    far, near, next_one = strides
    yield (outer, middle, inner), strides
    if middle == 1 or inner == 1 or near == inner * next_one:
        count, step = middle * inner, next_one if inner > 1 else near
        for size in _divisors(count):
            yield (outer, count // size, size), (far, step * size, step)
    if outer == 1:
        for size in _divisors(inner):
            yield (middle, inner // size, size), (near, next_one * size, next_one)


def _divisors(count: int) -> list[int]:
    return [size for size in range(1, count + 1) if count % size == 0]
