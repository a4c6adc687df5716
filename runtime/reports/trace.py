"""Timelines as files: Chrome's JSON, which Perfetto shows, and columns for NumPy."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...base.atomic_files import Content, write_atomically
from ...base.checked_values import PlainData
from ...base.errors import MicrotronError
from ...isa.assembly.disassembler import format_instruction
from ...isa.instructions import Engine
from ...isa.program import Program, engines_of
from ...isa.stream import decode
from ...sim.report import Report
from ...sim.timeline import Timeline
from .token_pairs import Token, tokens_of

FORMAT = 1                  # of the columns; a reader that knows it knows all of them
CHUNK = 4096                # instructions decoded at a time: a trace may have millions
LANES = 64                  # tracks an engine may need, for those of its instructions that overlap
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
NAMES = [engine.name.lower() for engine in Engine]
LAYER_TRACK = len(Engine) * LANES       # free for whoever shows layers beside the engines
Event = PlainData


def save_trace(path: Path, program: Program, report: Report) -> None:
    """Write the timeline of a run in the format that the file's name asks for."""
    write_atomically(path, trace_content(path, program, report))


def trace_content(path: Path, program: Program, report: Report) -> Content:
    """What `save_trace` writes."""
    format_trace = format_for(path)
    if report.timeline is None:
        raise MicrotronError(f"{path}: the {report.device} device has no clock, so a run has no "
                             f"timeline to write")
    return format_trace(program, report, report.timeline)


def format_for(path: Path) -> Callable[[Program, Report, Timeline], Content]:
    """The format of a file of that name; so a wrong one can be refused before a long run."""
    if path.suffix not in FORMATS:
        raise MicrotronError(f"{path}: a trace's name must end in {' or '.join(FORMATS)}")
    return FORMATS[path.suffix]


def _columns(program: Program, report: Report, timeline: Timeline) -> Content:
    """A .npz file without pickles; docs/simulator.md lists its columns."""
    columns: dict[str, Array] = {
        "format": np.array(FORMAT), "config": np.array(report.config.digest),
        "cycles": np.array(report.cycles),
        "counter_names": np.array(list(report.counters), np.str_),
        "counters": np.array(list(report.counters.values()), np.int64),
        "opcode": program.code["opcode"], "engine": engines_of(program).astype(np.int8),
        "start": timeline.start, "end": timeline.end}
    if timeline.dispatched is not None:
        columns["dispatched"] = timeline.dispatched
    if timeline.waits is not None:
        columns["waits"] = timeline.waits
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **columns)
    return buffer.getvalue()


def _json(program: Program, report: Report, timeline: Timeline) -> Content:
    """Chrome's trace events. They know only microseconds: one is a cycle here."""
    return write_events(_events(program, timeline), {
        "device": report.device, "config": report.config.to_dict(), "cycles": report.cycles,
        "counters": report.counters, "unit": "1 µs is 1 cycle"})


FORMATS = {".json": _json, ".npz": _columns}


def write_events(events: Iterator[Event], about: PlainData) -> Iterator[bytes]:
    """The file, event by event: nobody needs it in memory as a whole."""
    yield b'{"displayTimeUnit":"ms","otherData":' + _compact(about) + b',"traceEvents":['
    separator = b"\n"
    for event in events:
        yield separator + _compact(event)
        separator = b",\n"
    yield b"\n]}\n"


def _compact(value: PlainData) -> bytes:
    return ENCODER.encode(value).encode()


def _events(program: Program, timeline: Timeline) -> Iterator[Event]:
    tracks = assign_tracks(program, timeline)
    yield name_process(0, "microtron")
    yield from name_tracks(tracks)
    yield from program_events(program, timeline, tracks)


def name_process(process: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}


def name_track(process: int, track: int, name: str, position: int) -> Iterator[Event]:
    """The name of a track, and its position among the others."""
    yield {"ph": "M", "pid": process, "tid": track, "name": "thread_name", "args": {"name": name}}
    yield {"ph": "M", "pid": process, "tid": track, "name": "thread_sort_index",
           "args": {"sort_index": position}}


def name_tracks(tracks: npt.NDArray[np.int64]) -> Iterator[Event]:
    """Names of the engines' tracks that are used."""
    for track in np.unique(tracks[tracks >= 0]).tolist():
        name, lane = NAMES[track // LANES], track % LANES
        yield from name_track(0, track, f"{name} ({lane + 1})" if lane else name, track)


def program_events(program: Program, timeline: Timeline, tracks: npt.NDArray[np.int64],
                   base: int = 0, first_arrow: int = 0) -> Iterator[Event]:
    """A slice for each instruction and an arrow for each token of a program that starts at a
    cycle."""
    yield from _instructions(program, timeline, tracks, base)
    for number, token in enumerate(tokens_of(program), first_arrow):
        yield from _arrow(number, token, timeline, tracks, base)


def assign_tracks(program: Program, timeline: Timeline) -> npt.NDArray[np.int64]:
    """The track of each instruction that ended, -1 for others.

    An engine starts the next instruction before the last has ended, and slices of one track must
    not overlap: an instruction takes the first track of its engine that is free when it starts.
    """
    engines = engines_of(program)
    tracks = np.full(len(engines), -1, np.int64)
    for engine in Engine:
        free: list[int] = []            # when each track is
        mine = np.flatnonzero((engines == engine) & (timeline.end >= 0))
        lanes = []
        for start, end in zip(timeline.start[mine].tolist(), timeline.end[mine].tolist(),
                              strict=True):
            lane = next((each for each, when in enumerate(free) if when <= start), len(free))
            free[lane:lane + 1] = [end]
            lanes.append(lane)
        assert len(free) <= LANES, "no engine has so many instructions in flight"
        tracks[mine] = engine * LANES + np.array(lanes, np.int64)
    return tracks


def _instructions(program: Program, timeline: Timeline, tracks: npt.NDArray[np.int64],
                  base: int) -> Iterator[Event]:
    """A slice from start to end for each instruction that ended."""
    done = np.flatnonzero(tracks >= 0)
    for first in range(0, len(done), CHUNK):
        some = done[first:first + CHUNK]
        columns = (some, decode(program.code[some]), tracks[some], timeline.start[some],
                   timeline.end[some])
        for position, instruction, track, start, end in zip(*columns, strict=True):
            text = format_instruction(instruction, program.segments)
            yield {"ph": "X", "pid": 0, "tid": int(track), "ts": base + int(start),
                   "dur": int(end - start), "cat": NAMES[track // LANES],
                   "name": text.partition(" ")[0],
                   "args": {"position": int(position), "text": text,
                            **_details(timeline, int(position))}}


def _details(timeline: Timeline, position: int) -> PlainData:
    details: PlainData = {}
    if timeline.dispatched is not None:
        details["dispatched"] = int(timeline.dispatched[position])
    if timeline.waits is not None:
        details |= {f"waited_for_{name}": cycles for name, cycles
                    in zip(NAMES, timeline.waits[position].tolist(), strict=True) if cycles}
    return details


def _arrow(number: int, token: Token, timeline: Timeline,
           tracks: npt.NDArray[np.int64], base: int) -> Iterator[Event]:
    """From the slice that posted a token to the one that took it. An arrow belongs to a slice if
    it begins inside, so not at its end, where the next may start."""
    if tracks[token.poster] < 0 or tracks[token.taker] < 0:
        return
    inside = max(timeline.end[token.poster] - 1, timeline.start[token.poster])
    common = {"pid": 0, "cat": "token", "name": "token", "id": number}
    yield {"ph": "s", "tid": int(tracks[token.poster]), "ts": base + int(inside), **common}
    yield {"ph": "f", "bp": "e", "tid": int(tracks[token.taker]),
           "ts": base + int(timeline.start[token.taker]), **common}
