"""Damaged TFLite files: every one ends in a graph or in one line, with little time and memory.

Run as a script in a process of its own, whose memory and time are limited:
tflite_mutations.py FIRST COUNT
"""

from __future__ import annotations

import resource
import struct
import sys
import time
import traceback

import numpy as np

from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.graph.types import GraphError

EXTREMES = (0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
MEMORY = 3 << 30                # bytes of address space, most of it libraries
SECONDS = 2.0                   # of the processor, for one file of a few kilobytes
LONGEST = 400                   # characters of a message


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with something wrong, or with several things."""
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16]))):
        kind, place = int(rng.integers(6)), int(rng.integers(len(changed)))
        if kind == 0:
            changed[place] = int(rng.integers(256))
        elif kind == 1:
            changed[place] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            place = place // 4 * 4
            changed[place:place + 4] = struct.pack("<I", int(rng.choice(EXTREMES)))
        elif kind == 3:
            place = place // 4 * 4
            value = int.from_bytes(changed[place:place + 4], "little")
            value = (value + int(rng.integers(-16, 17))) % (1 << 32)
            changed[place:place + 4] = struct.pack("<I", value)
        elif kind == 4:
            source = int(rng.integers(len(changed)))
            length = int(rng.integers(1, 33))
            changed[place:place + length] = changed[source:source + length]
        else:
            del changed[max(place, 8):]
    return bytes(changed)


def judge(data: bytes) -> str:
    """What became of a file: "graph", "refused", or what went wrong."""
    start = time.process_time()
    try:
        read_tflite(data, "mutated.tflite")
        outcome = "graph"
    except GraphError as error:
        text = str(error)
        outcome = "refused" if text.isprintable() and len(text) <= LONGEST else f"says {text!r}"
    except BaseException:
        outcome = traceback.format_exc()
    taken = time.process_time() - start
    return outcome if taken <= SECONDS else f"took {taken:.1f} s ({outcome})"


def bases() -> list[bytes]:
    """A file for each operator and type."""
    from microtron_tests import tflite_cases, tflite_moves  # noqa: F401

    return [function(np.random.default_rng(1), dtype, name)[0]
            for (name, dtype), function in tflite_cases.CASES.items()]


def campaign(files: list[bytes], first: int, count: int) -> dict[str, int]:
    """Judge so many mutated files; the first that goes wrong ends it."""
    counts = {"graph": 0, "refused": 0}
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        outcome = judge(mutated(files[number % len(files)], rng))
        if outcome not in counts:
            raise SystemExit(f"mutation {number}: {outcome}")
        counts[outcome] += 1
    return counts


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(campaign(bases(), int(sys.argv[1]), int(sys.argv[2])))
