"""Damaged TFLite files: every one ends in a graph or in one line, with little time and memory.

A script, so that limits hold for it alone: tflite_mutations.py FOLDER FIRST COUNT mutates the files
of a folder, and ends with an error at the first that goes wrong.
"""

from __future__ import annotations

import resource
import signal
import struct
import sys
import traceback
from pathlib import Path

import numpy as np

from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.graph.types import GraphError

EXTREMES = (0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
MEMORY = 3 << 30                # bytes of address space, most of it libraries
SECONDS = 60                    # of the processor, and a twentieth of one for each file
LONGEST = 400                   # characters of a message


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with something wrong, or with several things."""
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16]))):
        kind, place = int(rng.integers(6)), int(rng.integers(len(changed)))
        aligned = place // 4 * 4
        if kind == 0:
            changed[place] = int(rng.integers(256))
        elif kind == 1:
            changed[place] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            changed[aligned:aligned + 4] = struct.pack("<I", int(rng.choice(EXTREMES)))
        elif kind == 3:
            value = int.from_bytes(changed[aligned:aligned + 4], "little")
            value = (value + int(rng.integers(-16, 17))) % (1 << 32)
            changed[aligned:aligned + 4] = struct.pack("<I", value)
        elif kind == 4:
            source, length = int(rng.integers(len(changed))), int(rng.integers(1, 33))
            changed[place:place + length] = changed[source:source + length]
        else:
            del changed[max(place, 8):]
    return bytes(changed)


def outcome(data: bytes) -> str:
    """What became of a file: "graph", "refused", or what went wrong."""
    try:
        read_tflite(data, "mutated.tflite")
    except GraphError as error:
        text = str(error)
        return "refused" if text.isprintable() and len(text) <= LONGEST else f"says {text!r}"
    except BaseException:
        return traceback.format_exc()
    return "graph"


def campaign(files: list[bytes], first: int, count: int) -> dict[str, int]:
    """Judge so many mutated files."""
    counts = {"graph": 0, "refused": 0}
    for number in range(first, first + count):
        # An exhausted processor is told here, with the file that did it.
        signal.signal(signal.SIGXCPU, lambda *_, number=number: sys.exit(f"{number} takes long"))
        found = outcome(mutated(files[number % len(files)], np.random.default_rng(number)))
        if found not in counts:
            sys.exit(f"mutation {number}: {found}")
        counts[found] += 1
    return counts


def main(folder: str, first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seconds = SECONDS + count // 20
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    files = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    counts = campaign(files, first, count)
    print(*counts.values())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
